"""On a cluster: the same bits as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.array
import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster
from scipy import sparse
from sklearn.base import clone

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.errors import InvalidParameterError
from tnesi.execution import Dask, store
from tnesi.execution.dask import blocks, cluster, tasks
from tnesi.execution.dask.blocks import Blocks
from tnesi.execution.dask.cluster import Cluster, ClusterError
from tnesi.execution.dask.engine import DaskEngine
from tnesi.execution.local import LocalEngine
from tnesi.execution.part import Part
from tnesi.execution.store import ArrayStore, FileStore
from tnesi.model.activities import Activities
from tnesi.model.fields import start_from_rows
from tnesi.model.rows import normalize
from tnesi.search.exact import ExactSearch
from tnesi.search.neighbors import NeighborSearch
from tnesi.training.em import run_em
from tnesi.training.monitor import Monitor

NORM = 90
MANY = {"n_components": 600, "truncation": 10}


@pytest.fixture(scope="module", autouse=True)
def small_grains() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_GRAIN", 256)
        yield


@contextmanager
def started(n_workers: int) -> Iterator[Client]:
    """A cluster of processes."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


def mixture(**parameters: Any) -> PoissonMixture:
    given = {"n_components": 40, "row_sum": NORM, "max_iter": 5, "tol": 0, "random_state": 0}
    return PoissonMixture(**(given | parameters))


def assert_same(one: Any, other: Any) -> None:
    """All learned values have the same bits."""
    np.testing.assert_array_equal(one.means_, other.means_)
    for mine, theirs in zip(one.history_, other.history_, strict=True):
        assert mine | {"seconds": 0} == theirs | {"seconds": 0}
    assert one.model_.search.name == other.model_.search.name
    for name in ("lists", "doubtful_below"):
        np.testing.assert_array_equal(getattr(one.model_.search, name, None), getattr(other.model_.search, name, None))


def assert_nothing_left(client: Client) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if not client.cluster.scheduler.tasks:
            return
        time.sleep(0.05)
    raise AssertionError(list(client.cluster.scheduler.tasks))


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("parameters", [{}, MANY, {**MANY, "search": "exact"}], ids=["few", "many", "exact"])
def test_the_same_bits_in_processes(counts: Any, processes: Client, kind: Any, parameters: Any) -> None:
    X = counts.astype(kind)
    weight = None if kind == np.uint8 else np.arange(len(X)) % 4
    local = mixture(**parameters).fit(X, sample_weight=weight)
    far = mixture(**parameters, execution=Dask(processes)).fit(X, sample_weight=weight)
    assert_same(local, far)
    assert_nothing_left(processes)


@pytest.mark.parametrize("per_slot", [1, 2, 100])
def test_the_same_bits_with_any_blocks(
    counts: Any, threads: Client, per_slot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "PER_SLOT", per_slot)
    assert_same(mixture(**MANY).fit(counts), mixture(**MANY, execution=Dask(threads)).fit(counts))


