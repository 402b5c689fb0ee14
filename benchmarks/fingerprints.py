"""Fingerprints of results: digests of predictions, fields and free energies, to the last bit.

Changes that should not affect results leave them unchanged. Record before and compare after, on one machine::

    python benchmarks/fingerprints.py record build/fingerprints.json
    python benchmarks/fingerprints.py compare build/fingerprints.json

Other processors and BLAS libraries round differently, so the digests are not part of the repository.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.datasets import load_digits

from tnesi import PoissonMixture, SimpletronClassifier, load, save
from tnesi.data import DataNotFoundError, load_named
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.execution import Dask, Local
from tnesi.paper import EM, OnlineRule, presets
from tnesi.system.digest import content_digest

Array = npt.NDArray[Any]
Values = dict[str, Any]


def digest(*arrays: Any) -> str:
    dense = [a.toarray() if isinstance(a, sparse.csr_array) else np.asarray(a) for a in arrays]
    return content_digest("", {f"{i:03d}": a.astype("U") if a.dtype == object else a for i, a in enumerate(dense)})[:16]


def few_labels(y: Array, per_class: int, seed: int = 0) -> Array:
    """Return labels of a few rows of each class, -1 for the others."""
    rng, few = np.random.default_rng(seed), np.full(len(y), -1)
    for k in np.unique(y):
        some = rng.permutation(np.flatnonzero(y == k))[:per_class]
        few[some] = y[some]
    return few


def of_mixture(mixture: PoissonMixture, X: Any) -> Values:
    return {
        "fields": digest(mixture.means_),
        "free energies": digest([record["free_energy"] for record in mixture.history_]),
        "transform": digest(mixture.transform(X)),
        "score": mixture.score(X),
    }


def of_classifier(clf: FittedClassifier, X: Any) -> Values:
    values = {
        "probabilities": digest(clf.predict_proba(X)),
        "transduction": digest(clf.transduction_),
        "distributions": digest(clf.label_distributions_),
        "confidence": digest(clf.label_confidence_),
        "classes": digest(clf.class_weights_),
        "method": clf.labeling_,
    }
    if isinstance(clf, SimpletronClassifier):
        values["suggestions"] = digest([suggestion.row for suggestion in clf.suggest(10)])
    return values


def digits() -> tuple[Array, Array]:
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


def mnist(n: int = 12_000) -> tuple[Array, Array]:
    data = load_named("mnist", download=False)
    return np.asarray(data.X)[:n], np.asarray(data.y)[:n]


def words() -> tuple[sparse.csr_array, Array]:
    """Counts of 2,000 words in 900 documents of 3 topics."""
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(2000, 0.02), 3)
    y = rng.integers(0, 3, 900)
    counts = np.stack([rng.multinomial(80, topics[k]) for k in y])
    return sparse.csr_array(counts.astype(np.float32)), y


def mixtures() -> Iterator[tuple[str, Values]]:
    X, _ = digits()
    yield "mixture, defaults", of_mixture(PoissonMixture(random_state=0).fit(X), X)
    yield "mixture, exact search", of_mixture(PoissonMixture(600, search="exact", random_state=1).fit(X), X)
    yield "mixture, neighbors", of_mixture(PoissonMixture(600, random_state=1).fit(X), X)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    yield "mixture, weights", of_mixture(PoissonMixture(100, random_state=2).fit(X, sample_weight=weight), X)
    full = PoissonMixture(60, truncation=None, max_iter=10, random_state=3)
    yield "mixture, not truncated", of_mixture(full.fit(X), X)
    W, _ = words()
    yield "mixture, sparse", of_mixture(PoissonMixture(100, random_state=4).fit(W), W)


def classifiers() -> Iterator[tuple[str, Values]]:
    X, y = digits()
    few = few_labels(y, 5)
    yield "classifier, defaults", of_classifier(SimpletronClassifier(random_state=0).fit(X, few), X)
    for method in ("clusters", "spreading", "self-labeling"):
        clf = SimpletronClassifier(PoissonMixture(100), labeling=method, random_state=1).fit(X, few)
        yield f"classifier, {method}", of_classifier(clf, X)
    clf = SimpletronClassifier(PoissonMixture(100), labeling="supervised", random_state=1).fit(X, few)
    yield "classifier, labeled rows only", of_classifier(clf, X)
    yield "classifier, other labels", of_classifier(clf.set_params(labeling="auto").fit_labels(few_labels(y, 2)), X)
    some = np.where(few >= 8, -1, few)
    clf = SimpletronClassifier(PoissonMixture(150), unknown_classes=2, random_state=2).fit(X, some)
    yield "classifier, unknown classes", of_classifier(clf, X)
    names = np.array([f"digit {k}" for k in range(10)] + [""])[few]
    clf = SimpletronClassifier(PoissonMixture(80), n_mixtures=3, random_state=3).fit(X, names)
    yield "classifier, committee", of_classifier(clf, X)
    W, topic = words()
    yield "classifier, sparse", of_classifier(SimpletronClassifier(random_state=4).fit(W, few_labels(topic, 5)), W)
    network = presets.r_plus_nesi(n_components=120, truncation=10, row_sum="auto", rule=EM(max_iter=15), random_state=5)
    yield "recurrent network by EM", of_classifier(network.fit(X, few), X)


def published() -> Iterator[tuple[str, Values]]:
    X, y = digits()
    few = few_labels(y, 5)
    settings: dict[str, Any] = {"n_components": 80, "row_sum": 180, "rule": OnlineRule(max_iter=8), "random_state": 0}
    for name in presets.__all__:
        yield f"paper, {name}", of_classifier(getattr(presets, name)(**settings).fit(X, few), X)


def streams() -> Iterator[tuple[str, Values]]:
    X, y = digits()
    few = few_labels(y, 8)
    mixture = PoissonMixture(100, half_life=2000, random_state=0)
    clf = SimpletronClassifier(PoissonMixture(100), random_state=1)
    for start in range(0, len(X), 400):
        mixture.partial_fit(X[start : start + 400])
        clf.partial_fit(X[start : start + 400], few[start : start + 400])
    yield "stream, mixture", of_mixture(mixture, X)
    yield "stream, classifier", of_classifier(clf, X)
    fitted = SimpletronClassifier(PoissonMixture(100), random_state=2).fit(X[:900], few[:900])
    yield "stream after fit", of_classifier(fitted.partial_fit(X[900:], few[900:]), X)


def large() -> Iterator[tuple[str, Values]]:
    X, y = mnist()
    few = few_labels(y, 2)
    yield "MNIST, mixture", of_mixture(PoissonMixture(2000, max_iter=8, random_state=0).fit(X), X[:3000])
    yield "MNIST, classifier", of_classifier(SimpletronClassifier(random_state=0).fit(X, few), X[:3000])


def elsewhere() -> Iterator[tuple[str, Values]]:
    X, y = digits()
    few = few_labels(y, 5)
    with tempfile.TemporaryDirectory() as folder:
        first = PoissonMixture(100, max_iter=4, execution=Local(checkpoint=folder))
        SimpletronClassifier(first, random_state=0, n_mixtures=2).fit(X, few)
        then = PoissonMixture(100, execution=Local(checkpoint=folder, resume=True))
        whole = SimpletronClassifier(then, random_state=0, n_mixtures=2)
        yield "checkpoint, resumed", of_classifier(whole.fit(X, few), X)
        path = Path(folder) / "model.tnesi"
        save(whole, path)
        yield "model file", of_classifier(load(path), X)
        mapped = np.lib.format.open_memmap(Path(folder) / "x.npy", "w+", np.uint8, (90_000, 64))
        mapped[:] = np.tile(X, (51, 1))[:90_000]
        yield "mapped file", of_mixture(PoissonMixture(100, max_iter=4, random_state=0).fit(mapped), X)
    dask = PoissonMixture(100, execution=Dask(), random_state=0, n_jobs=2).fit(X)
    yield "Dask", of_mixture(dask, X)


GROUPS: list[Callable[[], Iterator[tuple[str, Values]]]] = [
    mixtures, classifiers, published, streams, large, elsewhere,
]  # fmt: skip


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def compute() -> dict[str, Values]:
    found: dict[str, Values] = {}
    with _quiet():
        for group in GROUPS:
            try:
                for name, values in group():
                    found[name] = values
                    print(f"{name}: {values}", file=sys.stderr, flush=True)
            except DataNotFoundError as error:
                print(f"{group.__name__}: left out, {error}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    found = compute()
    if given.what == "record":
        given.file.parent.mkdir(parents=True, exist_ok=True)
        given.file.write_text(json.dumps(found, indent=1))
        print(f"{len(found)} configurations recorded in {given.file}")
        return 0
    before: dict[str, Values] = json.loads(given.file.read_text())
    differing = 0
    for name in before:
        other = [what for what, value in before[name].items() if found.get(name, {}).get(what) != value]
        differing += bool(other)
        print(f"{name:32s} {'same bits' if not other else 'DIFFERENT: ' + ', '.join(other)}")
    print(f"{len(before) - differing} of {len(before)} configurations have the same bits")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
