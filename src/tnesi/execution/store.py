"""Stores of training rows in memory, in a file or on a device, read in parts (uint8 or float32, contiguous)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from tnesi.errors import TnesiError
from tnesi.model.rows import Matrix, RowStore
from tnesi.system.devices import device_of
from tnesi.types import Array

_GRAIN, _GRAIN_VALUES = 2**16, 2**28


class FileChangedError(TnesiError, OSError):
    """A file with rows was truncated during learning."""


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
        return self.x if everything else self.x[place]  # slicing a sparse matrix copies

    def take(self, index: Array) -> Matrix:
        return self.x[index]


@dataclass(frozen=True)
class TensorStore:
    """Rows on a device; `read` and `take` copy them to the memory of the processor.

    Attributes
    ----------
    x : torch.Tensor
    """

    x: Any
    in_memory: bool = field(default=True, init=False)

    def __reduce__(self) -> Any:
        """Become rows in memory when pickled: other machines may not have the device."""
        return ArrayStore, (self.read(slice(None)),)

    @property
    def n_rows(self) -> int:
        return int(self.x.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def row_values(self) -> float:
        return float(self.n_features)

    def read(self, place: slice) -> Array:
        return device_of(self.x).array(self.x[place])

    def take(self, index: Array) -> Array:
        return device_of(self.x).array(self.x[index])


@dataclass(frozen=True)
class FileStore:
    """Contiguous rows in a file, which is read instead of mapped, since mapped pages count as memory.

    Attributes
    ----------
    even : (n,) array
        Indices of all-zero rows in ascending order, which are read as ones.
    keep : object
        A temporary file that must live as long as the store.
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
        return vars(self) | {"keep": None}  # other processes do not own the file

    def read(self, place: slice, room: Array | None = None) -> Array:
        """Return consecutive rows, in the array `room` if given, since allocation is expensive."""
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
                    raise self._truncated()
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
                    raise self._truncated()
        out[np.isin(index, self.even)] = 1
        return out

    def _truncated(self) -> FileChangedError:
        return FileChangedError(f"{self.path} has become shorter", advice="do not change the file during learning")

    def between(self, place: slice) -> FileStore:
        """Return the store of some consecutive rows."""
        start, stop, _ = place.indices(self.n_rows)
        first, last = np.searchsorted(self.even, [start, stop])
        offset = self.offset + start * self.n_features * self.dtype.itemsize
        even = self.even[first:last] - start
        return FileStore(self.path, self.dtype, stop - start, self.n_features, offset, even)


def grain_rows(n_values: float) -> int:
    """Return the maximum number of rows in a grain, for rows of `n_values` values.

    Sums are always computed per grain, so the result does not depend on the blocks in which rows are read. A grain fits
    into memory and is large enough that adding up the statistics of grains is cheap.

    Examples
    --------
    >>> grain_rows(784), grain_rows(100_000)
    (65536, 2048)
    """
    return int(min(_GRAIN, 2 ** np.floor(np.log2(max(_GRAIN_VALUES / max(n_values, 1), 256)))))


def even_grain(store: RowStore) -> int:
    """Return the number of rows per grain; grains of equal size can be distributed evenly.

    Examples
    --------
    >>> even_grain(ArrayStore(np.ones((70_000, 2), np.uint8)))
    35000
    """
    n_grains = -(-store.n_rows // grain_rows(store.row_values))
    return -(-store.n_rows // max(n_grains, 1))


def parts(store: RowStore, size: int) -> Iterator[tuple[slice, Any]]:
    """Yield all rows, `size` at a time; the next rows of a file are read in the background.

    Rows from a file are valid until the next ones are requested.
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
