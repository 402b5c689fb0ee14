from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tnesi.data import Data
from tnesi.execution.local import LocalEngine
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, draw_distinct, start_from_rows
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search.exact import ExactSearch, FullSearch, full_step
from tnesi.search.neighbors import Cells, NeighborSearch


def clustered(rng: np.random.Generator, n: int = 4000, d: int = 30) -> Rows:
    """Rows around a few hundred centers, which have meaningful neighborhoods."""
    centers = rng.gamma(0.3, 1.0, (300, d)) + 0.01
    X = rng.poisson(60 * centers[rng.integers(0, 300, n)] / centers.mean(axis=1).mean())
    return normalize(np.minimum(X + (X.sum(axis=1, keepdims=True) == 0), 255).astype(np.uint8), d + 80)


@pytest.fixture(scope="module")
def rows() -> Rows:
    return clustered(np.random.default_rng(0))


@pytest.fixture(scope="module")
def fields(rows: Rows) -> Fields:
    return start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, 1), None)[:700])


def begun(search: Any, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
    """The activities of new rows."""
    engine = LocalEngine.of(rows, None, 2)
    engine.begin(fields, search, prior)
    return engine.activities


def shared(a: Activities, b: Activities) -> float:
    return float(np.mean([len(np.intersect1d(x, y)) / len(x) for x, y in zip(a.ids, b.ids, strict=True)]))


def test_new_points_find_nearly_what_exact_search_finds(rows: Rows, fields: Fields) -> None:
    exact = ExactSearch(10, 2).find(fields, rows)
    found = begun(NeighborSearch(10, 2), fields, rows)
    assert shared(found, exact) > 0.9
    assert np.mean(found.best == exact.best) > 0.97
    assert (found.log_sum <= exact.log_sum + 1e-3).all()


def test_updates_never_make_a_point_worse(rows: Rows, fields: Fields) -> None:
    search = NeighborSearch(8, 2)
    before = begun(search, fields, rows)
    for _ in range(3):
        after = before.copy()
        search.improve(fields, rows, None, after)
        assert (after.log_sum >= before.log_sum - 1e-4).all()
        before = after


def test_few_fields_are_searched_exactly(rows: Rows, fields: Fields) -> None:
    few = fields.take(np.arange(100))
    exact, found = ExactSearch(7, 1).find(few, rows), begun(NeighborSearch(7, 1), few, rows)
    np.testing.assert_allclose(found.log_sum, exact.log_sum, rtol=1e-5, atol=1e-4)
    assert shared(found, exact) > 0.999


def test_every_field_is_in_some_cell(fields: Fields) -> None:
    cells = Cells.over(fields, 1)
    assert set(cells.lists[cells.lists >= 0].tolist()) == set(range(len(fields)))


def test_arranging_only_changes_the_order(rows: Rows, fields: Fields) -> None:
    search = NeighborSearch(8, 1)
    arranged = search.arrange(fields)
    np.testing.assert_array_equal(np.unique(arranged.w, axis=0), np.unique(fields.w, axis=0))
    plain = begun(NeighborSearch(8, 1), fields, rows)
    np.testing.assert_allclose(begun(search, arranged, rows).log_sum.mean(), plain.log_sum.mean(), rtol=1e-4)


def test_prior_is_added_to_the_inputs(rows: Rows, fields: Fields, rng: np.random.Generator) -> None:
    few = fields.take(np.arange(60))
    table = rng.normal(0, 3, (3, 60)).astype(np.float32)
    row = rng.integers(0, 3, len(rows)).astype(np.int32)
    prior = Prior(table, row)
    expected = ExactSearch(60, 1).find(few, rows, prior)
    for search in (NeighborSearch(60, 1), FullSearch(60, 1)):
        np.testing.assert_allclose(search.find(few, rows, prior).log_sum, expected.log_sum, rtol=1e-4)
    everything = few.inputs(rows, 1) * rows.scale[:, None] + few.log_w_sum + table[row]
    np.testing.assert_array_equal(expected.best, everything.argmax(axis=1))


def test_full_search_is_exact_search_without_truncation(rows: Rows, fields: Fields) -> None:
    few = fields.take(np.arange(50))
    full, exact = FullSearch(50, 1).find(few, rows), ExactSearch(50, 1).find(few, rows)
    np.testing.assert_allclose(full.to_csr(50).toarray(), exact.to_csr(50).toarray(), atol=2e-5)


def test_full_step_is_the_m_step_of_all_activities(rows: Rows, fields: Fields) -> None:
    few = fields.take(np.arange(50))
    activities = ExactSearch(50, 1).find(few, rows)
    weight = (np.arange(len(rows)) % 3).astype(np.float32)
    expected, _ = few.m_step(rows, weight, activities, 1)
    found, log_sum, best = full_step(few, rows, weight, None, 1)
    np.testing.assert_allclose(found.w, expected.w, rtol=1e-3)
    np.testing.assert_allclose(log_sum, activities.log_sum, rtol=1e-5)
    assert np.mean(best == activities.best) > 0.99


@pytest.mark.slow
def test_on_images_the_start_is_nearly_exact(mnist: Data) -> None:
    rows = normalize(mnist.X[:20_000], 900)
    search = NeighborSearch(15, 2)
    fields = search.arrange(start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, 2), None)[:3000]))
    exact, found = ExactSearch(15, 2).find(fields, rows), begun(search, fields, rows)
    assert np.mean(found.best == exact.best) > 0.97
    assert exact.log_sum.mean() - found.log_sum.mean() < 0.05
