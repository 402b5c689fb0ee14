"""Rows in memory, in many grains or in a file: the same result, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi.execution import store
from tnesi.execution.local import LocalEngine, sample_step
from tnesi.execution.part import Part
from tnesi.execution.store import ArrayStore, FileStore, grain_rows, parts
from tnesi.model.fields import Fields, draw_distinct, start_from_rows
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search.exact import ExactSearch
from tnesi.search.neighbors import NeighborSearch
from tnesi.training.em import run_em
from tnesi.training.monitor import Monitor


@pytest.fixture
def small_grains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_GRAIN", 256)


@pytest.fixture(params=[np.uint8, np.float32], name="counts")
def counts_of_a_kind(request: pytest.FixtureRequest, counts: Any) -> Any:
    return counts[:1700].astype(request.param)


def in_file(counts: Any, folder: Path) -> FileStore:
    path = folder / "rows"
    path.write_bytes(b"header" + counts.tobytes())
    return FileStore(path, counts.dtype, *counts.shape, offset=6)


def test_a_file_holds_what_was_written(counts: Any, tmp_path: Path) -> None:
    found = in_file(counts, tmp_path)
    np.testing.assert_array_equal(found.read(slice(100, 200)), counts[100:200])
    np.testing.assert_array_equal(found.read(slice(1600, 9999)), counts[1600:])
    index = np.array([5, 1699, 5, 0])
    np.testing.assert_array_equal(found.take(index), counts[index])
    for place, x in parts(found, 300):
        np.testing.assert_array_equal(x, counts[place])


def test_all_zero_rows_of_a_file_are_even(counts: Any, tmp_path: Path) -> None:
    counts[[3, 300]] = 0
    found = in_file(counts, tmp_path)
    even = FileStore(found.path, found.dtype, *counts.shape, offset=6, even=np.array([3, 300]))
    counts[[3, 300]] = 1
    for place, x in parts(even, 256):
        np.testing.assert_array_equal(x, counts[place])
    np.testing.assert_array_equal(even.take(np.array([300, 4])), counts[[300, 4]])


def test_a_file_that_shrinks_is_an_error(counts: Any, tmp_path: Path) -> None:
    found = in_file(counts, tmp_path)
    found.path.write_bytes(found.path.read_bytes()[:-1])
    with pytest.raises(OSError, match="shorter"):
        found.read(slice(1000, None))
    with pytest.raises(OSError, match="shorter"):
        found.take(np.array([1699]))


@pytest.mark.parametrize("search", [NeighborSearch, ExactSearch])
@pytest.mark.parametrize("n_fields", [40, 600])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_grains")
def test_the_same_bits_from_memory_and_from_a_file(
    counts: Any, tmp_path: Path, search: Any, n_fields: int, weighted: bool, rng: np.random.Generator
) -> None:
    weight = rng.integers(1, 4, len(counts)).astype(np.float32) if weighted else None
    sums = counts.sum(axis=1, dtype=np.float64)
    results = []
    for where in (ArrayStore(counts), in_file(counts, tmp_path)):
        for n_threads in (1, 2):
            engine = LocalEngine(Part(where, sums, weight, n_threads))
            engine.normalize(90)
            monitor = Monitor(tol=0)
            rows = normalize(counts, 90)
            fields = start_from_rows(rows, weight, draw_distinct(engine.survey(1).hashes, weight)[:n_fields])
            own = search(10, n_threads)
            learned = run_em(engine, own.arrange(fields), own, monitor, max_iter=5)
            results.append((learned.w, engine.activities.ids, engine.activities.s, monitor.history[-1]["free_energy"]))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def start(rows: Rows, n_fields: int) -> Fields:
    return start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, 1), None)[:n_fields])


def test_grains_change_only_the_rounding(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = normalize(counts, 90)
    weights = []
    for grain in (128, 512, 65536):
        monkeypatch.setattr(store, "_GRAIN", grain)
        search = ExactSearch(5, 1)
        weights.append(run_em(LocalEngine.of(rows, None, 1), start(rows, 30), search, Monitor(tol=0), max_iter=3).w)
    np.testing.assert_allclose(weights[0], weights[2], rtol=1e-4)
    np.testing.assert_allclose(weights[1], weights[2], rtol=1e-4)


def test_grains_fit_into_memory() -> None:
    assert grain_rows(2) == grain_rows(4096) == 65536
    assert grain_rows(5000) == 32768
    assert grain_rows(10**9) == 256


def test_a_sample_has_enough_rows_for_every_field() -> None:
    for n_rows, n_fields in ((10, 5), (60_000, 10_000), (10**6, 10**4), (10**9, 10**6)):
        step = sample_step(n_rows, n_fields)
        assert n_rows // step >= min(n_rows, 8 * n_fields)
