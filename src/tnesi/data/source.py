"""Data for the estimators: rows that are read block by block, with their labels."""

from __future__ import annotations

import hashlib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tnesi.errors import TnesiError
from tnesi.model.rows import Matrix, arrays_of
from tnesi.system.memory import drop_pages, free_memory, is_lack_of_memory
from tnesi.types import Array

BLOCK_ROWS = 10_000
"""Rows that are read at a time by default: 8 MB of 28 x 28 images."""

_BLOCK_BYTES = 2**28
"""Blocks of very long rows have fewer rows, so that a block takes no more memory than this."""

LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in gray values (ITU-R 601), as in Pillow."""

Kind = Literal["numbers", "images", "documents", "table"]


class DataError(TnesiError, ValueError):
    """Data that cannot be read."""


class DataNotFoundError(TnesiError, FileNotFoundError):
    """A file, a folder or a named data set that is not on this machine."""


@contextmanager
def damaged(where: str | Path) -> Iterator[None]:
    """Convert the errors of decoders to `DataError`, except for missing or unreadable files.

    Decoders raise almost anything on damaged files (Pillow even a SyntaxError), hence the catch-all.
    """
    outside = sys.exception()
    try:
        yield
    except (DataError, ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        if is_lack_of_memory(error, outside):
            raise no_memory(where) from error
        raise DataError(
            f"{where} is damaged or incomplete ({str(error)[:500] or type(error).__name__})",
            advice="download it or save it again",
        ) from error


def no_memory(where: str | Path) -> DataError:
    """Return the error for data that cannot be read for lack of memory."""
    return DataError(
        f"there is not enough memory to read {where} ({free_memory() / 1e9:.1f} GB are free)",
        advice="use a smaller file, a memory-mapped .npy file, or open_data(...).rows, which is read block by block",
    )


class Source(ABC):
    """Rows that are read in order, one block at a time.

    Attributes
    ----------
    kind : {"numbers", "images", "documents", "table"}
        Type of the rows before encoding.
    n_rows, n_features : int
    dtype : numpy.dtype
        Data type of the blocks.
    image_shape : (int, int) or None
        Height and width if the rows are images.
    feature_names : list of str or None
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    image_shape: tuple[int, int] | None = None
    feature_names: list[str] | None = None

    @property
    def kind(self) -> Kind:
        return "numbers" if self.image_shape is None else "images"

    def as_kind(self, kind: Kind) -> Source | None:
        """Return the same rows as another kind, or None if they cannot be: a column of texts may be either of two."""
        return None

    def items(self, size: int = BLOCK_ROWS) -> Iterator[Any]:
        """Yield all rows in blocks as input for encoders: images, texts, or the columns of a table by name."""
        names, shape = self.feature_names, self.image_shape
        for block in self.blocks(size):
            if shape is not None:
                yield block.reshape(len(block), *shape)
            else:
                yield block if names is None else {name: block[:, i] for i, name in enumerate(names)}

    @abstractmethod
    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        """Yield all rows in order, as dense arrays of at most `size` rows."""

    def parts(self, size: int = BLOCK_ROWS) -> Iterator[Matrix]:
        """Yield the same rows in their native form: CSR arrays for sparse rows."""
        yield from self.blocks(size)

    @property
    def row_bytes(self) -> int:
        """Average number of bytes per row in its native form."""
        return self.n_features * self.dtype.itemsize

    def held(self) -> Matrix | None:
        """Return all rows as one array if they are in memory or mapped, else None."""
        return None

    def load(self) -> Matrix:
        """Return all rows as one array: a memmap if the file can be mapped, a CSR array for sparse rows."""
        check_room(self.n_rows * self.n_features * self.dtype.itemsize, f"{self.n_rows} x {self.n_features} values")
        out = np.empty((self.n_rows, self.n_features), self.dtype)
        at = 0
        for block in self.blocks():
            out[at : at + len(block)] = block
            at += len(block)
        return out

    def __len__(self) -> int:
        return self.n_rows


