from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from dataclasses import fields, is_dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from hypothesis import given, reject
from hypothesis import strategies as st
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline

import tnesi
from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier, load, save
from tnesi.data.labels import few_labels
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.execution import Local
from tnesi.labeling.labeler import Labeler
from tnesi.model_file import Header, ModelFileError, read_header
from tnesi.model_file.header import CHECKS
from tnesi.paper import EM, NeuralSimpletron, OnlineRule

X, Y = load_digits(return_X_y=True)
X = X.astype(np.uint8)
FEW = few_labels(Y, 10, np.random.default_rng(0))


SURE = SelfLabeling(max_iter=3)
OF_MIXTURE = PoissonMixture().get_params().keys() - {"random_state", "n_jobs", "verbose"}


def fast(**parameters: Any) -> SimpletronClassifier:
    """Return a classifier that learns quickly, with parameters of the classifier and its mixture."""
    of_mixture = {name: parameters.pop(name) for name in OF_MIXTURE & parameters.keys()}
    mixture = PoissonMixture(**{"n_components": 40, "row_sum": 180, "max_iter": 3, "tol": 0, **of_mixture})
    return SimpletronClassifier(mixture, **{"random_state": 0, **parameters})


def network(**parameters: Any) -> NeuralSimpletron:
    rule = EM(max_iter=3, tol=0, label_max_iter=3)
    defaults = {"n_components": 40, "row_sum": 180, "rule": rule, "random_state": 0}
    return NeuralSimpletron(**{**defaults, **parameters})


def again(model: Any, folder: Path, **settings: Any) -> Any:
    save(model, folder / "model.tnesi", **settings)
    return load(folder / "model.tnesi")


NOT_STORED = {"_labeler", "_confident", "_stream", "mass", "n_rows", "n_zero", "n_samples_seen_", "n_zero_rows_"}
NOT_STORED |= {"label_distributions", "best", "n_threads", "store"}
"""What is found again when it is needed, and what only partial_fit needs, which does not go on from a file."""


def assert_same(a: Any, b: Any, where: str = "model") -> None:
    """All attributes are bitwise equal, including private ones, except those that are not stored."""
    assert type(a) is type(b), where
    if isinstance(a, BaseEstimator) or is_dataclass(a):
        held, held_too = (vars(model).keys() - NOT_STORED for model in (a, b))
        assert held == held_too, where
        for name in held:
            assert_same(getattr(a, name), getattr(b, name), f"{where}.{name}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (entry_a, entry_b) in enumerate(zip(a, b, strict=True)):
            assert_same(entry_a, entry_b, f"{where}[{i}]")
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif isinstance(a, sparse.csr_array):
        assert a.shape == b.shape, where
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part), f"{where}.{part}")
    else:
        assert repr(a) == repr(b), where


def assert_computes_the_same(a: Any, b: Any) -> None:
    mixtures_a, mixtures_b = (getattr(model, "mixtures_", [model]) for model in (a, b))
    for mixture_a, mixture_b in zip(mixtures_a, mixtures_b, strict=True):
        for method in ("transform", "score_samples", "predict"):
            assert_same(getattr(mixture_a, method)(X[:300]), getattr(mixture_b, method)(X[:300]), method)
        for drawn_a, drawn_b in zip(mixture_a.sample(5), mixture_b.sample(5), strict=True):
            assert_same(drawn_a, drawn_b, "sample")
    if isinstance(a, FittedClassifier) and a.classes_.size:
        assert_same(a.predict_proba(X[:300]), b.predict_proba(X[:300]), "predict_proba")
        assert_same(a.predict(X[:300]), b.predict(X[:300]), "predict")


