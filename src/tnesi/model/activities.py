"""First-layer activities: the fields K^(n) of each row and their posterior s (eqs. 18 to 20)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.system.files import FileWriteError
from tnesi.types import Array

_MOST_BYTES = 2**25
"""Larger activities are kept in a file."""
_CHUNK = 2**16


def _mapped(shape: tuple[int, ...], dtype: Any) -> Array:
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(prefix="tnesi-activities-") as file:  # stays mapped after it is closed
        try:
            if hasattr(os, "posix_fallocate"):  # if the disk became full later, the process would be killed
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
        except OSError as error:
            raise FileWriteError(
                f"the activities of the rows need a file of {n_bytes / 1e9:.2g} GB, and "
                f"{tempfile.gettempdir()} has no room for it ({error.strerror})",
                advice="set TMPDIR to a folder with more space",
            ) from error
        return np.memmap(file, dtype, "r+", shape=shape)


@dataclass(frozen=True)
class Activities:
    """Truncated posterior of N rows.

    Attributes
    ----------
    ids : (N, C') array of int32
        Fields in descending order of their input I_c; -1 is an empty place.
    s : (N, C') array of float32
        Their activities, which sum to 1 for each row.
    log_sum : (N,) array of float32
        Log of the sum over K^(n) of exp(I_c).
    """

    ids: Array
    s: Array
    log_sum: Array

    @classmethod
    def empty(cls, n: int, width: int) -> Activities:
        return cls(np.full((n, width), -1, np.int32), np.zeros((n, width), np.float32), np.zeros(n, np.float32))

    @classmethod
    def large(cls, n: int, width: int) -> Activities:
        """Return empty activities, in a memory-mapped temporary file if they are large."""
        if 8 * n * width <= _MOST_BYTES:
            return cls.empty(n, width)
        ids, s = _mapped((n, width), np.int32), _mapped((n, width), np.float32)
        ids[:] = -1
        return cls(ids, s, np.zeros(n, np.float32))

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def copy(self) -> Activities:
        return Activities(self.ids.copy(), self.s.copy(), self.log_sum.copy())

    @property
    def best(self) -> Array:
        """The field with the largest input, for each row."""
        return np.ascontiguousarray(self.ids[:, 0])

    def at(self, place: slice) -> Activities:
        """Return the activities of some rows; those of consecutive rows are a view."""
        return Activities(self.ids[place], self.s[place], self.log_sum[place])

    def take(self, index: Array) -> Activities:
        """Return a copy of the activities of some rows."""
        return Activities(self.ids[index], self.s[index], self.log_sum[index])

    @classmethod
    def stacked(cls, parts: list[Activities], width: int) -> Activities:
        """Return the activities of several parts in order; narrower ones get empty places."""
        if len(parts) == 1 and parts[0].ids.shape[1] == width:
            return parts[0]
        out = cls.empty(sum(len(part) for part in parts), width)
        at = 0
        for part in parts:
            place = slice(at, at + len(part))
            out.ids[place, : part.ids.shape[1]], out.s[place, : part.ids.shape[1]] = part.ids, part.s
            out.log_sum[place] = part.log_sum
            at += len(part)
        return out

    def put(self, place: slice, other: Activities) -> None:
        """Overwrite the activities of some rows."""
        self.ids[place], self.s[place], self.log_sum[place] = other.ids, other.s, other.log_sum

    def mass(self, n_fields: int, weight: Array | None) -> Array:
        """Return sum_n s_nc of each field, with row weights if given."""
        total = np.zeros(n_fields)
        for place in self._chunks():
            own = self.at(place)
            s = own.s if weight is None else own.s * weight[place, None]
            real = own.ids >= 0
            total += np.bincount(own.ids[real], s[real], n_fields)
        return total

    def to_csr(self, n_fields: int) -> sparse.csr_array:
        """Return the activities as a sparse N x C array; those in a file stay in a file."""
        indptr = np.zeros(len(self) + 1, np.int64)
        for place in self._chunks():
            indptr[place.start + 1 : place.stop + 1] = np.count_nonzero(self.s[place] > 0, axis=1)
        np.cumsum(indptr, out=indptr)
        new = _mapped if isinstance(self.s, np.memmap) else np.empty
        data, indices = np.asarray(new((indptr[-1],), np.float32)), np.asarray(new((indptr[-1],), np.int32))
        for place in self._chunks():
            real = self.s[place] > 0
            to = slice(indptr[place.start], indptr[place.stop])
            data[to], indices[to] = self.s[place][real], self.ids[place][real]
        if indptr[-1] < 2**31:  # SciPy would also widen the indices
            indptr = indptr.astype(np.int32)
        return sparse.csr_array((data, indices, indptr), shape=(len(self), n_fields))

    def _chunks(self) -> Iterator[slice]:
        """Yield consecutive rows; limits the size of NumPy's copies."""
        for start in range(0, len(self), _CHUNK):
            yield slice(start, min(start + _CHUNK, len(self)))