@pytest.mark.parametrize("search", ["neighbors", "exact"])
def test_sparse_rows(processes: Client, search: Any) -> None:
    X = sparse.random_array((6_000, 90), density=0.05, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    X = X[np.diff(X.indptr) > 0]
    weight = np.random.default_rng(1).uniform(1, 2, X.shape[0])
    here = PoissonMixture(70, search=search, max_iter=3, tol=0, random_state=0).fit(X, sample_weight=weight)
    there = clone(here).set_params(execution=Dask(processes)).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(there.means_, here.means_)
    assert there.lower_bound_ == here.lower_bound_


def test_the_same_classifier(counts: Any, threads: Client) -> None:
    y = np.where(np.arange(len(counts)) < 90, counts[:, 1] > 5, -1)
    given: Any = {"n_components": 60, "max_iter": 3}
    local = SimpletronClassifier(mixture(**given), n_mixtures=2).fit(counts, y)
    far = SimpletronClassifier(mixture(**given, execution=Dask(threads)), n_mixtures=2).fit(counts, y)
    np.testing.assert_array_equal(local.predict_proba(counts), far.predict_proba(counts))
    np.testing.assert_array_equal(local.activities_.toarray(), far.activities_.toarray())
    assert_nothing_left(threads)


def test_a_vote_on_a_cluster(counts: Any, threads: Client) -> None:
    """Rows of a Dask array are gone with the cluster: other labels are learned from activities only."""
    rows = dask.array.from_array(counts, chunks=(700, -1))
    y = np.where(np.arange(len(counts)) < 90, counts[:, 1] > 5, -1)
    given: Any = {"n_components": 60, "max_iter": 3}
    local = SimpletronClassifier(mixture(**given)).fit(counts, y)
    far = SimpletronClassifier(mixture(**given, execution=Dask(threads))).fit(rows, y)
    assert far.labeling_ == "vote"
    assert far.votes_ == local.votes_
    assert far.expected_accuracy_ == local.expected_accuracy_
    np.testing.assert_array_equal(far.predict_proba(counts), local.predict_proba(counts))
    np.testing.assert_array_equal(far.label_distributions_, local.label_distributions_)
    assert far.fit_labels(y).labeling_ in ("clusters", "spreading")
    assert far.votes_ == {}
    assert local.fit_labels(y).labeling_ == "vote"
    with pytest.raises(InvalidParameterError, match="labeling='leading' needs the rows themselves"):
        far.set_params(labeling="leading").fit_labels(y)
    assert_nothing_left(threads)


def test_the_chosen_norm_is_the_same(counts: Any, threads: Client) -> None:
    local = mixture(row_sum="auto", max_iter=1).fit(counts)
    assert mixture(row_sum="auto", max_iter=1, execution=Dask(threads)).fit(counts).row_sum_ == local.row_sum_


def test_rows_in_one_grain(counts: Any, threads: Client) -> None:
    X = counts[:200]
    assert_same(mixture().fit(X), mixture(execution=Dask(threads)).fit(X))


@pytest.mark.parametrize("keeps", [True, False])
def test_rows_in_a_file(
    counts: Any, processes: Client, tmp_path: Path, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows").write_bytes(b"head" + counts.tobytes())
    in_file = FileStore(tmp_path / "rows", counts.dtype, *counts.shape, offset=4, even=np.array([7, 1000]))
    counts = counts.copy()
    counts[[7, 1000]] = 1
    sums = counts.sum(axis=1, dtype=np.float64)
    if not keeps:
        monkeypatch.setattr(blocks, "_MOST_OF_MEMORY", 0)
    found = []
    there = Cluster(processes)
    for engine in (LocalEngine(Part(ArrayStore(counts), sums, None, 1)), there.engine(in_file, sums, None, 1)):
        engine.normalize(NORM)
        fields = start_from_rows(normalize(counts, NORM), None, np.arange(50))
        learned = run_em(engine, fields, NeighborSearch(10, 1), Monitor(tol=0), max_iter=3)
        found.append((learned.w, engine.activities.ids, engine.activities.s, engine.activities.log_sum))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    there.close()
    (tmp_path / "rows").unlink()
    gone = Cluster(processes)
    with pytest.raises(OSError, match=r"rows does not exist on .*: workers read the rows themselves"):
        gone.engine(in_file, sums, None, 1).survey(0)
    gone.close()
    assert_nothing_left(processes)


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.int64, np.float64])
def test_dask_arrays(counts: Any, threads: Client, kind: Any) -> None:
    X = counts.astype(kind) * (1e-38 if kind == np.float64 else 1)  # sums that have to be scaled
    weight = np.arange(len(X)) % 3
    X[5] = 0
    far = mixture(execution=Dask(threads))
    with pytest.warns(UserWarning, match="1 of .* rows are all zero"):
        local = mixture().fit(X, sample_weight=weight)
    with pytest.warns(UserWarning, match="1 of .* rows are all zero"):
        far.fit(dask.array.from_array(X, chunks=(700, 10)), sample_weight=weight)
    assert_same(local, far)
    assert local.n_zero_rows_ == far.n_zero_rows_ == 1
    assert_nothing_left(threads)


