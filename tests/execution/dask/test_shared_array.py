"""Arrays that processes of one machine share."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

from tnesi import PoissonMixture
from tnesi.execution import Dask
from tnesi.execution.dask import shared_array, tasks
from tnesi.execution.dask.cluster import Cluster
from tnesi.execution.dask.shared_array import (
    OutOfReachError,
    SharedArray,
    allocate,
    can_open,
    can_share,
    opened,
    reading,
)
from tnesi.execution.store import ArrayStore
from tnesi.model.fields import Units

pytestmark = pytest.mark.skipif(not can_share(), reason="this system has no memfd")

READ = """
import pickle, sys
print(pickle.load(sys.stdin.buffer).array.tolist())
"""


def read_elsewhere(array: SharedArray) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", READ], input=pickle.dumps(array), capture_output=True, check=False)


def shared_files() -> int:
    """Return how many shared arrays this process has open; other threads may open other files meanwhile."""
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            names.append(str(descriptor.readlink()))
    return sum(name.startswith("/memfd:") for name in names)


def test_another_process_sees_what_is_written() -> None:
    array = SharedArray((2, 3), np.float32)
    assert not array.array.any()
    array.array[:] = [[1, 2, 3], [4, 5, 6]]
    assert len(pickle.dumps(array)) < 500
    assert read_elsewhere(array).stdout.decode().strip() == "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"


def test_a_reader_keeps_what_the_owner_lets_go() -> None:
    array = SharedArray((4,), np.int64)
    array.array[:] = 7
    sent = pickle.loads(pickle.dumps(array))
    assert sent.array.tolist() == [7] * 4
    assert not sent.array.flags.writeable
    del array
    assert sent.array.tolist() == [7] * 4


def test_what_is_gone_or_somebody_elses_is_refused() -> None:
    array = SharedArray((4,), np.int64)
    address = pickle.dumps(array)
    before = shared_files()
    del array
    assert shared_files() < before
    with pytest.raises(OutOfReachError, match="cannot open the shared array"):
        _ = pickle.loads(address).array
    other = SharedArray((4,), np.int64)  # replaces the first one
    wrong = pickle.loads(address)
    wrong._descriptor = other._descriptor
    assert not can_open(wrong)
    with pytest.raises(OutOfReachError, match="another file has its descriptor"):
        _ = wrong.array


def test_empty() -> None:
    assert read_elsewhere(SharedArray((0, 5), np.float32)).stdout.decode().strip() == "[]"


def test_without_room_nothing_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(shared_array.os, "posix_fallocate", no_room)
    before = shared_files()
    array = allocate((3, 2), np.float64, share=True)
    assert isinstance(array, np.ndarray)
    assert opened(array) is array
    assert shared_files() == before


def test_memory_is_used_again() -> None:
    first = allocate((2, 3), np.float32, share=True)
    assert isinstance(first, SharedArray)
    first.array[:] = 1
    sent = pickle.loads(pickle.dumps(first))
    with reading(sent) as [seen]:
        assert seen.tolist() == [[1, 1, 1]] * 2
    second = allocate((2, 3), "<f4", share=True, spare=first)
    assert isinstance(second, SharedArray)
    del first
    second.array[:] = 2
    with reading(pickle.loads(pickle.dumps(second))) as [seen]:
        assert seen.tolist() == [[2, 2, 2]] * 2
    with pytest.raises(OutOfReachError, match="has reused the memory"), reading(sent):
        pass


def test_whoever_reads_while_it_is_used_again_is_told() -> None:
    array = SharedArray((5,), np.uint8)
    with pytest.raises(OutOfReachError), reading(array, np.zeros(2)) as [seen, _]:
        array.reused().array[:] = 3
    assert seen.tolist() == [3] * 5


@pytest.mark.parametrize(("shape", "dtype"), [((2, 3), np.float32), ((3, 2), np.float64)])
def test_memory_of_another_form_is_not_used_again(shape: tuple[int, int], dtype: Any) -> None:
    spare = SharedArray(shape, dtype)
    array = allocate((3, 2), np.float32, share=True, spare=spare)
    assert isinstance(array, SharedArray)
    array.array[:] = 1
    assert not spare.array.any()
    assert isinstance(allocate((3, 2), np.float32, share=False, spare=array), np.ndarray)


def test_a_system_that_does_not_let_us(processes: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise PermissionError("Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(shared_array.os, "memfd_create", refuse)
        cluster, workers = Cluster(processes), processes.scheduler_info()["workers"]
        assert not cluster.shares_memory(workers)
    assert cluster.shares_memory(workers)  # the workers are fine


def test_what_rows_teach_takes_the_same_memory_each_time() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(1, 9, (50, 6)).astype(np.float32)
    block = tasks.Block(ArrayStore(x), x.sum(axis=1, dtype=np.float64), None, 50)
    units = Units.for_rows(50, 60 - 6)

    def teach(field: int) -> tasks.PartialStatistics:
        found = tasks.Found(np.full((50, 1), field, np.int32), np.zeros(50), np.ones((50, 1), np.float32), np.zeros(50))
        return tasks.learn([block], [found], 60, units, 3, share=True)

    def place(taught: tasks.PartialStatistics) -> Any:
        return opened(taught.sums).__array_interface__["data"][0]

    first = teach(0)
    sums = opened(first.sums).copy()
    assert sums[0].any()
    second = teach(2)
    assert place(second) == place(first)
    np.testing.assert_array_equal(opened(second.sums), sums[[1, 2, 0]])
    with pytest.raises(OutOfReachError), reading(first.sums):
        pass


@pytest.fixture
def local(counts: Any) -> PoissonMixture:
    return mixture().fit(counts)


def mixture(**parameters: Any) -> PoissonMixture:
    return PoissonMixture(40, row_sum=90, max_iter=4, tol=0, random_state=0, **parameters)


def noted_messages(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether the client received shared arrays."""
    seen: list[bool] = []
    restore = tasks.PartialStatistics.__setstate__

    def note(self: tasks.PartialStatistics, state: dict[str, Any]) -> None:
        restore(self, state)
        seen.append(isinstance(self.sums, SharedArray))

    monkeypatch.setattr(tasks.PartialStatistics, "__setstate__", note)
    return seen


@pytest.mark.parametrize("share", [True, False])
def test_the_same_bits_shared_or_sent(
    counts: Any, processes: Client, local: PoissonMixture, monkeypatch: pytest.MonkeyPatch, share: bool
) -> None:
    assert Cluster(processes).shares_memory(processes.scheduler_info()["workers"])
    if not share:
        monkeypatch.setattr(Cluster, "shares_memory", lambda *_: False)
    seen = noted_messages(monkeypatch)
    learned = mixture(execution=Dask(processes)).fit(counts)
    assert set(seen) == {share}
    np.testing.assert_array_equal(learned.means_, local.means_)


def test_a_worker_that_cannot_open_it(
    counts: Any, processes: Client, local: PoissonMixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays are then sent instead."""

    def forget_owner(self: SharedArray) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_memory"} | {"_owner": 2**22 + 1}

    sent = Cluster.shares_memory
    monkeypatch.setattr(Cluster, "shares_memory", lambda *_: True)
    monkeypatch.setattr(SharedArray, "__getstate__", forget_owner)
    seen = noted_messages(monkeypatch)
    learned = mixture(execution=Dask(processes)).fit(counts)
    assert set(seen) == {False}
    np.testing.assert_array_equal(learned.means_, local.means_)
    monkeypatch.setattr(Cluster, "shares_memory", sent)
    assert not Cluster(processes).shares_memory(processes.scheduler_info()["workers"])
