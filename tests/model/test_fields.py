from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tnesi import PoissonMixture
from tnesi.model.fields import Shrinkage, draw_distinct, start_from_rows, start_hebbian
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search.exact import ExactSearch, full_step


@pytest.fixture
def rows(rng: np.random.Generator) -> Rows:
    return normalize(rng.integers(0, 9, (50, 12)).astype(np.uint8) + 1, 40)


def test_start_does_not_depend_on_the_order_of_rows(rows: Rows, rng: np.random.Generator) -> None:
    order = rng.permutation(len(rows))
    mixed = rows.take(order)
    one = start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 7, 1), None)[:10])
    other = start_from_rows(mixed, None, draw_distinct(row_hashes(mixed.x, 7, 1), None)[:10])
    np.testing.assert_allclose(one.w, other.w, rtol=1e-6)


def test_start_with_weights_is_start_with_repeated_rows(rows: Rows, rng: np.random.Generator) -> None:
    count = rng.integers(1, 5, len(rows))
    repeated = rows.take(np.repeat(np.arange(len(rows)), count))
    one = start_from_rows(
        rows, count.astype(np.float32), draw_distinct(row_hashes(rows.x, 7, 1), count.astype(np.float32))[:10]
    )
    other = start_from_rows(repeated, None, draw_distinct(row_hashes(repeated.x, 7, 1), None)[:10])
    np.testing.assert_allclose(one.w, other.w, rtol=1e-6)


def test_start_follows_the_weights(rows: Rows) -> None:
    weight = np.full(len(rows), 1e-6, np.float32)
    weight[[3, 30]] = 1.0
    w = start_from_rows(rows, weight, draw_distinct(row_hashes(rows.x, 0, 1), weight)[:2]).w
    mean, _ = rows.moments(weight)
    expected = 0.5 * rows.take([3, 30]).y() + 0.5 * mean
    np.testing.assert_allclose(np.sort(w, axis=0), np.sort(expected, axis=0), rtol=1e-5)


def test_start_sums_to_norm_and_differs_by_seed(rows: Rows) -> None:
    starts = [start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, seed, 1), None)[:10]).w for seed in (0, 1)]
    np.testing.assert_allclose(starts[0].sum(axis=1), rows.row_sum, rtol=1e-6)
    assert not np.array_equal(starts[0], starts[1])


def test_hebbian_start_is_too_large_on_purpose(rows: Rows, rng: np.random.Generator) -> None:
    fields = start_hebbian(rows, None, 20, rng)
    assert (fields.w_sum > rows.row_sum).all()
    mean, std = rows.moments(None)
    assert (fields.w >= mean.astype(np.float32) - 1e-4).all()
    assert (fields.w <= (mean + 2 * std).astype(np.float32) + 1e-4).all()


def test_moments_with_weights(rows: Rows) -> None:
    count = np.arange(len(rows)) % 4
    present = np.repeat(np.arange(len(rows)), count)
    y = rows.take(present).y().astype(np.float64)
    mean, std = rows.moments(count.astype(np.float32))
    np.testing.assert_allclose(mean, y.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(std, y.std(axis=0), rtol=1e-3)


@pytest.mark.parametrize("strength", [0.5, 1.0, 7.0])
def test_shrinkage_is_as_many_rows_at_the_mean(rows: Rows, strength: float) -> None:
    fields = start_from_rows(rows, None, np.arange(6))
    activities = ExactSearch(3, 1).find(fields, rows)
    shrinkage = Shrinkage.towards(rows.moments(None)[0] - 1, strength)
    plain, mass = fields.m_step(rows, None, activities, 1)
    shrunk, same_mass = fields.m_step(rows, None, activities, 1, shrinkage=shrinkage)
    np.testing.assert_array_equal(mass, same_mass)
    mean = rows.y().mean(axis=0)
    expected = (mass[:, None] * plain.w + strength * mean) / (mass[:, None] + strength)
    np.testing.assert_allclose(shrunk.w, expected, rtol=1e-5)
    np.testing.assert_allclose(shrunk.w.sum(axis=1), rows.row_sum, rtol=1e-5)
    np.testing.assert_allclose(shrunk.w_sum, rows.row_sum, rtol=1e-5)
    full, *_ = full_step(fields, rows, None, None, 1, shrinkage)
    np.testing.assert_allclose(full.w.sum(axis=1), rows.row_sum, rtol=1e-4)


def test_no_shrinkage_is_none(rows: Rows) -> None:
    assert Shrinkage.towards(rows.moments(None)[0] - 1, 0) is None


@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(0, 2**32), st.floats(1, 44), st.sampled_from([0.0, 1e-30, 1e-12, 1.0]))
def test_fields_sum_to_the_norm_whatever_the_weights(seed: int, decades: float, strength: float) -> None:
    """Weights may differ by many orders of magnitude: tiny masses are rounded, row sums are not."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(3, (120, 6)) + 1
    weight = 10.0 ** rng.uniform(-decades, 0, 120)
    weight[0] = 1
    mixture = PoissonMixture(60, truncation=3, row_sum=30, prior_strength=strength, max_iter=3, tol=0, random_state=0)
    weights = mixture.fit(X, sample_weight=weight).means_
    np.testing.assert_allclose(weights.sum(axis=1), 30, rtol=1e-4)
    assert weights.min() >= 1
