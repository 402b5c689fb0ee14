"""Rows as they come, dense or sparse: in memory, or in files if they are many."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import sparse

from tnesi.model.rows import Matrix
from tnesi.system.files import FileWriteError
from tnesi.types import Array

_TYPES = {"rows": np.dtype(np.float32), "values": np.dtype(np.float32), "columns": np.dtype(np.int32)}
_LENGTHS = np.dtype(np.int64)
_MOST_INT32 = 2**31


class TemporaryFolder:
    """A folder that is removed when nothing refers to this object any more, and at the end of the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tnesi-encoded-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class SpoolSize:
    """How much there is in the files of spooled rows.

    Attributes
    ----------
    n_rows, n_features : int
    n_values : int or None
        Number of entries of sparse rows; None for dense rows.
    """

    n_rows: int = 0
    n_features: int = 0
    n_values: int | None = None

    def bytes_of(self) -> dict[str, int]:
        """Return the size of each file.

        Examples
        --------
        >>> SpoolSize(3, 10).bytes_of(), SpoolSize(3, 10, 7).bytes_of()
        ({'rows': 120}, {'values': 28, 'columns': 28, 'lengths': 24})
        """
        if self.n_values is None:
            return {"rows": self.n_rows * self.n_features * 4}
        return {"values": 4 * self.n_values, "columns": 4 * self.n_values, "lengths": 8 * self.n_rows}


class SpooledRows:
    """Rows of float32, block by block.

    Parameters
    ----------
    in_memory : int
        Bytes up to which they are kept in memory; then in a temporary folder.
    folder : Path or None
        Keep them there instead, from the first row on.
    size : SpoolSize
        What the folder has of earlier rows; anything beyond is removed.

    Attributes
    ----------
    size : SpoolSize
    keep : TemporaryFolder or None
        Must live as long as the matrix.
    """

    def __init__(self, in_memory: int, folder: Path | None = None, size: SpoolSize | None = None) -> None:
        self.size = size or SpoolSize()
        self.keep: TemporaryFolder | None = None
        self._in_memory, self._bytes, self._folder = in_memory, 0, folder
        self._parts: list[Any] = []
        if folder is not None:
            for name in ("rows", "values", "columns", "lengths"):
                n_bytes, file = self.size.bytes_of().get(name, 0), folder / name
                if not n_bytes:
                    file.unlink(missing_ok=True)
                elif file.stat().st_size > n_bytes:
                    os.truncate(file, n_bytes)

    def add(self, rows: Matrix) -> None:
        """Keep rows after those of earlier calls."""
        arrays = [rows.data, rows.indices] if sparse.issparse(rows) else [rows]
        n_values = (self.size.n_values or 0) + rows.nnz if sparse.issparse(rows) else None
        self.size = SpoolSize(self.size.n_rows + rows.shape[0], int(rows.shape[1]), n_values)
        self._bytes += sum(array.nbytes for array in arrays)
        self._parts.append(rows)
        if self._folder is None and self._bytes > self._in_memory:
            self.keep = TemporaryFolder()
            self._folder = self.keep.path
        if self._folder is not None:
            self._write()

    def matrix(self) -> Matrix:
        """Return all rows; those in files are memory-mapped."""
        shape = self.size.n_rows, self.size.n_features
        if self._folder is None:
            if sparse.issparse(self._parts[0]):
                joined: sparse.csr_array = sparse.csr_array(sparse.vstack(self._parts, format="csr"))
                return joined
            return np.vstack(self._parts)
        if self.size.n_values is None:
            return self._mapped("rows").reshape(shape)
        starts = np.concatenate([[0], np.cumsum(np.fromfile(self._folder / "lengths", _LENGTHS))])
        if starts[-1] < _MOST_INT32:  # as SciPy would have it
            starts = starts.astype(np.int32)
        if not self.size.n_values:  # an empty file cannot be mapped
            return cast("sparse.csr_array", sparse.csr_array(shape, dtype=np.float32))
        return sparse.csr_array((self._mapped("values"), self._mapped("columns"), starts), shape=shape)

    def _write(self) -> None:
        for part in self._parts:
            if isinstance(part, np.ndarray):
                self._append("rows", part)
            else:
                self._append("values", part.data)
                self._append("columns", part.indices)
                self._append("lengths", np.diff(part.indptr), _LENGTHS)
        self._parts = []

    def _append(self, name: str, values: Array, dtype: np.dtype[Any] | None = None) -> None:
        assert self._folder is not None
        try:
            with (self._folder / name).open("ab") as file:
                file.write(np.ascontiguousarray(values, dtype or _TYPES[name]).data)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise FileWriteError(
                "{folder} is full",
                folder=self._folder,
                advice="make room, or choose another folder: set TMPDIR, or {checkpoint} if this is one",
            ) from error

    def _mapped(self, name: str) -> Array:
        assert self._folder is not None
        return np.memmap(self._folder / name, _TYPES[name], "r")
