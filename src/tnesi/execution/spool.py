"""Rows that do not fit into memory, or come from somewhere slow, as a file that can be read again and again."""

from __future__ import annotations

import errno
import mmap
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.execution.store import ArrayStore, FileStore, Store, grain_rows, parts
from tnesi.model.rows import usable_rows
from tnesi.types import Array

IN_MEMORY = 2**28
"""Data of at most so many bytes are held in memory."""


def spool(blocks: Iterable[Any], shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Store, Array, int]:
    """Copy checked blocks of rows to memory or to a temporary file.

    Returns the store, the sums of the rows, and how many of them are all zero. The file goes when the store does.
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
        raise OSError(
            f"the rows take {n_bytes / 1e9:.1f} GB as a file, and {folder} has room for {room / 1e9:.1f} GB: set "
            "TMPDIR to a folder with more, or pass a memory-mapped .npy of uint8 or float32, of which no copy is made"
        )
    file = tempfile.NamedTemporaryFile(prefix="tnesi-rows-", dir=folder)  # noqa: SIM115 - lives as long as the store
    try:
        copied = _copy(blocks, shape[0], lambda _, block: file.write(block.astype(kept, copy=False).data))
        file.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        file.close()
        raise OSError(error.errno, f"{folder} is full: set TMPDIR to a folder with {n_bytes / 1e9:.1f} GB") from error
    return FileStore(Path(file.name), kept, shape[0], shape[1], keep=file), *copied


def _copy(blocks: Iterable[Any], n_rows: int, put: Callable[[int, Array], Any]) -> tuple[Array, int]:
    sums, at, n_zero = np.empty(n_rows), 0, 0
    for block in blocks:
        usable = usable_rows(block)
        put(at, np.asarray(usable.x))
        sums[at : at + len(block)] = usable.sums
        n_zero += usable.zero.size
        at += len(block)
    return sums, n_zero


def mapped_file(X: Any) -> FileStore | None:
    """Return the file behind a large memory-mapped array if its rows can be read from there as they are."""
    if not isinstance(X, np.memmap) or X.nbytes <= IN_MEMORY or X.mode == "c" or X.filename is None:
        return None
    fits = X.ndim == 2 and X.flags.c_contiguous and X.dtype in (np.uint8, np.float32) and X.dtype.isnative
    mapped: Any = getattr(X, "_mmap", None)
    if not fits or mapped is None:
        return None
    begin = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]  # a slice of a mapped array begins later
    offset = X.__array_interface__["data"][0] - begin + X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    n_rows, n_features = X.shape
    return FileStore(Path(X.filename), np.dtype(X.dtype.type), n_rows, n_features, offset)


def check_file(store: FileStore, check: Callable[[Array, int], Any]) -> tuple[FileStore, Array, int]:
    """Check the rows of a file part by part.

    Returns the store, which now knows its all-zero rows, the sums of the rows, and how many of them are all zero.
    """
    sums, even = np.empty(store.n_rows), []
    for place, x in parts(store, grain_rows(store.n_features)):
        start = place.start
        check(x, start)
        usable, sums[place], zero = usable_rows(x)
        x[zero] = 1
        if not np.array_equal(np.asarray(usable), x):
            raise ValueError(
                f"rows {start} to {place.stop - 1} have values that are too large or too small for sums in float32: "
                "scale the data (only the proportions in a row matter)"
            )
        even.append(start + zero)
    zeros = np.concatenate(even)
    checked = FileStore(store.path, store.dtype, store.n_rows, store.n_features, store.offset, zeros)
    return checked, sums, zeros.size
