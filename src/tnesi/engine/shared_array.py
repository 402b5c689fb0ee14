"""Arrays that processes of one machine share instead of sending copies to each other.

Such an array lies in memory without a name (a memfd), which others open through the process that made it. It goes with
the last process that uses it: whoever is killed, nothing is left behind. Only Linux has this; elsewhere, and between
machines, arrays are sent.
"""

from __future__ import annotations

import mmap
import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class OutOfReachError(OSError):
    """The array is on another machine, or the process that made it has ended or let it go."""


class SharedArray:
    """Zeros that this process, their owner, may write over and others read; sent to them, it is only an address."""

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype).str
        self._owner, self._name = os.getpid(), f"tnesi-{uuid4().hex}"
        self._descriptor = os.memfd_create(self._name)
        weakref.finalize(self, os.close, self._descriptor)
        os.posix_fallocate(self._descriptor, 0, max(self.nbytes, 1))  # no surprise where memory is short
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        self._array = self._over(mmap.mmap(self._descriptor, max(self.nbytes, 1), flags=flags))

    @property
    def array(self) -> Array:
        """The array itself; only its owner can write to it."""
        if not hasattr(self, "_array"):
            try:
                self._array = self._opened()
            except OSError as error:
                raise OutOfReachError(f"process {self._owner} shares no such array here ({error})") from error
        return self._array

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def _opened(self) -> Array:
        descriptor = os.open(f"/proc/{self._owner}/fd/{self._descriptor}", os.O_RDONLY)
        try:
            if self._name not in Path(f"/proc/self/fd/{descriptor}").readlink().name:
                raise OutOfReachError("it is another one")
            flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
            return self._over(mmap.mmap(descriptor, 0, flags=flags, prot=mmap.PROT_READ))
        finally:
            os.close(descriptor)

    def _over(self, memory: mmap.mmap) -> Array:
        return np.frombuffer(memory, self.dtype, int(np.prod(self.shape))).reshape(self.shape)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_array"}


def can_share() -> bool:
    """Tell whether this system can."""
    return hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir()


def reaches(shared: SharedArray) -> bool:
    """Tell whether this process can open what another one, with the same rights, shares."""
    try:
        return can_share() and shared.array is not None
    except OutOfReachError:
        return False


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike, *, share: bool) -> Array | SharedArray:
    """Return zeros that processes of this machine share, or that this one has for itself."""
    if share:
        with suppress(OSError):  # no room for it
            return SharedArray(shape, dtype)
    return np.full(shape, 0, dtype)  # in large pages, unlike np.zeros


def opened(array: Array | SharedArray) -> Array:
    """Return the array, wherever it is."""
    return array.array if isinstance(array, SharedArray) else array
