"""Blocks of training rows on the workers of a cluster: their size, distribution and recovery."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from distributed import Future, KilledWorker, as_completed
from scipy.sparse import issparse

from tnesi.execution.dask import tasks
from tnesi.execution.dask.cluster import Cluster, ClusterError, Worker
from tnesi.execution.dask.tasks import Block
from tnesi.execution.store import ArrayStore, FileStore, even_grain
from tnesi.model.rows import RowStore
from tnesi.types import Array

PER_SLOT = 4
"""Blocks per simultaneous task of the cluster: few, but enough to move work to idle workers."""
_MOST_OF_MEMORY, _BLOCK_OF_MEMORY, _LEARNING_OF_MEMORY = 0.5, 0.1, 0.8
"""Maximum shares of a worker's memory for all its rows, a block, and rows and fields together."""
_SPARSE_VALUE = 8
"""Bytes of a stored value and its column."""
_COPIES = 3
"""Copies of the statistics per task: two terms and their sum."""
_SCATTER_SECONDS = 3
_TOO_MUCH = "start more workers, or give them more memory (--memory-limit)"


class LostError(Exception):
    """Data on a worker was lost and must be recomputed."""


def results(cluster: Cluster, futures: Iterable[Future]) -> Iterator[tuple[Future, Any]]:
    """Yield futures with their results as they finish."""
    for batch in as_completed(list(futures), loop=cluster.client.loop).batches():
        for future in batch:
            _raise_error(future)
        try:
            values = cluster.client.gather(batch, direct=True)
        except (CancelledError, OSError) as error:
            raise LostError(str(error)) from error
        yield from zip(batch, values, strict=True)


def _raise_error(future: Future) -> None:
    if future.status == "finished":
        return
    if future.status != "error":
        raise LostError(f"{future.key} was {future.status}")
    error = future.exception()
    if isinstance(error, CancelledError):
        raise LostError(str(error)) from error
    if isinstance(error, KilledWorker):
        raise ClusterError(
            "{n} workers died while running {task}, probably for lack of memory",
            n=error.args[2] + 1,
            task=future.key,
            advice=f"{_TOO_MUCH}, or learn fewer fields; see the logs of the workers",
        ) from error
    if isinstance(error, MemoryError):
        raise ClusterError("a worker ran out of memory in {task}", task=future.key, advice=_TOO_MUCH) from error
    if isinstance(error, ImportError):
        raise ClusterError(
            "a worker could not run {task} ({reason})",
            task=future.key,
            reason=error,
            advice="install the same version of tnesi on all workers",
        ) from error
    assert error is not None
    raise error


def scattered(cluster: Cluster, value: object, key: str, homes: Sequence[str]) -> list[Future]:
    """Send a value to several workers at the same time; return a future for each worker."""
    client = cluster.client

    async def send(direct: bool) -> list[Future]:
        given: dict[str, Any] = {"direct": direct, "hash": False, "timeout": _SCATTER_SECONDS, "asynchronous": True}
        keys = {f"{key}-{number}": home for number, home in enumerate(homes)}
        sent = [client.scatter({name: value}, workers=[home], **given) for name, home in keys.items()]
        return [future for one in await asyncio.gather(*sent) for future in one.values()]

    for direct in (True, False):  # the client may not be able to reach the workers directly
        try:
            return list(client.sync(send, direct))
        except (OSError, KeyError) as error:
            failure = error
    raise LostError(f"{' or '.join(homes)} cannot be reached") from failure


