"""Training rows, wherever they are: read a part at a time, as the kernels want them (uint8 or float32, contiguous)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from tnesi.model.rows import Matrix
from tnesi.types import Array

_GRAIN, _GRAIN_VALUES = 2**16, 2**28


class Store(Protocol):
    """Rows that can be read any number of times.

    Attributes
    ----------
    n_rows, n_features : int
    row_values : float
        Numbers that are stored for a row, on average.
    in_memory : bool
        Whether reading costs nothing.
    """

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def row_values(self) -> float: ...
    @property
    def in_memory(self) -> bool: ...

    def read(self, place: slice) -> Any:
        """Return consecutive rows."""

    def take(self, index: Array) -> Any:
        """Return the rows of these numbers."""


@dataclass(frozen=True)
class ArrayStore:
    """Rows in memory, dense or sparse."""

    x: Matrix
    in_memory: bool = field(default=True, init=False)

    @property
    def n_rows(self) -> int:
        return int(self.x.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def row_values(self) -> float:
        return float(self.x.nnz / self.n_rows if issparse(self.x) else self.n_features)

    def read(self, place: slice) -> Matrix:
        everything = place.indices(self.n_rows) == (0, self.n_rows, 1)
        return self.x if everything else self.x[place]  # a part of a sparse matrix is a copy

    def take(self, index: Array) -> Matrix:
        return self.x[index]


@dataclass(frozen=True)
class FileStore:
    """Rows in a file, one after the other. They are read and not mapped: the pages of a mapped file count as memory.

    Attributes
    ----------
    even : (n,) array
        Numbers of all-zero rows, which are read as evenly spread; ascending.
    keep : object
        What must not go before the store does: a temporary file.
    """

    path: Path
    dtype: np.dtype[Any]
    n_rows: int
    n_features: int
    offset: int = 0
    even: Array = field(default_factory=lambda: np.empty(0, np.int64))
    keep: Any = field(default=None, repr=False, compare=False)
    in_memory: bool = field(default=False, init=False)

    @property
    def row_values(self) -> float:
        return float(self.n_features)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"keep": None}  # another process only reads

    def read(self, place: slice, room: Array | None = None) -> Array:
        """Return consecutive rows, in the `room` of earlier ones if there is any: new memory costs much."""
        start, stop, _ = place.indices(self.n_rows)
        if room is None:
            room = np.empty((stop - start, self.n_features), self.dtype)
        x = room[: stop - start]
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset + start * self.n_features * self.dtype.itemsize)
            rest = x.data.cast("B")
            while rest:
                n_read = file.readinto(rest)
                if not n_read:
                    raise OSError(f"{self.path} has become shorter: leave it alone while it is being learned from")
                rest = rest[n_read:]
        first, last = np.searchsorted(self.even, [start, stop])
        x[self.even[first:last] - start] = 1
        return x

    def take(self, index: Array) -> Array:
        out = np.empty((len(index), self.n_features), self.dtype)
        row_bytes = self.n_features * self.dtype.itemsize
        with self.path.open("rb", buffering=0) as file:
            for row, number in zip(out, index, strict=True):
                file.seek(self.offset + int(number) * row_bytes)
                if file.readinto(row.data) != row_bytes:
                    raise OSError(f"{self.path} has become shorter: leave it alone while it is being learned from")
        out[np.isin(index, self.even)] = 1
        return out

    def between(self, place: slice) -> FileStore:
        """Return the store of consecutive rows of these."""
        start, stop, _ = place.indices(self.n_rows)
        first, last = np.searchsorted(self.even, [start, stop])
        offset = self.offset + start * self.n_features * self.dtype.itemsize
        even = self.even[first:last] - start
        return FileStore(self.path, self.dtype, stop - start, self.n_features, offset, even)


def grain_rows(n_values: float) -> int:
    """Return how many rows of `n_values` values make a grain, at most.

    Sums over the rows of a grain are always made together, whatever the blocks in which rows are read: that is why the
    result does not depend on these. A grain fits into memory, and is large enough that adding up what it teaches the
    fields costs little.

    Examples
    --------
    >>> grain_rows(784), grain_rows(100_000)
    (65536, 2048)
    """
    return int(min(_GRAIN, 2 ** np.floor(np.log2(max(_GRAIN_VALUES / max(n_values, 1), 256)))))


def even_grain(store: Store) -> int:
    """Return how many rows make a grain of these: grains of one size share out evenly among workers.

    Examples
    --------
    >>> even_grain(ArrayStore(np.ones((70_000, 2), np.uint8)))
    35000
    """
    n_grains = -(-store.n_rows // grain_rows(store.row_values))
    return -(-store.n_rows // max(n_grains, 1))


def parts(store: Store, size: int) -> Iterator[tuple[slice, Any]]:
    """Yield all rows, `size` at a time; from a file the next ones are read while these are worked on.

    What is read from a file is there until the next rows are asked for.
    """
    places = [slice(start, min(start + size, store.n_rows)) for start in range(0, store.n_rows, size)]
    if not isinstance(store, FileStore):
        for place in places:
            yield place, store.read(place)
        return
    rooms = [np.empty((min(size, store.n_rows), store.n_features), store.dtype) for _ in places[:2]]
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(store.read, places[0], rooms[0])
        for i, place in enumerate(places):
            x = coming.result()
            if i + 1 < len(places):
                coming = reader.submit(store.read, places[i + 1], rooms[(i + 1) % 2])
            yield place, x
