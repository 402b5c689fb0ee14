"""Arrays that processes on one machine share instead of sending copies.

An array lies in anonymous memory (a memfd), which other processes open through its owner. It is released with the last
process that uses it, even if processes are killed. Only Linux supports this; elsewhere, and between machines, arrays
are sent.
"""

from __future__ import annotations

import copy
import mmap
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tnesi.types import Array

_STAMP = np.dtype(np.int64)
_FLAGS = getattr(mmap, "MAP_SHARED", 0) | getattr(mmap, "MAP_POPULATE", 0)  # Windows and macOS lack them
_seen: WeakValueDictionary[str, mmap.mmap] = WeakValueDictionary()


class OutOfReachError(OSError):
    """A shared array on another machine, or one whose owner has ended, released or overwritten it."""


class SharedArray:
    """An array that its owner, the creating process, writes and others read. Only its address is sent to them.

    Allocation is expensive, so the memory is reused (:meth:`reused`). Readers detect that by :meth:`check`.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype).str
        self._owner, self._name, self._stamp = os.getpid(), f"tnesi-{uuid4().hex}", 0
        self._descriptor = os.memfd_create(self._name)
        try:
            os.posix_fallocate(self._descriptor, 0, self._end + _STAMP.itemsize)  # fails now if memory is short
            self._memory = mmap.mmap(self._descriptor, 0, flags=_FLAGS)
        except BaseException:
            os.close(self._descriptor)
            raise
        weakref.finalize(self._memory, os.close, self._descriptor)

    @property
    def array(self) -> Array:
        """The array; only its owner can write to it."""
        return np.frombuffer(self._mapped(), self.dtype, int(np.prod(self.shape))).reshape(self.shape)

    def reused(self) -> SharedArray:
        """Return the same memory for new content, as its owner; the old content becomes invalid."""
        new = copy.copy(self)
        vars(new).update(_memory=self._memory, _stamp=self._stamp + 1)
        np.frombuffer(self._memory, _STAMP, 1, self._end)[0] = self._stamp + 1
        return new

    def check(self) -> None:
        """Raise an error if the memory has been reused, so that the data read may be invalid."""
        if np.frombuffer(self._mapped(), _STAMP, 1, self._end)[0] != self._stamp:
            raise OutOfReachError(f"process {self._owner} has reused the memory")

    @property
    def _end(self) -> int:
        """Offset of the stamp that counts the uses of the memory."""
        n_bytes = int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize
        return -(-n_bytes // _STAMP.itemsize) * _STAMP.itemsize

    def _mapped(self) -> mmap.mmap:
        """Return the memory, which is mapped once per process."""
        if not hasattr(self, "_memory"):
            try:
                memory = _seen.get(self._name) or self._opened()
            except OSError as error:
                raise OutOfReachError(f"cannot open the shared array of process {self._owner} ({error})") from error
            self._memory = _seen[self._name] = memory
        return self._memory

    def _opened(self) -> mmap.mmap:
        descriptor = os.open(f"/proc/{self._owner}/fd/{self._descriptor}", os.O_RDONLY)
        try:
            if self._name not in Path(f"/proc/self/fd/{descriptor}").readlink().name:
                raise OutOfReachError("another file has its descriptor")
            return mmap.mmap(descriptor, 0, flags=_FLAGS, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_memory"}


def can_share() -> bool:
    """Return whether this system supports shared arrays."""
    return hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir()


def can_open(shared: SharedArray) -> bool:
    """Return whether this process can open a shared array of another process."""
    try:
        return can_share() and shared.array is not None
    except OutOfReachError:
        return False


def allocate(
    shape: tuple[int, ...], dtype: npt.DTypeLike, *, share: bool, spare: SharedArray | None = None
) -> Array | SharedArray:
    """Return an array to write to, shared with other processes if requested and possible.

    The memory of `spare` is reused if it fits.
    """
    if share and spare is not None and (spare.shape, spare.dtype) == (shape, np.dtype(dtype).str):
        return spare.reused()
    if share:
        with suppress(OSError):  # not enough shared memory
            return SharedArray(shape, dtype)
    return np.empty(shape, dtype)


def opened(array: Array | SharedArray) -> Array:
    """Return the array, which may be shared."""
    return array.array if isinstance(array, SharedArray) else array


@contextmanager
def reading(*arrays: Array | SharedArray) -> Iterator[list[Array]]:
    """Yield the arrays; raise an error if the memory of one was reused in the meantime."""
    yield [opened(array) for array in arrays]
    for array in arrays:
        if isinstance(array, SharedArray):
            array.check()
