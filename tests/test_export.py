"""Exported classifiers give the probabilities of the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tnesi import PoissonMixture, SimpletronClassifier, make_classifier
from tnesi.errors import InvalidParameterError
from tnesi.export import to_onnx

X, TRUTH = load_digits(return_X_y=True)
X = X.astype(np.float32)
Y = np.where(np.arange(600) < 100, TRUTH[:600], -1)


def run(clf: Any, rows: Any) -> tuple[Any, Any]:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(clf).SerializeToString(), providers=["CPUExecutionProvider"])
    label, probabilities = session.run(None, {"X": rows})
    return label, probabilities


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"labeling": "clusters"},
        {"labeling": "spreading"},
        {"labeling": "leading"},
        {"labeling": "logistic"},
        {"labeling": "self-labeling"},
        {"labeling": "supervised"},
        {"n_mixtures": 2},
        {"mixture": PoissonMixture(40, truncation=None)},
        {"mixture": PoissonMixture(8)},
        {"unknown_classes": 1, "labeling": "clusters"},
    ],
    ids=str,
)
def test_probabilities_are_those_of_the_classifier(parameters: dict[str, Any]) -> None:
    settings = {"mixture": PoissonMixture(60), "random_state": 0, **parameters}
    clf = SimpletronClassifier(**settings).fit(X[:600], Y)
    rows = np.concatenate([X, np.zeros((1, X.shape[1]), np.float32)])
    label, probabilities = run(clf, rows)
    expected = clf.predict_proba(rows)
    # double precision beside single: up to 1.1e-5 was measured without truncation
    np.testing.assert_allclose(probabilities, expected, atol=3e-5 if clf.mixture_.truncation_ == 40 else 1e-5)
    clear = np.sort(expected, axis=1)[:, -1] - np.sort(expected, axis=1)[:, -2] > 1e-4
    np.testing.assert_array_equal(label[clear], clf.predict(rows)[clear])


def test_names_may_be_strings() -> None:
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    y = np.where(Y >= 0, names[Y], None)
    clf = SimpletronClassifier(PoissonMixture(40), random_state=0).fit(X[:600], y)
    label, _ = run(clf, X[:50])
    assert np.mean(label == clf.predict(X[:50])) > 0.95


def test_names_may_be_floats() -> None:
    clf = SimpletronClassifier(PoissonMixture(40), random_state=0).fit(X[:600], np.where(Y >= 0, Y, np.nan))
    label, _ = run(clf, X[:50])
    assert label.dtype == clf.classes_.dtype == np.float64
    assert np.mean(label == clf.predict(X[:50])) > 0.95


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="last step"):
        to_onnx(make_classifier("vectors"))
    unlabeled = SimpletronClassifier(PoissonMixture(20), random_state=0).fit(X[:200], np.full(200, -1))
    with pytest.raises(InvalidParameterError, match="no classes"):
        to_onnx(unlabeled)


def test_skops_keeps_all_bits() -> None:
    skops = pytest.importorskip("skops.io")
    clf = SimpletronClassifier(PoissonMixture(40), random_state=0).fit(X[:600], Y)
    file = skops.dumps(clf)
    loaded = skops.loads(file, trusted=skops.get_untrusted_types(data=file))
    np.testing.assert_array_equal(loaded.predict_proba(X[600:]), clf.predict_proba(X[600:]))
    np.testing.assert_array_equal(loaded.fit_labels(Y).transduction_, clf.fit_labels(Y).transduction_)