class ArraySource(Source):
    """Rows of an array or of a memory-mapped file. Images (N x height x width) are flattened."""

    def __init__(
        self, array: Array, image_shape: tuple[int, int] | None = None, feature_names: list[str] | None = None
    ) -> None:
        if array.ndim == 4 and array.shape[3] == 1:
            array = array[..., 0]
        if array.ndim == 3:
            image_shape = image_shape or (int(array.shape[1]), int(array.shape[2]))
        elif array.ndim != 2:
            raise DataError(
                f"the data has {array.ndim} dimensions",
                advice="pass an array of shape (rows, columns) or (images, height, width)",
            )
        if array.dtype.kind not in "buif":
            raise DataError(f"the data has type {array.dtype}", advice="convert it to numbers")
        self.array = array
        self.n_rows, self.n_features = check_shape(len(array), math.prod(array.shape[1:]), "the data")
        self.dtype, self.image_shape, self.feature_names = array.dtype.newbyteorder("="), image_shape, feature_names

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        for block in _in_blocks(self.array, rows_at_a_time(size, self.n_features, self.dtype)):
            yield np.ascontiguousarray(block, self.dtype).reshape(len(block), self.n_features)

    def held(self) -> Matrix | None:
        if self.array.dtype != self.dtype or (self.array.ndim == 3 and not self.array.flags.c_contiguous):
            return None
        return self.array.reshape(self.n_rows, self.n_features)

    def load(self) -> Matrix:
        held = self.held()
        return super().load() if held is None else held