def interrupted(model: SimpletronClassifier) -> SimpletronClassifier:
    """A classifier after Ctrl-C in its second layer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Labeler, "learn", Mock(side_effect=KeyboardInterrupt))
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            return model.fit_labels(FEW)


LETTERS = np.array([*"abcdefghij", "nobody knows"])
KINDS: dict[str, Any] = {
    "defaults": lambda: fast().fit(X, FEW),
    "many fields": lambda: fast(n_components=600, truncation=8).fit(X, FEW),
    "many fields, exact search": lambda: fast(n_components=600, search="exact").fit(X, FEW),
    "many fields, not truncated": lambda: fast(n_components=520, truncation=None).fit(X[:700], FEW[:700]),
    "network of many fields": lambda: network(n_components=520, rule=OnlineRule(max_iter=1)).fit(X[:700], FEW[:700]),
    "network": lambda: network(rule=OnlineRule(max_iter=3)).fit(X, FEW),
    "network by EM": lambda: network(self_labeling=False).fit(X, FEW),
    "network without labels": lambda: network(rule=OnlineRule(max_iter=3)).fit(X, np.full(len(X), -1)),
    "recurrent network": lambda: network(recurrent=True, rule=OnlineRule(max_iter=3)).fit(X, FEW),
    "recurrent network by EM": lambda: network(recurrent=True).fit(X, FEW),
    "network to be recurrent": lambda: network().fit(X, FEW).set_params(recurrent=True, n_components=7),
    "strings": lambda: fast(unlabeled="nobody knows").fit(X, LETTERS[FEW]),
    "floats": lambda: fast(unlabeled=float("nan")).fit(X, np.where(FEW < 0, np.nan, FEW)),
    "small integers": lambda: fast(unlabeled=None).fit(X, FEW.astype(np.int8)),
    "truth": lambda: fast().fit(X, Y > 4),
    "weights": lambda: fast().fit(X, FEW, sample_weight=np.arange(len(X)) % 3),
    "feature names": lambda: fast().fit(pd.DataFrame(X, columns=[f"pixel{i}ü" for i in range(64)]), FEW),
    "settings changed": lambda: fast().fit(X, FEW).set_params(mixture__search="exact", mixture__n_components=7),
    "NumPy parameters": lambda: fast(n_components=np.int64(30), tol=np.inf, verbose=False).fit(X, FEW),
    "committee": lambda: fast(n_mixtures=3).fit(X, FEW),
    "committee of many fields": lambda: fast(n_mixtures=2, n_components=600, truncation=8).fit(X, FEW),
    "committee, not truncated": lambda: fast(n_mixtures=2, n_components=520, truncation=None).fit(X[:700], FEW[:700]),
    "committee with names": lambda: fast(n_mixtures=2).fit(pd.DataFrame(X, columns=[f"p{i}" for i in range(64)]), FEW),
    "committee to be": lambda: fast().fit(X, FEW).set_params(n_mixtures=3),
    "committee that was": lambda: fast(n_mixtures=2).fit(X, FEW).set_params(n_mixtures=1),
    "self-labeling": lambda: fast(labeling=SURE).fit(X, FEW),
    "self-labeling by name": lambda: fast(labeling="self-labeling").fit(X, FEW),
    "supervised": lambda: fast(labeling="supervised").fit(X, FEW),
    "clusters": lambda: fast(labeling="clusters").fit(X, FEW),
    "spreading": lambda: fast(labeling="spreading").fit(X, FEW),
    "spreading, with sizes": lambda: fast(labeling="spreading").fit(X, np.where(np.arange(len(Y)) < 300, Y > 7, -1)),
    "spreading in a committee": lambda: fast(labeling="spreading", n_mixtures=2).fit(X, FEW, np.arange(len(X)) % 3),
    "unknown classes": lambda: fast(unknown_classes=3).fit(X, np.where(FEW > 6, -1, FEW)),
    "unknown classes, weighted": lambda: fast(unknown_classes=1).fit(X, np.where(FEW > 8, -1, FEW), 1 + Y % 2),
    "unknown letters": lambda: fast(unknown_classes=2, unlabeled=None).fit(
        X, [None if y < 2 else LETTERS[y] for y in FEW]
    ),
    "unknown, with another marker since": lambda: KINDS["unknown classes"]().set_params(unlabeled=-7),
    "labeling changed": lambda: fast(unknown_classes=2).fit(X, FEW).set_params(unknown_classes=0, labeling=SURE),
    "labeling to be": lambda: fast(labeling=SURE).fit(X, FEW).set_params(labeling="spreading"),
    "interrupted": lambda: interrupted(fast(labeling="clusters").fit(X, FEW)),
    "mixture": lambda: PoissonMixture(50, random_state=3).fit(X),
    "mixture of many": lambda: PoissonMixture(600, row_sum=200, random_state=3, max_iter=3, tol=0).fit(X),
}


@pytest.fixture(scope="module")
def fitted() -> SimpletronClassifier:
    return fast().fit(X, FEW)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:X has feature names", "ignore:X does not have valid feature names")
def test_round_trip_is_exact(kind: str, tmp_path: Path) -> None:
    model = KINDS[kind]()
    loaded = again(model, tmp_path)
    if kind == "NumPy parameters":  # as Python's numbers, which are equal
        model.mixture.n_components = model.mixture_.n_components = 30
    assert_same(model, loaded)
    assert_computes_the_same(model, loaded)
    assert_same(model, pickle.loads(pickle.dumps(loaded)))


AGAIN = ["defaults", "network", "weights", "strings", "committee", "self-labeling", "clusters", "unknown classes"]


@pytest.mark.parametrize("kind", AGAIN)
def test_new_labels_on_a_loaded_model(kind: str, tmp_path: Path) -> None:
    model = KINDS[kind]()
    loaded = again(model, tmp_path)
    other = few_labels(Y, 4, np.random.default_rng(7))
    np.testing.assert_array_equal(model.transduction_, loaded.transduction_)
    if isinstance(model, SimpletronClassifier):
        loaded.fit_labels(other, X)  # the rows are not stored
    else:
        loaded.fit_labels(other)
    assert_same(model.fit_labels(other), loaded)
    if isinstance(model, SimpletronClassifier):
        assert model.suggest(5) == loaded.suggest(5)


def test_without_training_state(fitted: SimpletronClassifier, tmp_path: Path) -> None:
    small = again(fitted, tmp_path, training=False)
    assert_computes_the_same(fitted, small)
    with pytest.raises(ValueError, match="training=True"):
        small.fit_labels(FEW)
    of_rows = ("activities_", "transduction_", "label_distributions_")
    for name in (*of_rows, "label_confidence_", "label_rivals_", "unknown_share_"):
        assert hasattr(fitted, name)
        assert not hasattr(small, name)
    assert small.labeling_ == fitted.labeling_
    assert small.model_.layer.classes.sharpness == fitted.model_.layer.classes.sharpness
    assert_same(again(small, tmp_path), small)
    assert_same(small.fit(X, FEW).predict(X), fitted.predict(X))


SEEDS, RATES = st.integers(0, 2**32 - 1), st.floats(1e-300, 1e300)
NAMES = st.lists(st.text(st.characters(codec=None), max_size=9), min_size=3, max_size=3, unique=True)
FIELDS: dict[str, Any] = {
    "n_components": st.integers(1, 30) | st.just("auto"),
    "truncation": st.none() | st.integers(1, 30),
    "row_sum": st.just("auto") | st.floats(13, 200),
}
SHARED: dict[str, Any] = {
    "unlabeled": st.none() | st.text() | st.floats() | st.integers(-(2**63), -1),
    "n_jobs": st.none() | st.integers(1, 4),
}


@pytest.mark.slow
@given(
    of_mixture=st.fixed_dictionaries(
        FIELDS
        | {
            "search": st.sampled_from(["exact", "neighbors"]),
            "tol": st.floats(0, allow_nan=False),
            "prior_strength": st.floats(0, 10),
            "half_life": st.none() | st.floats(1e-300, 1e300),
            "random_state": st.none() | SEEDS,
        }
    ),
    of_classifier=st.fixed_dictionaries(
        {
            "n_mixtures": st.integers(1, 3),
            "labeling": st.sampled_from(["auto", "supervised", "clusters", "spreading"])
            | st.builds(
                SelfLabeling,
                threshold=st.floats(0, 1),
                learning_rate=RATES,
                max_iter=st.just(2),
                batch_size=st.integers(1, 2**31 - 1),
            ),
            "unknown_classes": st.sampled_from([0, 0, 0, 1, 4]),
            "random_state": SEEDS,
        }
        | SHARED
    ),
    weighted=st.booleans(),
    names=NAMES,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_round_trip_over_parameters(
    tmp_path_factory: pytest.TempPathFactory,
    of_mixture: dict[str, Any],
    of_classifier: dict[str, Any],
    weighted: bool,
    names: list[str],
) -> None:
    mixture = PoissonMixture(max_iter=2, **with_possible_truncation(of_mixture))
    round_trip(SimpletronClassifier(mixture, **of_classifier), tmp_path_factory, weighted, names)


@pytest.mark.slow
@given(
    parameters=st.fixed_dictionaries(
        FIELDS
        | SHARED
        | {
            "self_labeling": st.booleans(),
            "recurrent": st.booleans(),
            "threshold": st.floats(0, 1),
            "random_state": SEEDS,
            "rule": st.builds(
                OnlineRule,
                max_iter=st.just(2),
                batch_size=st.integers(1, 2**31 - 1),
                learning_rate=RATES,
                label_learning_rate=RATES,
            )
            | st.builds(
                EM,
                max_iter=st.just(2),
                tol=st.floats(0, allow_nan=False),
                prior_strength=st.floats(0, 10),
                label_learning_rate=RATES,
                label_max_iter=st.just(2),
                batch_size=st.integers(1, 2**31 - 1),
            ),
        }
    ),
    weighted=st.booleans(),
    names=NAMES,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_round_trip_of_networks_over_parameters(
    tmp_path_factory: pytest.TempPathFactory, parameters: dict[str, Any], weighted: bool, names: list[str]
) -> None:
    round_trip(NeuralSimpletron(**with_possible_truncation(parameters)), tmp_path_factory, weighted, names)


def with_possible_truncation(parameters: dict[str, Any]) -> dict[str, Any]:
    c, most = parameters["n_components"], parameters["truncation"]
    return parameters | {"truncation": min(most, c) if isinstance(c, int) and isinstance(most, int) else most}


def round_trip(model: Any, tmp_path_factory: pytest.TempPathFactory, weighted: bool, names: list[str]) -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.random((40, 12)), rng.random(40) if weighted else None
    y = pd.Series([*(names * 4), *[None] * 28], dtype=object)
    try:
        model.fit(rows, y, sample_weight=weight)
    except ValueError:  # such as the marker being one of the names, or parameters that do not go together
        reject()
    path = tmp_path_factory.mktemp("models") / "model.tnesi"
    save(model, path)
    assert_same(model, load(path))
    assert_same(model.predict_proba(rows), load(path).predict_proba(rows))


def test_header(fitted: SimpletronClassifier, tmp_path: Path) -> None:
    provenance = {"data": "digits", "fingerprint": "ab12", "seed": np.int64(3), "note": "ü", "scores": [0.5, np.nan]}
    save(fitted, tmp_path / "model.tnesi", provenance=provenance, image_shape=(8, 8))
    header = read_header(tmp_path / "model.tnesi")
    assert (header.format, header.kind, header.classes, header.image_shape) == (1, "classifier", [*range(10)], (8, 8))
    assert header.shapes["weights"] == (40, 64)
    of_mixture = {name: value for name, value in fitted.mixture.get_params().items() if name != "execution"}
    assert header.parameters == fitted.get_params(deep=False) | {"mixture": {"PoissonMixture": of_mixture}}
    assert (header.labeling, header.sharpness) == (fitted.labeling_, fitted.model_.layer.classes.sharpness)
    assert header.unknown is False
    assert repr(header.provenance) == repr(provenance | {"seed": 3, "scores": [0.5, float("nan")]})
    assert header.versions["tnesi"] == tnesi.__version__
    assert header.created[:2] == "20"
    assert (header.row_sum, header.truncation, header.n_iter) == (180, 15, 3)


def test_header_of_a_committee(tmp_path: Path) -> None:
    clf = fast(n_mixtures=3, labeling=SURE, execution=Local(callback=lambda record: record["mixture"] == 2)).fit(X, FEW)
    save(clf, tmp_path / "model.tnesi")
    header = read_header(tmp_path / "model.tnesi")
    assert (header.format, header.parameters["n_mixtures"], len(header.further_mixtures)) == (1, 3, 2)
    assert [member.n_iter for member in header.members] == [3, 1, 3] == [m.n_iter_ for m in clf.mixtures_]
    assert [member.shapes["weights"] for member in header.members] == [(40, 64)] * 3
    assert header.shapes["class_weights"] == (10, 120)
    assert {"weights", "weights.1", "weight_sums.2"} < header.shapes.keys()


def test_what_cannot_be_stored_is_said(fitted: SimpletronClassifier, tmp_path: Path) -> None:
    clf = fast(random_state=np.random.RandomState(0), execution=Local(callback=lambda record: None)).fit(X, FEW)
    loaded = again(clf, tmp_path)
    assert loaded.random_state is loaded.mixture.execution is None
    assert "random_state" in read_header(tmp_path / "model.tnesi").notes[0]
    assert_computes_the_same(clf, loaded)
    path = tmp_path / "none.tnesi"
    with pytest.raises(ModelFileError, match=r"\{1, 2\} cannot be stored"):
        save(fitted, path, provenance={"a": {1, 2}})
    with pytest.raises(ModelFileError, match="provenance"):
        save(fitted, path, provenance={"a": [[[[[[[[[1]]]]]]]]]})
    with pytest.raises(ModelFileError, match="image_shape"):
        save(fitted, path, image_shape=(7, 8))
    with pytest.raises(ModelFileError, match="max_iter=0"):
        save(fast().fit(X, FEW).set_params(mixture__max_iter=0), path)
    with pytest.raises(ModelFileError, match=r"object.* cannot be stored"):
        save(fast().fit(X, FEW).set_params(unlabeled=object()), path)
    with pytest.raises(TypeError, match="this pipeline cannot be saved"):
        save(make_pipeline(fitted), path)
    with pytest.raises(NotFittedError):
        save(fast(), path)
    with pytest.raises(ModelFileError, match="pass training=True"):
        save(fast().fit(X, np.full(len(X), -1)), path, training=False)
    assert not path.exists()


def test_a_classifier_without_labels_waits_for_some(tmp_path: Path) -> None:
    for changes in ({}, {"n_mixtures": 2, "labeling": "auto"}):
        clf = fast(**changes).fit(X, np.full(len(X), -1))
        loaded = again(clf, tmp_path)
        assert loaded.classes_.size == 0
        assert (loaded.activities_ != clf.activities_).nnz == 0
        assert loaded.suggest(5) == clf.suggest(5)
        with pytest.raises(NotFittedError, match="no labels yet"):
            loaded.predict(X)
        assert_computes_the_same(clf.fit_labels(FEW), loaded.fit_labels(FEW, X))


def test_a_callback_may_add_to_the_history(tmp_path: Path) -> None:
    clf = fast(execution=Local(callback=lambda record: record.update(error=np.float32(0.5)))).fit(X, FEW)
    assert [record["error"] for record in again(clf, tmp_path).mixture_.history_] == [0.5] * 4


# Files appear whole or not at all


def test_a_failed_write_loses_nothing(
    fitted: SimpletronClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.tnesi"
    save(fitted, path)
    before = path.read_bytes()

    def interrupted(arrays: Any, filename: Path, metadata: Any) -> None:
        filename.write_bytes(before[:1000])
        raise KeyboardInterrupt

    monkeypatch.setattr(safetensors.numpy, "save_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(fitted, path)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


FULL_DISK = """
import resource, signal, sys
from tnesi import load
from tnesi import save
model = load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    save(model, sys.argv[1], provenance={"second": True})
except OSError as error:
    assert "check the free space on the disk" in str(error), error
    sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs limits of POSIX")
