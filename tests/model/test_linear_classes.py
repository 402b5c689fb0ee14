"""Linear classes against the formula in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from tnesi.model.classes import sharpened
from tnesi.model.linear_classes import TRANSFORMS, LinearClasses, Transform, transformed

KINDS: dict[str, Any] = {
    "uint8": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@pytest.fixture
def rows(rng: np.random.Generator) -> Any:
    X = rng.poisson(1.5, (70, 9)).astype(np.uint8)
    X[:, 0] += 1
    return X


@pytest.fixture(params=TRANSFORMS)
def classes(request: pytest.FixtureRequest, rng: np.random.Generator) -> LinearClasses:
    weights, intercept = rng.normal(size=(9, 10)).astype(np.float32), rng.normal(size=10).astype(np.float32)
    return LinearClasses(request.param, weights, intercept)


def expected(classes: LinearClasses, X: Any) -> Any:
    shares = X / X.sum(axis=1, keepdims=True, dtype=np.float64)
    features = np.sqrt(shares) if classes.transform == "roots" else shares
    return softmax(features @ classes.weights.astype(np.float64) + classes.intercept, axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_posterior(classes: LinearClasses, rows: Any, kind: str) -> None:
    X = KINDS[kind](rows)
    np.testing.assert_allclose(classes.posterior(X), expected(classes, rows), atol=1e-5)
    np.testing.assert_allclose(classes.posterior(X).sum(axis=1), 1)
    np.testing.assert_allclose(classes.posterior_of(transformed(X, classes.transform)), classes.posterior(X), atol=1e-6)


def test_only_proportions_count(classes: LinearClasses, rows: Any) -> None:
    factor = np.geomspace(1e-20, 1e20, len(rows))[:, None]
    scaled = (rows * factor).astype(np.float32)
    np.testing.assert_allclose(classes.posterior(scaled), expected(classes, rows), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_all_zero_rows_count_as_even_ones(classes: LinearClasses, rows: Any, kind: str) -> None:
    zero = rows.copy()
    zero[[3, 40]] = 0
    even = rows.copy()
    even[[3, 40]] = 1
    np.testing.assert_allclose(classes.posterior(KINDS[kind](zero)), expected(classes, even), atol=1e-5)
    alone = classes.posterior(KINDS[kind](np.zeros((2, 9), np.uint8)))
    np.testing.assert_allclose(alone, expected(classes, np.ones((2, 9))), atol=1e-5)


def test_many_rows(classes: LinearClasses, rng: np.random.Generator) -> None:
    """More rows than one block: the bits of a row do not depend on the others."""
    X = rng.poisson(2.0, (9000, 9)).astype(np.float32)
    X[:, 0] += 1
    order = rng.permutation(len(X))
    t = classes.posterior(X)
    np.testing.assert_array_equal(classes.posterior(X[order]), t[order])
    for size in (1, 7, 4096, 4097):
        np.testing.assert_array_equal(classes.posterior(X[-size:]), t[-size:])
    np.testing.assert_allclose(t, expected(classes, X), atol=1e-5)


@pytest.mark.parametrize("power", [0.01, 0.5, 3.0, 200.0])
def test_sharpness_is_a_power(classes: LinearClasses, rows: Any, power: float) -> None:
    sharp = classes.sharpened(power).posterior(rows)
    np.testing.assert_allclose(sharp, sharpened(expected(classes, rows), power), atol=1e-4)


@pytest.mark.parametrize("power", [1.0, 0.01, 200.0])
def test_classes_at_places_among_more(classes: LinearClasses, rows: Any, power: float) -> None:
    place = np.array([15, 0, 3, 2, 7, 8, 9, 10, 16, 12])
    more = classes.sharpened(power).at(place, 17)
    assert more.n_classes == 17
    t = more.posterior(rows)
    np.testing.assert_allclose(t[:, place], classes.sharpened(power).posterior(rows), atol=1e-6)
    assert (np.delete(t, place, axis=1) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("transform", "power"), [("shares", 1), ("roots", 2)])
def test_features(rows: Any, kind: str, transform: Transform, power: int) -> None:
    rows[7] = 0
    X = KINDS[kind](rows)
    before = X.copy()
    features = transformed(X, transform)
    assert features.dtype == np.float32
    assert sparse.issparse(features) == sparse.issparse(X)
    dense = features.toarray() if sparse.issparse(features) else features
    np.testing.assert_allclose((dense.astype(np.float64) ** power).sum(axis=1), np.arange(70) != 7, atol=1e-6)
    assert not (before != X).sum()
