"""Make the golden model files and files with their predictions.

Run it once when a format is new, after adding models that are written in it, and keep the files of all earlier ones::

    python tests/model_file/golden/make.py

It does not replace files: every version of tnesi has to read those that are here.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier, save
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.paper import NeuralSimpletron, OnlineRule

HERE = Path(__file__).parent


def models() -> dict[str, Any]:
    """One small model of each kind, by format and name: a file stays below 50 kB."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:200].astype(np.uint8), y[:200]
    names = np.where(np.arange(200) < 100, np.array([f"digit {k}" for k in range(10)])[y], "?")
    few = np.where(np.arange(200) < 100, y, -1)
    rng = np.random.default_rng(0)
    many = PoissonMixture(520, truncation=5, row_sum=30, max_iter=3, tol=0, random_state=0)
    many.fit(rng.random((1600, 4)) ** 3)
    many = _with_short_lists(many)  # 64 neighbors of each field are 133 kB
    shared: dict[str, Any] = {"row_sum": 150, "max_iter": 10, "tol": 0, "random_state": 0}
    rule = OnlineRule(max_iter=10, learning_rate=1.0)
    some, eight = load_digits().data[:300], np.where(np.arange(300) < 150, load_digits().target[:300] == 8, -1)
    weight = np.where(np.arange(200) % 2, 1.0, 0.5)
    return {
        "v1-classifier": SimpletronClassifier(
            PoissonMixture(50, truncation=5, **shared), labeling=SelfLabeling(threshold=0.5), unlabeled="?"
        ).fit(X, names, weight),
        "v1-supervised": SimpletronClassifier(
            PoissonMixture(20, truncation=4, **shared), labeling="supervised", random_state=1
        ).fit(X, few),
        "v1-recurrent": NeuralSimpletron(
            40, truncation=None, row_sum=150, recurrent=True, rule=rule, random_state=0
        ).fit(X, few),
        "v1-mixture": PoissonMixture(30, search="exact", **shared).fit(X),
        "v1-neighbors": many,
        "v1-committee": SimpletronClassifier(
            PoissonMixture(20, truncation=4, **shared), n_mixtures=3, labeling="self-labeling"
        ).fit(X, few),
        "v1-spreading": SimpletronClassifier(PoissonMixture(30, truncation=6, **shared), labeling="spreading").fit(
            some, eight
        ),
        "v1-clusters": SimpletronClassifier(
            PoissonMixture(20, truncation=4, **shared), n_mixtures=2, labeling="clusters"
        ).fit(X, few),
        "v1-unlabeled": SimpletronClassifier(PoissonMixture(20, truncation=4, **shared)).fit(X[:60], np.full(60, -1)),
        "v1-unknown": SimpletronClassifier(
            PoissonMixture(40, truncation=4, **shared), unlabeled="?", unknown_classes=2
        ).fit(X, np.where(np.isin(y, [3, 7]), "?", names)),
        "v1-votes": SimpletronClassifier(PoissonMixture(20, truncation=4, **shared)).fit(X, few),
    }


def _with_short_lists(mixture: PoissonMixture) -> PoissonMixture:
    learned = mixture.learned_
    search = replace(learned.model.search, lists=learned.model.search.lists[:, :8].copy())
    learned = replace(learned, model=replace(learned.model, search=search))
    return PoissonMixture.from_learned(learned, parameters=mixture.get_params())


def main() -> None:
    rng = np.random.default_rng(1)
    for name, model in models().items():
        path = HERE / f"{name}.tnesi"
        if path.exists():
            print(f"{path.name} is there already and stays as it is")
            continue
        rows = load_digits().data[200:220] if model.n_features_in_ == 64 else np.ceil(99 * rng.random((20, 4)) ** 3)
        expected: dict[str, Any] = {"rows": rows.astype(int).tolist()}
        image_shape = (8, 8) if model.n_features_in_ == 64 else None
        training = name in ("v1-classifier", "v1-committee", "v1-unknown", "v1-unlabeled", "v1-votes")
        save(model, path, provenance={"note": "golden file"}, image_shape=image_shape, training=training)
        if isinstance(model, SimpletronClassifier) and not model.classes_.size:
            expected |= {"suggested": [suggestion.row for suggestion in model.suggest(5)]}
        elif isinstance(model, FittedClassifier):
            expected |= {"labels": model.predict(rows).tolist(), "probabilities": model.predict_proba(rows).tolist()}
            if model.has_unknown_class_:
                expected |= {"confidence": model.label_confidence_.tolist(), "unknown": model.unknown_share_}
        else:
            expected |= {"fields": model.predict(rows).tolist(), "scores": model.score_samples(rows).tolist()}
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n", encoding="ascii")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