def test_a_full_disk_loses_nothing(fitted: SimpletronClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.tnesi"
    save(fitted, path)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


# Files that are not model files


class Dangerous:
    def __reduce__(self) -> Any:
        return print, ("executed",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"x", "not a model file"),
        (b"label,pixel\n1,2\n" * 9, "not a model file"),
        (b"PK\3\4" + bytes(99), "not a model file"),
        (pickle.dumps(Dangerous()), "pickle"),
        (bytes(8) + b"{", "damaged"),
        ((2**60).to_bytes(8, "little") + b"{}", "header has more"),
        ((2**24).to_bytes(8, "little") + b"{}", "damaged"),
    ],
)
def test_other_files(content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.tnesi"
    path.write_bytes(content)
    for read in (load, read_header):
        with pytest.raises(ModelFileError, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value)
    assert "executed" not in capsys.readouterr().out


def test_other_things_than_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.tnesi")
    with pytest.raises(ModelFileError, match="not a file"):
        load(tmp_path)
    save_file({"weights": np.ones((2, 2), np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelFileError, match="not a model of tnesi"):
        load(tmp_path / "other.safetensors")


def test_every_entry_of_the_header_is_checked() -> None:
    names = {entry.name for entry in fields(Header)}
    assert CHECKS.keys() | {"format", "shapes"} == names


def test_file_objects(fitted: SimpletronClassifier, tmp_path: Path) -> None:
    content = BytesIO()
    save(fitted, content, provenance={"data": "digits"})
    loaded = load(BytesIO(content.getvalue()))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert read_header(BytesIO(content.getvalue())).provenance == {"data": "digits"}
    path = tmp_path / "model.tnesi"
    path.write_bytes(content.getvalue())
    with path.open("rb") as file:
        assert load(file).get_params().keys() == fitted.get_params().keys()
    for damaged in (b"", b"no model", content.getvalue()[:-1], content.getvalue()[:-1] + b"?"):
        with pytest.raises(ModelFileError, match=r"^the file cannot be loaded"):
            load(BytesIO(damaged))