@pytest.mark.parametrize(("row", "value"), [(1500, np.nan), (1500, -1), (0, np.inf)])
def test_bad_rows_of_dask_arrays(counts: Any, threads: Client, row: int, value: float) -> None:
    X = counts.astype(np.float64)
    X[row] = value
    far = mixture(execution=Dask(threads))
    said = []
    for given in (X, dask.array.from_array(X, chunks=(500, 21))):
        with pytest.raises(ValueError, match=r"Negative values|contains (NaN|inf)") as raised:
            far.fit(given)
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert_nothing_left(threads)


def test_dask_arrays_of_unknown_length(counts: Any, threads: Client) -> None:
    X = dask.array.from_array(counts, chunks=500)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        mixture(execution=Dask(threads)).fit(X[X[:, 0] > 3])


def kill(client: Client, *which: int) -> None:
    """Kill workers, as the system does."""
    for pid in [client.cluster.workers[n].pid for n in which]:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_workers_that_die(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """During an iteration, between two iterations, and all together; nannies start new ones."""
    local = mixture(max_iter=8, **MANY).fit(counts)
    with started(2) as client:
        submitted = DaskEngine._sum
        killed = []

        def in_the_middle(engine: DaskEngine, *given: Any) -> Any:
            if engine._iteration == 2 and 2 not in killed:
                kill(client, 0)
                killed.append(2)
            return submitted(engine, *given)

        def between(record: dict[str, Any]) -> None:
            if record["iteration"] == 4:
                kill(client, 1)
                killed.append(4)
            if record["iteration"] == 8:  # what was found is still on the workers
                client.wait_for_workers(2)
                kill(client, 0, 1)
                killed.append(8)

        monkeypatch.setattr(DaskEngine, "_sum", in_the_middle)
        far = mixture(max_iter=8, **MANY, execution=Dask(client, callback=between)).fit(counts)
        assert killed == [2, 4, 8]
        assert_same(local, far)
        assert_nothing_left(client)


@pytest.mark.slow
def test_workers_that_join_get_blocks(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    local = mixture().fit(counts)
    homes: list[set[str]] = []
    asked = Blocks.ready

    def ready(self: Blocks) -> set[int]:
        moved = asked(self)
        homes.append(set(self.homes))
        return moved

    monkeypatch.setattr(Blocks, "ready", ready)
    with started(1) as client:

        def join(record: dict[str, Any]) -> None:
            if record["iteration"] == 1:
                client.cluster.scale(2)
                client.wait_for_workers(2)

        far = mixture(execution=Dask(client, callback=join)).fit(counts)
    assert_same(local, far)
    assert (len(homes[0]), len(homes[-1])) == (1, 2)


def on_worker(client: Client, action: Callable[..., Any], n_workers: int | None = None) -> None:
    client.run(action, workers=list(client.nthreads())[:n_workers])


def slow_down() -> None:
    tasks.undisturbed = tasks.improve  # type: ignore[attr-defined]

    def slow(*given: Any) -> Any:
        time.sleep(0.05)
        return tasks.undisturbed(*given)  # type: ignore[attr-defined]

    tasks.improve = slow


def run_out_of_memory() -> None:
    tasks.undisturbed = tasks.improve  # type: ignore[attr-defined]

    def full(*given: Any) -> Any:
        raise MemoryError

    tasks.improve = full


def recover() -> None:
    tasks.improve = tasks.undisturbed  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_slow_worker(counts: Any, processes: Client) -> None:
    on_worker(processes, slow_down, 1)
    try:
        far = mixture(max_iter=2, execution=Dask(processes)).fit(counts)
    finally:
        on_worker(processes, recover, 1)
    assert_same(mixture(max_iter=2).fit(counts), far)


@pytest.mark.slow
def test_memory(counts: Any, processes: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    far = mixture(execution=Dask(processes))
    on_worker(processes, run_out_of_memory)
    try:
        with pytest.raises(ClusterError, match=r"ran out of memory in tnesi-.*: start more workers"):
            far.fit(counts)
    finally:
        on_worker(processes, recover)
    assert_nothing_left(processes)
    workers = {"tcp://a": cluster.Worker(1, 40_000), "tcp://b": cluster.Worker(1, 40_000)}
    monkeypatch.setattr(Cluster, "workers", lambda self: workers)
    with pytest.raises(ClusterError, match=r"the rows need .* GB, but the 2 workers have .* GB of memory"):
        far.fit(counts)
    workers = {"tcp://a": cluster.Worker(1, 200_000)}
    with pytest.raises(ClusterError, match=r"tcp://a has 0.0002 GB of memory, but needs .*fewer fields"):
        Blocks(Cluster(processes), ArrayStore(counts), counts.sum(axis=1), None).check_room(100_000)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KilledWorker("tnesi-improve-1", None, 3), "4 workers died .* lack of memory"),
        (ModuleNotFoundError("No module named 'tnesi'"), "install the same version of tnesi"),
    ],
)
def test_tasks_that_fail(error: Exception, words: str) -> None:
    future: Any = SimpleNamespace(status="error", key="tnesi-improve-1", exception=lambda: error)
    with pytest.raises(ClusterError, match=words):
        blocks._raise_error(future)


def test_workers_that_are_lost_again_and_again(counts: Any, threads: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> Any:
        raise blocks.LostError("tcp://there cannot be reached")

    monkeypatch.setattr("tnesi.execution.dask.engine._TRIES", 2)
    monkeypatch.setattr(DaskEngine, "_sum", lost)
    far = mixture(execution=Dask(threads))
    with pytest.raises(ClusterError, match=r"lost 2 times .*tcp://there"):
        far.fit(counts)
    assert not hasattr(far, "means_")
    assert_nothing_left(threads)


def hide_package() -> None:
    sys.modules["tnesi_hidden"], sys.modules["tnesi"] = sys.modules["tnesi"], None  # type: ignore[assignment]


def show_package() -> None:
    sys.modules["tnesi"] = sys.modules.pop("tnesi_hidden")


def test_workers_without_the_package(counts: Any, processes: Client) -> None:
    far = mixture(execution=Dask(processes))
    on_worker(processes, hide_package, 1)
    try:
        with pytest.raises(ClusterError, match=r"worker tcp://127.* does not have tnesi: install tnesi \d"):
            far.fit(counts)
    finally:
        on_worker(processes, show_package, 1)


@pytest.mark.parametrize("search", [NeighborSearch, ExactSearch])
def test_the_fields_of_a_point_are_all_that_a_pass_needs(counts: Any, search: Any) -> None:
    """The client's record of a block is enough to restore it."""
    rows = normalize(counts[:500], NORM)
    fields = start_from_rows(rows, None, np.arange(400, 490))
    own = search(10, 1)
    own.begin(fields)
    found = own.find(fields, rows)
    own.build_lists(found.ids, len(fields))
    restored = Activities.empty(*found.ids.shape)
    restored.ids[:] = tasks.wide(tasks.narrow(found.ids, len(fields)))
    for one in (found, restored):
        own.improve(fields, rows, None, one)
    for name in ("ids", "s", "log_sum"):
        np.testing.assert_array_equal(getattr(found, name), getattr(restored, name))


def test_empty_places_and_many_fields_survive_the_journey() -> None:
    ids = np.array([[3, 65534, -1]], np.int32)
    assert tasks.narrow(ids, 65535).dtype == np.uint16
    assert tasks.narrow(ids, 65536) is ids
    np.testing.assert_array_equal(tasks.wide(tasks.narrow(ids, 65535)), ids)


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7])
def test_blocks_are_whole_grains(counts: Any, n_workers: int) -> None:
    workers = {str(n): cluster.Worker(1, 0) for n in range(n_workers)}
    where = ArrayStore(counts)
    places = blocks.block_places(where, workers)
    grain = store.even_grain(where)
    assert [place.start % grain for place in places] == [0] * len(places)
    assert [place.stop for place in places] == [*(place.start for place in places[1:]), len(counts)]
    homes = blocks.evenly([1] * 12, [""] * 12, dict.fromkeys(workers, 1))
    assert max(map(homes.count, workers)) - min(map(homes.count, workers)) <= 1
