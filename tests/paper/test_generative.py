"""Classes, fields and rows drawn from a network, and the likelihood of labeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson

from tnesi.paper import NeuralSimpletron, OnlineRule, presets
from tnesi.paper.generative import joint_log_likelihood, sample_labeled


@pytest.fixture(scope="module")
def network() -> tuple[NeuralSimpletron, Any, Any]:
    from sklearn.datasets import load_digits

    X, y = load_digits(n_class=4, return_X_y=True)
    names = np.array(["d", "a", "b", "c"])[y]  # not in the order of the digits
    rule = OnlineRule(max_iter=30, label_learning_rate=2.0)
    fitted = presets.t_nesi(n_components=25, truncation=5, row_sum=180, rule=rule, random_state=0).fit(X, names)
    return fitted, X, names


def test_the_likelihood_is_that_of_the_definition(network: tuple[NeuralSimpletron, Any, Any]) -> None:
    clf, X, names = network
    X, names = X[:7], names[:7].astype(object)
    y = 116 * X / X.sum(axis=1, keepdims=True) + 1
    R, W = clf.class_weights_.astype(float), clf.mixture_.means_.astype(float)
    R /= R.sum(axis=1, keepdims=True)

    def log_poisson(counts: Any, w: Any) -> float:  # counts are real numbers
        from scipy.special import gammaln

        return float(np.sum(counts * np.log(w) - w - gammaln(counts + 1)))

    some = names.copy()
    some[[1, 4]] = -1
    for n, value in enumerate(joint_log_likelihood(clf, X, some)):
        of_class = [sum(R[k, c] * np.exp(log_poisson(y[n], W[c]) + 150) for c in range(25)) / 4 for k in range(4)]
        k = list(clf.classes_).index(names[n])
        expected = sum(of_class) if n in (1, 4) else of_class[k]
        assert value == pytest.approx(np.log(expected) - 150, abs=1e-3)


def test_the_right_labels_are_the_most_likely(network: tuple[NeuralSimpletron, Any, Any]) -> None:
    clf, X, names = network
    each = np.array([joint_log_likelihood(clf, X, np.full(len(X), k)) for k in clf.classes_])
    assert np.mean(clf.classes_[each.argmax(axis=0)] == names) > 0.95
    whole = joint_log_likelihood(clf, X, np.full(len(X), -1))
    np.testing.assert_allclose(np.logaddexp.reduce(each), whole, rtol=1e-9)


def test_samples_are_those_of_the_model(network: tuple[NeuralSimpletron, Any, Any]) -> None:
    """Classes are even, fields have the frequencies R_kc, and counts the means W_c."""
    clf, _, _ = network
    n = 20_000
    X, y, fields = sample_labeled(clf, n, random_state=0)
    R = clf.class_weights_.astype(float)
    R /= R.sum(axis=1, keepdims=True)
    for k, name in enumerate(clf.classes_):
        own = y == name
        assert abs(own.mean() - 0.25) < 5 * (0.25 * 0.75 / n) ** 0.5
        share = np.bincount(fields[own], minlength=25) / own.sum()
        assert np.all(np.abs(share - R[k]) < 5 * np.sqrt(R[k] / own.sum()) + 1e-3)
    c = int(np.bincount(fields).argmax())
    rows, W = X[fields == c], clf.mixture_.means_[c]
    assert np.all(np.abs(rows.mean(axis=0) - W) < 5 * np.sqrt(W / len(rows)))
    np.testing.assert_allclose(np.mean(rows == 0), poisson.pmf(0, W).mean(), atol=0.01)
    np.testing.assert_array_equal(sample_labeled(clf, 5, random_state=3)[0], sample_labeled(clf, 5, random_state=3)[0])


def test_unknown_classes_are_refused(network: tuple[NeuralSimpletron, Any, Any]) -> None:
    clf, X, _ = network
    with pytest.raises(ValueError, match="has not learned"):
        joint_log_likelihood(clf, X[:2], ["a", "z"])
