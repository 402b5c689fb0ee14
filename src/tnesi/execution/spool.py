"""Spooling: rows that do not fit into memory are copied to a temporary file, which can be read repeatedly."""

from __future__ import annotations

import errno
import mmap
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.errors import InvalidDataError
from tnesi.execution.store import ArrayStore, FileStore, grain_rows, parts
from tnesi.model.rows import RowStore, usable_rows
from tnesi.system.files import FileWriteError, TemporaryPath
from tnesi.types import Array

IN_MEMORY = 2**28
"""Maximum size in bytes of data that are kept in memory."""


def spool(blocks: Iterable[Any], shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[RowStore, Array, int]:
    """Copy checked blocks of rows to memory or to a temporary file.

    Returns the store, the row sums, and the number of all-zero rows. The file is deleted with the store.
    """
    kept = np.dtype(np.uint8 if dtype == np.uint8 else np.float32)
    n_bytes = shape[0] * shape[1] * kept.itemsize
    if n_bytes <= IN_MEMORY:
        x = np.empty(shape, kept)
        copied = _copy(blocks, shape[0], lambda at, block: x.__setitem__(slice(at, at + len(block)), block))
        return ArrayStore(x), *copied
    folder = tempfile.gettempdir()
    room = shutil.disk_usage(folder).free
    if n_bytes > room:
        raise FileWriteError(
            f"the rows need a file of {n_bytes / 1e9:.1f} GB, but {folder} has only {room / 1e9:.1f} GB of free space",
            advice="set TMPDIR to a folder with more space, or pass a memory-mapped .npy file of uint8 or "
            "float32, which is not copied",
        )
    temporary = TemporaryPath("tnesi-rows-")
    try:
        with temporary.path.open("wb") as file:
            copied = _copy(blocks, shape[0], lambda _, block: file.write(block.astype(kept, copy=False).data))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        temporary.delete()
        raise FileWriteError(
            f"{folder} is full", advice=f"set TMPDIR to a folder with {n_bytes / 1e9:.1f} GB of free space"
        ) from error
    return FileStore(temporary.path, kept, shape[0], shape[1], keep=temporary), *copied


def _copy(blocks: Iterable[Any], n_rows: int, put: Callable[[int, Array], Any]) -> tuple[Array, int]:
    sums, at, n_zero = np.empty(n_rows), 0, 0
    for block in blocks:
        usable = usable_rows(block)
        put(at, np.asarray(usable.x))
        sums[at : at + len(block)] = usable.sums
        n_zero += usable.zero.size
        at += len(block)
    return sums, n_zero


def mapped_file(X: object) -> FileStore | None:
    """Return the file of a large memory-mapped array if its rows can be read without conversion, else None."""
    if not isinstance(X, np.memmap) or X.nbytes <= IN_MEMORY or X.mode == "c" or X.filename is None:
        return None
    fits = X.ndim == 2 and X.flags.c_contiguous and X.dtype in (np.uint8, np.float32) and X.dtype.isnative
    mapped: Any = getattr(X, "_mmap", None)
    if not fits or mapped is None:
        return None
    begin = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]  # slices have an offset
    offset = X.__array_interface__["data"][0] - begin + X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    n_rows, n_features = X.shape
    return FileStore(Path(X.filename), np.dtype(X.dtype.type), n_rows, n_features, offset)


def check_file(store: FileStore, check: Callable[[Array, int], Any]) -> tuple[FileStore, Array, int]:
    """Check the rows of a file part by part.

    Returns the store with its all-zero rows, the row sums, and the number of all-zero rows.
    """
    sums, even = np.empty(store.n_rows), []
    for place, x in parts(store, grain_rows(store.n_features)):
        start = place.start
        check(x, start)
        usable, sums[place], zero = usable_rows(x)
        x[zero] = 1
        if not np.array_equal(np.asarray(usable), x):
            raise InvalidDataError(
                f"rows {start} to {place.stop - 1} have values that are too large or too small for sums in float32",
                advice="scale the data (only the proportions in a row matter)",
            )
        even.append(start + zero)
    zeros = np.concatenate(even)
    checked = FileStore(store.path, store.dtype, store.n_rows, store.n_features, store.offset, zeros)
    return checked, sums, zeros.size