class Blocks:
    """Training rows in blocks of whole grains.

    Attributes
    ----------
    places : list of slice
        The rows of each block.
    homes : list of str
        The worker of each block.
    rows : list of Future or None
        The data of each block; None if it must be loaded (again).
    """

    def __init__(self, cluster: Cluster, store: RowStore, sums: Array, weight: Array | None) -> None:
        self.cluster, self.store, self.sums, self.weight = cluster, store, sums, weight
        self.grain = even_grain(store)
        self.workers = cluster.workers()
        n_bytes = store.n_rows * row_bytes(store)
        memory = [worker.memory or np.inf for worker in self.workers.values()]
        self._keeps = n_bytes <= _MOST_OF_MEMORY * sum(memory)
        if not self._keeps and not isinstance(store, FileStore):
            raise ClusterError(
                "the rows need {size:.2g} GB, but the {workers} workers have {memory:.2g} GB of memory, of which rows "
                "may use half",
                size=n_bytes / 1e9,
                workers=len(memory),
                memory=sum(memory) / 1e9,
                advice=_TOO_MUCH,
            )
        self.places: list[slice] = getattr(store, "places", None) or block_places(store, self.workers)
        self.homes = [""] * len(self.places)
        self.rows: list[Future | None] = [None] * len(self.places)
        self._name, self._n_loaded = uuid4().hex[:8], 0

    def __len__(self) -> int:
        return len(self.places)

    def check_room(self, n_bytes: int) -> None:
        """Raise an error if the statistics, `n_bytes` per task, do not fit into memory beside the rows."""
        slots = sum(worker.slots for worker in self.workers.values())
        rows = self.store.n_rows * row_bytes(self.store) / slots if self._keeps else 0
        for address, worker in self.workers.items():
            need = worker.slots * (rows + _COPIES * n_bytes)
            if worker.memory and need > _LEARNING_OF_MEMORY * worker.memory:
                raise ClusterError(
                    "the worker {address} has {memory:.2g} GB of memory, but needs {need:.2g} GB for rows and fields",
                    address=address,
                    memory=worker.memory / 1e9,
                    need=need / 1e9,
                    advice=f"{_TOO_MUCH}, or fewer threads; or learn fewer fields",
                )

    def ready(self) -> set[int]:
        """Assign every block to a current worker and load missing ones; return the blocks that moved."""
        self.workers = self.cluster.workers()
        sizes = [place.stop - place.start for place in self.places]
        homes = evenly(sizes, self.homes, {address: worker.slots for address, worker in self.workers.items()})
        moved = {number for number, (old, new) in enumerate(zip(self.homes, homes, strict=True)) if old != new}
        self.homes = homes
        for number in range(len(self)):
            if number in moved or self.rows[number] is None:
                self.rows[number] = self._load(number)
        return moved

    def forget_lost(self) -> None:
        """Mark lost blocks for loading."""
        kept = in_memory(self.cluster, [future for future in self.rows if future is not None])
        for number, future in enumerate(self.rows):
            if future is not None and future.key not in kept:
                future.release()
                self.rows[number] = None

    def close(self) -> None:
        """Release the rows on the workers."""
        for future in self.rows:
            if future is not None:
                future.release()
        self.rows = [None] * len(self)

    def groups(self) -> Iterator[tuple[str, list[list[int]]]]:
        """Yield workers, with their blocks divided among their slots."""
        for address, worker in self.workers.items():
            own = [number for number, home in enumerate(self.homes) if home == address]
            own.sort(key=lambda number: self.places[number].start - self.places[number].stop)
            if own:
                yield address, [own[slot :: worker.slots] for slot in range(min(worker.slots, len(own)))]

    def _load(self, number: int) -> Future:
        place, home = self.places[number], self.homes[number]
        if hasattr(self.store, "block"):
            return self.store.block(number, place)
        self._n_loaded += 1
        key = f"tnesi-rows-{self._name}-{number}-{self._n_loaded}"
        sums, weight = self.sums[place], None if self.weight is None else self.weight[place]
        if not isinstance(self.store, FileStore):
            inner = ArrayStore(self.store.read(place))
            return scattered(self.cluster, Block(inner, sums, weight, self.grain), key, [home])[0]
        in_file = Block(self.store.between(place), sums, weight, self.grain)
        [described] = scattered(self.cluster, in_file, key.replace("rows", "file"), [home])
        return self.cluster.client.submit(
            tasks.load, described, keep=self._keeps, key=key, workers=[home], allow_other_workers=True
        )


def in_memory(cluster: Cluster, futures: Sequence[Future]) -> set[str]:
    """Return the keys of the futures whose results are on a worker."""
    if not futures:
        return set()
    try:
        return {key for key, workers in cluster.client.who_has(list(futures)).items() if workers}
    except (OSError, CancelledError):
        time.sleep(0.1)
        return set()


def row_bytes(store: RowStore) -> int:
    """Return the mean size of a row in bytes."""
    if isinstance(store, ArrayStore) and issparse(store.x):
        return int(_SPARSE_VALUE * store.row_values)
    dtype = getattr(store, "dtype", None)
    itemsize = dtype.itemsize if dtype is not None else store.read(slice(0, 1)).dtype.itemsize
    return int(store.n_features * itemsize)


def block_places(store: RowStore, workers: dict[str, Worker]) -> list[slice]:
    """Divide rows into blocks of whole grains, as evenly as possible."""
    grain = even_grain(store)
    n_grains = -(-store.n_rows // grain)
    memory = min(worker.memory or np.inf for worker in workers.values())
    fewest = int(np.ceil(store.n_rows * row_bytes(store) / (_BLOCK_OF_MEMORY * memory)))
    n_blocks = min(n_grains, max(fewest, PER_SLOT * sum(worker.slots for worker in workers.values())))
    ends = np.minimum(np.linspace(0, n_grains, n_blocks + 1).round().astype(int) * grain, store.n_rows).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def evenly(sizes: Sequence[int], homes: Sequence[str], slots: dict[str, int]) -> list[str]:
    """Return a worker for each block: the old one if it still exists and is not overloaded.

    Examples
    --------
    >>> evenly([3, 3, 2], ["", "", ""], {"a": 1, "b": 1})
    ['a', 'b', 'a']
    >>> evenly([3, 3, 2], ["a", "b", "a"], {"b": 1, "c": 1})
    ['c', 'b', 'b']
    """
    out = [home if home in slots else "" for home in homes]
    work = dict.fromkeys(slots, 0.0)
    for size, home in zip(sizes, out, strict=True):
        if home:
            work[home] += size / slots[home]
    for number in sorted((n for n, home in enumerate(out) if not home), key=lambda n: -sizes[n]):
        out[number] = min(slots, key=lambda home: work[home] + sizes[number] / slots[home])
        work[out[number]] += sizes[number] / slots[out[number]]
    while True:
        busy, idle = max(slots, key=work.__getitem__), min(slots, key=work.__getitem__)
        own = [number for number, home in enumerate(out) if home == busy]
        number = min(own, key=sizes.__getitem__)
        after = work[idle] + sizes[number] / slots[idle]
        if len(own) < 2 or after >= work[busy]:
            return out
        out[number] = idle
        work[busy] -= sizes[number] / slots[busy]
        work[idle] = after
