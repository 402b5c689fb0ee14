from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tnesi.execution.local import LocalEngine
from tnesi.model.fields import Fields, Shrinkage, draw_distinct, start_from_rows
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import NeighborSearch
from tnesi.training import stepwise
from tnesi.training.em import run_em
from tnesi.training.monitor import Monitor
from tnesi.training.stepwise import Recent, Stepwise


def some_rows(seed: int, n: int, d: int = 20) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 6.0, (8, d))[rng.integers(0, 8, n)]) + rng.integers(0, 2, (n, d))
    X[X.sum(axis=1) == 0, 0] = 1
    return normalize(X.astype(np.float32), d + 50)


def begun(rows: Rows, c: int, search: Any, strength: float = 1.0, iterations: int = 1) -> tuple[Stepwise, Fields]:
    fields = start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, 1), None)[:c])
    fields = search.arrange(fields)
    engine = LocalEngine.of(rows, None, 1)
    shrinkage = Shrinkage.towards(rows.moments(None)[0] - 1, strength)
    fields = run_em(engine, fields, search, Monitor(tol=0), max_iter=iterations, shrinkage=shrinkage)
    if search.learns_from_rows:
        sample = engine.sample(c)
        search.prepare(fields, sample.ids, sample.log_sum - engine.sample_constant(c))
    return Stepwise.of(fields, search, rows.row_sum, engine.activities.mass(c, None), strength), fields


@pytest.mark.parametrize("strength", [0.0, 1.0, 7.0])
def test_statistics_of_known_fields_are_those_of_the_m_step(strength: float) -> None:
    rows = some_rows(0, 400)
    stream, fields = begun(rows, 30, ExactSearch(5, 1), strength, iterations=60)
    stream._update(np.arange(30), 1)
    np.testing.assert_allclose(stream.fields.w, fields.w, rtol=1e-3)
    np.testing.assert_allclose(stream.statistics.sums.sum(axis=1), stream.statistics.mass * 50, rtol=1e-6)


@given(st.integers(0, 1000), st.integers(1, 60), st.sampled_from([None, 1e-2, 10.0, 500.0]))
@settings(max_examples=settings.default.max_examples // 2)
def test_fields_stay_fields(seed: int, batch: int, half_life: float | None) -> None:
    rows = some_rows(seed, 300)
    stream, _ = begun(rows, 25, ExactSearch(5, 1))
    for start in range(0, 300, batch):
        learned = stream.learn(rows.take(slice(start, start + batch)), None, half_life, 1)
        assert 0 <= learned.kept <= 1
        assert np.isfinite(learned.free_energy)
    assert np.isfinite(stream.fields.w).all()
    assert (stream.fields.w >= 1 - 1e-5).all()
    np.testing.assert_allclose(stream.fields.w.sum(axis=1), rows.row_sum, rtol=1e-4)
    np.testing.assert_allclose(stream.fields.log_w[:, :20], np.log(stream.fields.w), atol=1e-5)


@pytest.mark.parametrize("half_life", [50.0, 1000.0])
def test_the_mass_is_that_of_the_rows_remembered(half_life: float) -> None:
    rows = some_rows(1, 500)
    stream, _ = begun(rows, 20, ExactSearch(5, 1))
    for _ in range(40):
        for start in range(0, 500, 10):
            stream.learn(rows.take(slice(start, start + 10)), None, half_life, 1)
    mass = stream.statistics.mass.sum() * stream._scale
    assert mass == pytest.approx(half_life / np.log(2), rel=0.12)


def test_weights_are_repetitions() -> None:
    rows, more = some_rows(2, 300), some_rows(3, 60)
    count = np.random.default_rng(0).integers(1, 4, 60)
    one, _ = begun(rows, 25, ExactSearch(5, 1))
    other, _ = begun(rows, 25, ExactSearch(5, 1))
    weighted = one.learn(more, count.astype(np.float32), 100.0, 1)
    repeated = other.learn(more.take(np.repeat(np.arange(60), count)), None, 100.0, 1)
    np.testing.assert_allclose(one.fields.w, other.fields.w, rtol=1e-5)
    assert weighted.free_energy == pytest.approx(repeated.free_energy, abs=1e-4)
    assert weighted.kept == pytest.approx(repeated.kept)


@pytest.mark.parametrize("search", [ExactSearch(8, 2), NeighborSearch(8, 2), FullSearch(30, 2)], ids=lambda s: s.name)
def test_many_fields_and_every_search(search: Any) -> None:
    """Periodic updates take effect: new rows are explained better and better."""
    rows = some_rows(4, 9000)
    stream, _ = begun(rows.take(slice(0, 1500)), 600, search)
    starts = range(1500, 9000, 500)
    energy = [stream.learn(rows.take(slice(n, n + 500)), None, None, 2).free_energy for n in starts]
    assert np.mean(energy[-3:]) > np.mean(energy[:3]) + 0.05


def test_unused_fields_begin_anew_where_rows_are_explained_badly(
    digits: tuple[Any, Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = digits[0]
    moved = normalize(X[:, rng.permutation(64)], 180)
    energy = []
    for share in (stepwise._UNUSED, 0.0):
        monkeypatch.setattr(stepwise, "_UNUSED", share)
        stream, _ = begun(normalize(X, 180), 100, ExactSearch(15, 1))
        for rows in [normalize(X, 180)] * 3 + [moved] * 5:
            learned = [stream.learn(rows.take(slice(n, n + 200)), None, 3000.0, 1) for n in range(0, 1700, 200)]
        energy.append(np.mean([batch.free_energy for batch in learned]))
    assert energy[0] > energy[1] + 2


def test_recent_rows() -> None:
    recent = Recent.empty(1, 2)
    size = recent.quality.size
    ids = np.arange(2 * size + 10, dtype=np.int32)[:, None].repeat(3, axis=1)
    recent.add(ids[:7], np.arange(7.0))
    assert recent.n == 7
    np.testing.assert_array_equal(recent.ids[:7, 0], np.arange(7))
    recent.add(ids[7:], np.arange(7.0, len(ids)))
    assert sorted(recent.quality) == list(range(len(ids) - size, len(ids)))
    np.testing.assert_array_equal(recent.ids[:, 0], recent.quality)
