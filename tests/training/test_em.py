from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tnesi.execution.local import LocalEngine
from tnesi.model.fields import Fields, Shrinkage, draw_distinct, start_from_rows
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import NeighborSearch
from tnesi.training.em import run_em
from tnesi.training.monitor import Monitor


def problem(seed: int, n: int, d: int, c: int) -> tuple[Rows, Fields]:
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 6.0, (5, d))[rng.integers(0, 5, n)]) + rng.integers(0, 2, (n, d))
    X[X.sum(axis=1) == 0, 0] = 1
    rows = normalize(X.astype(np.float32), d + 50)
    return rows, start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, seed, 1), None)[:c])


def energies(monitor: Monitor) -> np.ndarray:
    return np.array([record["free_energy"] for record in monitor.history])


@given(st.integers(0, 10**6), st.integers(2, 150), st.integers(2, 40), st.data())
def test_free_energy_never_falls_under_exact_em(seed: int, n: int, d: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(1, min(n, 25)))
    rows, fields = problem(seed, n, d, c)
    weight = data.draw(st.sampled_from([None, np.random.default_rng(seed).uniform(0.1, 5, n).astype(np.float32)]))
    search = data.draw(st.sampled_from([ExactSearch(data.draw(st.integers(1, c)), 1), FullSearch(c, 1)]))
    monitor = Monitor(tol=0)
    run_em(LocalEngine.of(rows, weight, 1), fields, search, monitor, max_iter=12)
    assert (np.diff(energies(monitor)) > -2e-4).all()


@given(st.integers(0, 10**6), st.integers(2, 150), st.integers(2, 40), st.floats(0.01, 20), st.data())
def test_free_energy_plus_log_prior_never_falls(
    seed: int, n: int, d: int, strength: float, data: st.DataObject
) -> None:
    c = data.draw(st.integers(1, min(n, 25)))
    rows, fields = problem(seed, n, d, c)
    weight = data.draw(st.sampled_from([None, np.random.default_rng(seed).uniform(0.1, 5, n).astype(np.float32)]))
    search = data.draw(st.sampled_from([ExactSearch(data.draw(st.integers(1, c)), 1), FullSearch(c, 1)]))
    shrinkage = Shrinkage.towards(rows.moments(weight)[0] - 1, strength)
    assert shrinkage is not None
    monitor, log_prior = Monitor(tol=0), []
    run_em(
        LocalEngine.of(rows, weight, 1), fields, search, monitor, max_iter=10, shrinkage=shrinkage,
        observe=lambda fields: log_prior.append(shrinkage.log_density(fields)),
    )  # fmt: skip
    total = n if weight is None else weight.sum()
    assert (np.diff(energies(monitor) + np.array(log_prior) / total) > -5e-4).all()


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 20))
@settings(max_examples=settings.default.max_examples // 4)
def test_free_energy_never_falls_under_neighborhood_em(seed: int, truncation: int, g: int) -> None:
    """Lists of any length, even of the field alone: K^(n) never gets worse."""
    rows, fields = problem(seed, 900, 12, 600)
    search = NeighborSearch(truncation, 1, n_neighbors=g)
    monitor = Monitor(tol=0)
    run_em(LocalEngine.of(rows, None, 1), search.arrange(fields), search, monitor, max_iter=8)
    assert (np.diff(energies(monitor)) > -2e-4).all()


def test_neighborhood_em_ends_where_exact_em_ends() -> None:
    rows, fields = problem(3, 3000, 25, 600)
    ends = []
    for search in (ExactSearch(10, 2), NeighborSearch(10, 2)):
        monitor = Monitor(tol=0)
        run_em(LocalEngine.of(rows, None, 2), fields, search, monitor, max_iter=15)
        ends.append(monitor.history[-1]["free_energy"])
    assert ends[1] == pytest.approx(ends[0], abs=0.05)


def test_fields_and_activities_match() -> None:
    rows, fields = problem(1, 200, 20, 20)
    for search in (ExactSearch(5, 1), FullSearch(30, 1)):
        for tol in (0, 1e-2):
            engine = LocalEngine.of(rows, None, 1)
            learned = run_em(engine, fields, search, Monitor(tol=tol), max_iter=40)
            again = search.find(learned, rows)
            np.testing.assert_allclose(engine.activities.log_sum, again.log_sum, atol=1e-3)


def test_converged_fields_have_the_row_sum() -> None:
    rows, fields = problem(1, 200, 20, 20)
    learned = run_em(LocalEngine.of(rows, None, 1), fields, ExactSearch(5, 1), Monitor(tol=0), max_iter=10)
    np.testing.assert_allclose(learned.w.sum(axis=1), rows.row_sum, rtol=1e-5)
    np.testing.assert_allclose(learned.w_sum, rows.row_sum, rtol=1e-5)


def test_a_listener_can_stop() -> None:
    rows, fields = problem(1, 200, 20, 20)
    for search in (ExactSearch(5, 1), FullSearch(30, 1)):
        monitor = Monitor(tol=0, listener=lambda record: record["iteration"] == 3)
        run_em(LocalEngine.of(rows, None, 1), fields, search, monitor, max_iter=50)
        assert [record["iteration"] for record in monitor.history] == [0, 1, 2, 3]
        assert not monitor.converged
        at_once = Monitor(tol=0, listener=lambda record: True)
        run_em(LocalEngine.of(rows, None, 1), fields, search, at_once, max_iter=50)
        assert len(at_once.history) == 1
