"""Arrays that processes of one machine share instead of sending copies to each other.

Such an array lies in memory without a name (a memfd), which others open through the process that made it. It goes with
the last process that uses it: whoever is killed, nothing is left behind. Only Linux has this; elsewhere, and between
machines, arrays are sent.
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
_FLAGS = mmap.MAP_SHARED | mmap.MAP_POPULATE
_seen: WeakValueDictionary[str, mmap.mmap] = WeakValueDictionary()


class OutOfReachError(OSError):
    """The array is on another machine, or the process that made it has ended, let it go or written over it."""


class SharedArray:
    """What this process, the owner, writes and others read; sent to them, it is only an address.

    New memory is dear, so it is used :meth:`again` for what comes next. Whoever still reads what was in it before
    learns of it by :meth:`check`.
    """

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype).str
        self._owner, self._name, self._stamp = os.getpid(), f"tnesi-{uuid4().hex}", 0
        self._descriptor = os.memfd_create(self._name)
        try:
            os.posix_fallocate(self._descriptor, 0, self._end + _STAMP.itemsize)  # no surprise where memory is short
            self._memory = mmap.mmap(self._descriptor, 0, flags=_FLAGS)
        except BaseException:
            os.close(self._descriptor)
            raise
        weakref.finalize(self._memory, os.close, self._descriptor)

    @property
    def array(self) -> Array:
        """The array itself; only its owner can write to it."""
        return np.frombuffer(self._reached(), self.dtype, int(np.prod(self.shape))).reshape(self.shape)

    def again(self) -> SharedArray:
        """Return the same memory for something else, as its owner; what was in it is not to be read any more."""
        new = copy.copy(self)
        vars(new).update(_memory=self._memory, _stamp=self._stamp + 1)
        np.frombuffer(self._memory, _STAMP, 1, self._end)[0] = self._stamp + 1
        return new

    def check(self) -> None:
        """Raise an error if the memory has been used again, so that what was read may be something else."""
        if np.frombuffer(self._reached(), _STAMP, 1, self._end)[0] != self._stamp:
            raise OutOfReachError(f"process {self._owner} has used the memory for something else")

    @property
    def _end(self) -> int:
        """Where the stamp is that tells for the how manieth time the memory is used."""
        n_bytes = int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize
        return -(-n_bytes // _STAMP.itemsize) * _STAMP.itemsize

    def _reached(self) -> mmap.mmap:
        """Return the memory; processes that look at it again and again map it once."""
        if not hasattr(self, "_memory"):
            try:
                memory = _seen.get(self._name) or self._opened()
            except OSError as error:
                raise OutOfReachError(f"process {self._owner} shares no such array here ({error})") from error
            self._memory = _seen[self._name] = memory
        return self._memory

    def _opened(self) -> mmap.mmap:
        descriptor = os.open(f"/proc/{self._owner}/fd/{self._descriptor}", os.O_RDONLY)
        try:
            if self._name not in Path(f"/proc/self/fd/{descriptor}").readlink().name:
                raise OutOfReachError("it is another one")
            return mmap.mmap(descriptor, 0, flags=_FLAGS, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_memory"}


def can_share() -> bool:
    """Tell whether this system can."""
    return hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir()


def reaches(shared: SharedArray) -> bool:
    """Tell whether this process can open what another one, with the same rights, shares."""
    try:
        return can_share() and shared.array is not None
    except OutOfReachError:
        return False


def room(
    shape: tuple[int, ...], dtype: npt.DTypeLike, *, share: bool, spare: SharedArray | None = None
) -> Array | SharedArray:
    """Return an array to write to, for processes of this machine to share, or for this one alone.

    Memory that is not needed any more is used again if it fits.
    """
    if share and spare is not None and (spare.shape, spare.dtype) == (shape, np.dtype(dtype).str):
        return spare.again()
    if share:
        with suppress(OSError):  # there is not enough
            return SharedArray(shape, dtype)
    return np.empty(shape, dtype)


def opened(array: Array | SharedArray) -> Array:
    """Return the array, wherever it is."""
    return array.array if isinstance(array, SharedArray) else array


@contextmanager
def reading(*arrays: Array | SharedArray) -> Iterator[list[Array]]:
    """Yield the arrays; raise an error if one of them was not the same all the time."""
    yield [opened(array) for array in arrays]
    for array in arrays:
        if isinstance(array, SharedArray):
            array.check()
