"""Rows of a Dask array, which are checked and converted on the workers and stay there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import dask.array
import numpy as np
from dask.delayed import Delayed
from distributed import Future

from tnesi.execution.dask import tasks
from tnesi.execution.dask.blocks import LostError, block_places, results
from tnesi.execution.dask.cluster import Cluster
from tnesi.execution.dask.tasks import Block, Message
from tnesi.execution.store import ArrayStore, even_grain
from tnesi.model.rows import check_sums, usable_rows
from tnesi.types import Array

_TRIES = 12


@dataclass(frozen=True)
class Checked(Message):
    """The result of a check of some rows.

    Attributes
    ----------
    sums : (N,) array of float64
    bad : (D,) array or None
        The first row with a value that is negative or not finite.
    """

    sums: Array
    bad: Array | None


def check_chunk(x: object) -> Checked:
    """Compute row sums and look for invalid rows."""
    x = _as_read(x)
    fine = np.ones(len(x), bool) if x.dtype == np.uint8 else (np.isfinite(x) & (x >= 0)).all(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = x.sum(axis=1, dtype=np.float64)
    return Checked(sums, None if fine.all() else x[np.argmin(fine)].copy())


def make_block(x: object, weight: Array | None, grain: int) -> Block:
    """Return rows as a block."""
    x, sums, _ = usable_rows(_as_read(x))
    return Block(ArrayStore(x), sums, weight, grain)


def sums_of(block: Block) -> Array:
    return block.sums


def _as_read(x: object) -> Array:
    """Convert rows as scikit-learn's checks do."""
    out: Array = np.ascontiguousarray(x)
    return out if out.dtype in (np.uint8, np.float32, np.float64) else out.astype(np.float64)


def load_array(
    cluster: Cluster, x: object, weight: Array | None, reject: Callable[..., Any]
) -> tuple[ClusterStore, Array, int]:
    """Return the rows of an array on a cluster, their sums, and the number of all-zero rows.

    `reject` is called with the first invalid row, to raise an error.
    """
    store = ClusterStore(cluster, x, weight)
    return store, *store.check(reject)


class ClusterStore:
    """Rows on the workers of a cluster.

    Attributes
    ----------
    places : list of slice
        The rows of each block.
    """

    in_memory = False

    @property
    def row_values(self) -> float:
        return float(self.n_features)

    def __init__(self, cluster: Cluster, x: Any, weight: Array | None) -> None:
        self.n_rows, self.n_features = (int(n) for n in x.shape)
        self.dtype = np.dtype(np.uint8 if x.dtype == np.uint8 else np.float32)
        self._cluster, self._weight = cluster, weight
        self.grain = even_grain(self)
        self.places = block_places(self, cluster.workers())
        sizes = tuple(place.stop - place.start for place in self.places)
        self._chunks: list[Delayed] = [chunk for [chunk] in x.rechunk((sizes, (self.n_features,))).to_delayed()]
        self._name = uuid4().hex[:8]
        self._blocks: list[Future] = []

    def check(self, reject: Callable[[Array], Any]) -> tuple[Array, int]:
        """Check and load all rows; return their sums and the number of all-zero rows."""
        found: list[Checked] = self._all([dask.delayed(check_chunk)(chunk) for chunk in self._chunks])
        bad = [one.bad for one in found if one.bad is not None]
        if bad:
            reject(bad[0][None])
        sums = np.concatenate([one.sums for one in found])
        check_sums(sums)
        self._blocks = [self._load(place) for place in range(len(self.places))]
        loaded = np.concatenate(self._all([dask.delayed(sums_of)(block) for block in self._blocks]))
        return loaded, int(np.count_nonzero(sums == 0))

    def block(self, number: int, place: slice) -> Future:
        """Return a block of rows; a lost block is recomputed from the array."""
        if self._blocks[number].status not in ("finished", "pending"):
            self._blocks[number] = self._load(number)
        return self._blocks[number]

    def read(self, place: slice) -> Array:
        return self.take(np.arange(*place.indices(self.n_rows)))

    def take(self, index: Array) -> Array:
        out = np.empty((len(index), self.n_features), self.dtype)
        starts = [place.start for place in self.places]
        which = np.searchsorted(starts, index, side="right") - 1
        used = np.unique(which)
        wanted = [
            dask.delayed(tasks.take)(self.block(n, self.places[n]), index[which == n] - starts[n])
            for n in used.tolist()
        ]
        for n, rows in zip(used, self._all(wanted), strict=True):
            out[which == n] = rows
        return out

    def _load(self, number: int) -> Future:
        place = self.places[number]
        weight = None if self._weight is None else self._weight[place]
        made = dask.delayed(make_block)(
            self._chunks[number], weight, self.grain, dask_key_name=f"tnesi-rows-{self._name}-{number}"
        )
        return self._cluster.client.compute(made)

    def _all(self, wanted: list[Delayed]) -> list[Any]:
        """Return results in order; lost ones are recomputed."""
        for attempt in range(_TRIES):
            try:
                futures = self._cluster.client.compute(wanted)
                found = {future.key: result for future, result in results(self._cluster, futures)}
                return [found[future.key] for future in futures]
            except LostError:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError
