"""Logistic regression, compared with scikit-learn on features computed here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from tnesi.labeling.logistic import learn_logistic, total_variance
from tnesi.model.linear_classes import Transform, transformed


@pytest.fixture
def rows(rng: np.random.Generator) -> Any:
    return rng.poisson(rng.gamma(0.7, 4.0, (90, 12))).astype(np.float32) + np.float32([1] + 11 * [0])


def roots_of(X: Any) -> Any:
    return np.sqrt(X / X.sum(axis=1, keepdims=True, dtype=np.float64))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("transform", ["roots", "shares"])
def test_total_variance(rows: Any, rng: np.random.Generator, weighted: bool, kind: Any, transform: Transform) -> None:
    weight = rng.integers(1, 5, 90).astype(np.float32) if weighted else None
    expected = roots_of(rows) if transform == "roots" else roots_of(rows) ** 2
    mean = np.average(expected, axis=0, weights=weight)
    variance = np.average((expected - mean) ** 2, axis=0, weights=weight).sum()
    assert total_variance(transformed(kind(rows), transform), weight) == pytest.approx(variance, rel=1e-4)


def test_large_values_have_a_variance() -> None:
    assert np.isfinite(total_variance(np.array([[1e30], [3e30]], np.float32), None))


def test_equal_rows_have_no_variance() -> None:
    assert total_variance(np.full((50, 3), 0.1, np.float32), None) == 0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3, 30])
def test_it_is_logistic_regression(rows: Any, rng: np.random.Generator, kind: Any, n_classes: int) -> None:
    """With two classes, scikit-learn has one column of coefficients."""
    label = (np.arange(60) % n_classes).astype(np.int32)
    weight = rng.integers(1, 4, 60).astype(np.float32)
    classes = learn_logistic(transformed(kind(rows[:60]), "roots"), "roots", label, weight, n_classes, 4.0)
    assert classes.n_classes == n_classes
    model = LogisticRegression(max_iter=100).fit(4 * roots_of(rows[:60]), label, weight)
    expected = model.predict_proba(4 * roots_of(rows))
    np.testing.assert_allclose(classes.posterior(kind(rows)), expected, atol=5e-3)


def test_weights_are_repetitions(rows: Any, rng: np.random.Generator) -> None:
    label, count = rng.permutation(90).astype(np.int32) % 3, rng.integers(1, 4, 90)
    features = transformed(rows, "roots")
    weighted = learn_logistic(features, "roots", label, count.astype(np.float32), 3, 4.0)
    repeated = learn_logistic(np.repeat(features, count, axis=0), "roots", np.repeat(label, count), None, 3, 4.0)
    np.testing.assert_allclose(weighted.posterior(rows), repeated.posterior(rows), atol=5e-3)


def test_distances_are_relative_to_the_variance(rows: Any) -> None:
    """A hundredth of the contrast makes no difference."""
    label = (np.arange(90) % 2).astype(np.int32)
    shares = rows / rows.sum(axis=1, keepdims=True)
    shares[:, 1] = np.where(label, 0.9, 0.1) * shares[:, 1]
    faint = (1 + 0.01 * (shares - shares.mean(axis=0))).astype(np.float32)
    features = transformed(faint, "roots")
    scale = np.sqrt(10 / total_variance(features, None))
    classes = learn_logistic(features[:20], "roots", label[:20], None, 2, scale)
    certainty = classes.posterior(faint).max(axis=1).mean()
    assert certainty > 0.6  # over 20 seeds 0.75 +- 0.03; without the scale 0.50


def test_nothing_is_said() -> None:
    """Few iterations and one label per class cause no warnings (which are errors in tests)."""
    rng = np.random.default_rng(0)
    rows = rng.poisson(3.0, (30, 12)).astype(np.float32)
    learn_logistic(transformed(rows, "roots"), "roots", np.arange(30, dtype=np.int32), None, 30, 1e4)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_as_scikit_learn(n_classes: int, kind: Any, weighted: bool) -> None:
    rng = np.random.default_rng(n_classes)
    rows = rng.poisson(3.0, (60, 8)).astype(np.float32)
    label = np.resize(np.arange(n_classes), 60).astype(np.int32)
    rows[np.arange(60), label] += 4
    weight = rng.integers(1, 4, 60).astype(np.float32) if weighted else None
    roots = transformed(kind(rows), "roots")
    expected = LogisticRegression(tol=1e-8, max_iter=1000).fit(2.0 * roots.astype(float), label, weight)
    found = learn_logistic(roots, "roots", label, weight, n_classes, 2.0)
    np.testing.assert_allclose(found.posterior(rows), expected.predict_proba(2.0 * roots.astype(float)), atol=2e-3)
