"""Blocks of training rows on the workers of a cluster: how many, where, and how a lost one comes back."""

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

from tnesi.execution.dask import tasks
from tnesi.execution.dask.cluster import Cluster, ClusterError, Worker
from tnesi.execution.dask.tasks import Block
from tnesi.execution.store import ArrayStore, FileStore, Store, even_grain
from tnesi.types import Array

PER_SLOT = 4
"""Blocks for each task that the cluster runs at a time: few, but enough for work to move to idle workers."""
_MOST_OF_MEMORY, _BLOCK_OF_MEMORY, _LEARNING_OF_MEMORY = 0.5, 0.1, 0.8
"""Shares of a worker's memory that all its rows, a block of them, and rows and fields together may take."""
_COPIES = 3
"""Of what the rows teach, for each task: two that are added up, and their sum; one may be the parameters instead."""
_SCATTER_SECONDS = 3
_TOO_MUCH = "start more workers, or give them more memory (--memory-limit)"


class LostError(Exception):
    """Something that was on a worker is gone; it can be made again."""


def results(cluster: Cluster, futures: Iterable[Future]) -> Iterator[tuple[Future, Any]]:
    """Yield futures with their results as they come."""
    for batch in as_completed(list(futures), loop=cluster.client.loop).batches():
        for future in batch:
            _raise_trouble(future)
        try:
            values = cluster.client.gather(batch, direct=True)
        except (CancelledError, OSError) as error:
            raise LostError(str(error)) from error
        yield from zip(batch, values, strict=True)


def _raise_trouble(future: Future) -> None:
    if future.status == "finished":
        return
    if future.status != "error":
        raise LostError(f"{future.key} was {future.status}")
    error = future.exception()
    if isinstance(error, CancelledError):
        raise LostError(str(error)) from error
    if isinstance(error, KilledWorker):
        raise ClusterError(
            f"{error.args[2] + 1} workers have died while they ran {future.key}, most likely for lack of memory: "
            f"{_TOO_MUCH}, or learn fewer fields; the logs of the workers say more"
        ) from error
    if isinstance(error, MemoryError):
        raise ClusterError(f"a worker ran out of memory in {future.key}: {_TOO_MUCH}") from error
    if isinstance(error, ImportError):
        raise ClusterError(
            f"a worker could not run {future.key} ({error}): install the same version of tnesi where all workers run"
        ) from error
    assert error is not None
    raise error


def scattered(cluster: Cluster, value: Any, key: str, homes: Sequence[str]) -> list[Future]:
    """Send something to some workers at the same time; each gets one of its own."""
    client = cluster.client

    async def send(direct: bool) -> list[Future]:
        given: dict[str, Any] = {"direct": direct, "hash": False, "timeout": _SCATTER_SECONDS, "asynchronous": True}
        keys = {f"{key}-{number}": home for number, home in enumerate(homes)}
        sent = [client.scatter({name: value}, workers=[home], **given) for name, home in keys.items()]
        return [future for one in await asyncio.gather(*sent) for future in one.values()]

    for direct in (True, False):  # the client may not be able to reach the workers by itself
        try:
            return list(client.sync(send, direct))
        except (OSError, KeyError) as error:
            trouble = error
    raise LostError(f"{' or '.join(homes)} cannot be reached") from trouble


class Blocks:
    """Training rows in blocks, each of them a whole number of grains.

    Attributes
    ----------
    places : list of slice
        Where each block is among all rows.
    homes : list of str
        The worker that holds it.
    rows : list of Future or None
        None: it has to be loaded (again).
    """

    def __init__(self, cluster: Cluster, store: Store, sums: Array, weight: Array | None) -> None:
        self.cluster, self.store, self.sums, self.weight = cluster, store, sums, weight
        self.grain = even_grain(store)
        self.workers = cluster.workers()
        n_bytes = store.n_rows * row_bytes(store)
        memory = [worker.memory or np.inf for worker in self.workers.values()]
        self._keeps = n_bytes <= _MOST_OF_MEMORY * sum(memory)
        if not self._keeps and not isinstance(store, FileStore):
            raise ClusterError(
                f"the rows take {n_bytes / 1e9:.2g} GB, and the {len(memory)} workers have {sum(memory) / 1e9:.2g} GB "
                f"of memory, of which rows may take half: {_TOO_MUCH}"
            )
        self.places: list[slice] = getattr(store, "places", None) or block_places(store, self.workers)
        self.homes = [""] * len(self.places)
        self.rows: list[Future | None] = [None] * len(self.places)
        self._name, self._n_loaded = uuid4().hex[:8], 0

    def __len__(self) -> int:
        return len(self.places)

    def check_room(self, n_bytes: int) -> None:
        """Refuse to learn where what the rows teach, so many bytes for each task, does not fit beside the rows."""
        slots = sum(worker.slots for worker in self.workers.values())
        rows = self.store.n_rows * row_bytes(self.store) / slots if self._keeps else 0
        for address, worker in self.workers.items():
            need = worker.slots * (rows + _COPIES * n_bytes)
            if worker.memory and need > _LEARNING_OF_MEMORY * worker.memory:
                raise ClusterError(
                    f"the worker {address} has {worker.memory / 1e9:.2g} GB of memory, and needs {need / 1e9:.2g} GB "
                    f"for its rows and fields: {_TOO_MUCH}, or fewer threads; or learn fewer fields"
                )

    def ready(self) -> set[int]:
        """Give every block a home among the workers there are now; return those that have moved."""
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
        """Find out which blocks are gone."""
        kept = in_memory(self.cluster, [future for future in self.rows if future is not None])
        for number, future in enumerate(self.rows):
            if future is not None and future.key not in kept:
                future.release()
                self.rows[number] = None

    def close(self) -> None:
        """Let the workers forget the rows."""
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
    """Return the keys of those that some worker has."""
    if not futures:
        return set()
    try:
        return {key for key, workers in cluster.client.who_has(list(futures)).items() if workers}
    except (OSError, CancelledError):
        time.sleep(0.1)
        return set()


def row_bytes(store: Store) -> int:
    """Return what a row takes in memory."""
    dtype = getattr(store, "dtype", None)
    itemsize = dtype.itemsize if dtype is not None else store.read(slice(0, 1)).dtype.itemsize
    return int(store.n_features * itemsize)


def block_places(store: Store, workers: dict[str, Worker]) -> list[slice]:
    """Divide rows into blocks of whole grains, as evenly as can be."""
    grain = even_grain(store)
    n_grains = -(-store.n_rows // grain)
    memory = min(worker.memory or np.inf for worker in workers.values())
    fewest = int(np.ceil(store.n_rows * row_bytes(store) / (_BLOCK_OF_MEMORY * memory)))
    n_blocks = min(n_grains, max(fewest, PER_SLOT * sum(worker.slots for worker in workers.values())))
    ends = np.minimum(np.linspace(0, n_grains, n_blocks + 1).round().astype(int) * grain, store.n_rows).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def evenly(sizes: Sequence[int], homes: Sequence[str], slots: dict[str, int]) -> list[str]:
    """Return a home for each block: the old one where that is still there and has not too much to do.

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