class ColorSource(ArraySource):
    """Colored images (N x height x width x 3 or 4): rows are gray values; encoders take the colors."""

    def __init__(self, array: Array) -> None:
        if array.dtype.kind not in "buif":
            raise DataError(f"the data has type {array.dtype}", advice="convert it to numbers")
        self.array = array
        self.image_shape = int(array.shape[1]), int(array.shape[2])
        self.n_rows, self.n_features = check_shape(len(array), math.prod(self.image_shape), "the data")
        self.dtype = np.dtype(np.uint8 if array.dtype == np.uint8 else np.float32)

    def items(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        size = rows_at_a_time(size, math.prod(self.array.shape[1:]), self.array.dtype)
        yield from _in_blocks(self.array, size)

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        for block in self.items(size):
            gray = (block[..., :3].astype(np.float32) @ LUMINANCE).reshape(len(block), self.n_features)
            yield gray.round().astype(self.dtype) if self.dtype == np.uint8 else gray

    def held(self) -> Matrix | None:
        return None


def _in_blocks(array: Array, size: int) -> Iterator[Array]:
    """Yield the rows of an array; those of a mapped file are copied, and their pages released.

    Otherwise, the whole file would end up in memory.
    """
    mapped = getattr(array, "mode", "") == "r"
    for start in range(0, len(array), size):
        block = array[start : start + size]
        yield np.array(block) if mapped else block
        if mapped:
            drop_pages(array)


def array_source(array: Array) -> ArraySource:
    """Return the rows of an array, which are colored images if it has three or four channels."""
    return ColorSource(array) if array.ndim == 4 and array.shape[3] in (3, 4) else ArraySource(array)


class ColumnsSource(Source):
    """A selection of the columns of another source, in any order."""

    def __init__(self, rows: Source, columns: list[int]) -> None:
        self._rows, self._columns = rows, columns
        self.n_rows, self.n_features, self.dtype = rows.n_rows, len(columns), rows.dtype
        names = rows.feature_names
        self.feature_names = None if names is None else [names[i] for i in columns]

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        for block in self._rows.blocks(size):
            yield np.ascontiguousarray(block[:, self._columns])

    def parts(self, size: int = BLOCK_ROWS) -> Iterator[Matrix]:
        for part in self._rows.parts(size):
            yield part[:, self._columns]

    @property
    def row_bytes(self) -> int:
        return self._rows.row_bytes


def check_shape(n_rows: int, n_features: int, where: str | Path) -> tuple[int, int]:
    """Return the shape if it is not empty, else raise an error."""
    if n_rows < 1 or n_features < 1:
        raise DataError(f"{where} is empty: {n_rows} rows of {n_features} values")
    return int(n_rows), int(n_features)


def rows_at_a_time(size: int, n_features: int, dtype: np.dtype[Any]) -> int:
    """Return `size`, reduced if blocks of that many rows would not fit into memory."""
    if size < 1:
        raise ValueError(f"size={size}: must be at least 1")
    row_bytes = n_features * dtype.itemsize
    check_room(row_bytes, f"a single row of {n_features} values")
    return min(size, max(1, _BLOCK_BYTES // row_bytes))


def regroup(blocks: Iterable[Array], size: int) -> Iterator[Array]:
    """Regroup blocks into blocks of `size` rows; the last one may be smaller.

    Examples
    --------
    >>> [b.tolist() for b in regroup([np.array([1, 2, 3]), np.array([4])], 2)]
    [[1, 2], [3, 4]]
    """
    waiting: list[Array] = []
    missing = size
    for block in blocks:
        rest = block
        while len(rest):
            waiting.append(rest[:missing])
            rest = rest[missing:]
            missing -= len(waiting[-1])
            if missing == 0:
                yield np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
                waiting, missing = [], size
    if waiting:
        yield np.concatenate(waiting)


def smallest_dtype(values: Array) -> np.dtype[Any]:
    """Return the smallest of uint8, float32 and float64 that holds all values exactly.

    Examples
    --------
    >>> smallest_dtype(np.array([0.0, 255.0])), smallest_dtype(np.array([0.5])), smallest_dtype(np.array([0.1]))
    (dtype('uint8'), dtype('float32'), dtype('float64'))
    """
    with np.errstate(invalid="ignore", over="ignore"):
        for dtype in (np.uint8, np.float32):
            if np.array_equal(values.astype(dtype), values, equal_nan=True):
                return np.dtype(dtype)
    return np.dtype(np.float64)


def check_room(n_bytes: int, what: str) -> None:
    """Raise an error if `n_bytes` exceed the free memory."""
    room = free_memory()
    if n_bytes > room:
        raise DataError(
            f"{what} needs {n_bytes / 1e9:.1f} GB of memory, but only {room / 1e9:.1f} GB are free",
            advice="use fewer rows or columns, or a memory-mapped .npy file",
        )


def as_text(name: object) -> str:
    r"""Return a file name as valid Unicode; undecodable bytes become escape sequences.

    Examples
    --------
    >>> as_text("caf\udce9.png")
    'caf\\udce9.png'
    """
    return str(name).encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, eq=False)
class Data:
    """Rows with their labels and, optionally, a test part.

    Attributes
    ----------
    rows : Source
    labels : (N,) array or None
        Integers or strings; None (in an object array) or -1 for unlabeled rows.
    test : Data or None
    name : str
    note : str
        Remarks on the data to show with results.
    original : Source or None
        The rows before encoding, for display.
    """

    rows: Source
    labels: Array | None = None
    test: Data | None = None
    name: str = "data"
    note: str = ""
    original: Source | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", as_text(self.name))

    @property
    def shown(self) -> Source:
        """The rows to display: the original ones if `rows` are encoded."""
        return self.original or self.rows

    @cached_property
    def X(self) -> Matrix:  # noqa: N802 - scikit-learn's name
        """All rows, in memory or memory-mapped; a CSR array for sparse rows."""
        return self.rows.load()

    @property
    def y(self) -> Array:
        """The labels. Raises `DataError` if there are none."""
        if self.labels is None:
            raise DataError(
                "{data} has no labels",
                advice="pass {labels} or {label_column}, or use one folder per class",
                data=self.name,
            )
        return self.labels

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the values, type and shape of the rows, without labels. Dense and sparse rows differ."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.rows.n_rows} {self.rows.n_features} {self.rows.dtype.str}".encode())
        for part in self.rows.parts():
            arrays = arrays_of(part)
            for array in arrays if isinstance(arrays, tuple) else (arrays,):
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()
