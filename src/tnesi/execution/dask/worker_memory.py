"""Faster workers: ``dask worker ... --preload tnesi.execution.dask.worker_memory``.

Dask tells the C library of its workers to give all memory back to the system at once. Each task of ours then gets fresh
pages for what it needs for a moment, and the system clears them first: a seventh of the time. This keeps up to
256 MB for the next task.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of the settings in malloc.h."""
_KEPT, _KEPT_BY_OLD_LIBRARIES = 2**28, 2**25


def dask_setup(worker: Any) -> None:
    """Keep memory; only the GNU C library can do that, or needs to be told."""
    try:
        set_option = ctypes.CDLL(ctypes.util.find_library("c")).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(_TRIM_THRESHOLD, _KEPT)
    set_option(_MMAP_THRESHOLD, _KEPT) or set_option(_MMAP_THRESHOLD, _KEPT_BY_OLD_LIBRARIES)
