"""Soft bins are linear B-splines, exact for integers of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import SplineTransformer

from tnesi.encoders.soft_bins import positions, quantile_knots, soft_bins

whole = st.integers(-(2**63), 2**63 - 1)


def test_the_same_as_splines() -> None:
    """scikit-learn's splines of degree 1 with the same knots, which continue as constants outside."""
    values = np.random.default_rng(0).normal(size=200)
    knots = quantile_knots(values, 5)
    outside = np.concatenate([values, [-9.0, 9.0]])
    splines = SplineTransformer(degree=1, knots=knots[:, None], extrapolation="constant").fit(values[:, None])
    np.testing.assert_allclose(soft_bins(positions(outside, knots), 5), splines.transform(outside[:, None]), atol=1e-6)


@given(st.lists(whole, min_size=1, max_size=50), st.integers(2, 9))
def test_integers_of_any_size(values: list[int], n_knots: int) -> None:
    """Positions are those of exact arithmetic, and knots are among the values."""
    given_values = np.array(values, np.int64)
    knots = quantile_knots(given_values, n_knots)
    assert set(knots.tolist()) <= set(values)
    assert (knots[:1] == min(values)).all()
    assert (knots[-1:] == max(values)).all()
    found = positions(given_values, knots)
    for value, position in zip(values, found.tolist(), strict=True):
        left = min(int((knots <= value).sum()) - 1, max(0, len(knots) - 2))
        if len(knots) > 1:  # a position just below a knot may be rounded to it
            low, high = int(knots[left]), int(knots[left + 1])
            assert abs(left + (value - low) / (high - low) - position) < 1e-9
    weights = soft_bins(found, len(knots))
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-6)
    assert weights.min() >= 0
    assert ((weights > 0).sum(axis=1) <= 2).all()


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.5, 7.0, 100.0]) | st.floats(-1e3, 1e3), min_size=1, max_size=99))
def test_frequent_values_take_one_knot(values: list[Any]) -> None:
    knots = quantile_knots(np.array(values), 5)
    assert (np.diff(knots) > 0).all()
    assert 1 <= len(knots) <= 8  # of at most three frequent values, and the ends
    distinct = np.unique(values)
    if len(distinct) <= 5:
        np.testing.assert_array_equal(knots, distinct)


def test_the_smallest_floats() -> None:
    """Half the smallest number is 0, and so is its distance from 0."""
    knots = np.array([0.0, 5e-324])
    assert np.isfinite(soft_bins(positions(knots, knots), 2)).all()
