"""Time and peak memory of an action in this process."""

from __future__ import annotations

import ctypes
import re
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

_PROCESS = Path("/proc/self")


class Cost(NamedTuple):
    """Wall time, time of all threads on processors, and memory on top of what was in use before."""

    seconds: float
    cpu_seconds: float
    megabytes: float


def measure(action: Callable[[], Any]) -> tuple[Any, Cost]:
    """Return the result of `action`, its time, and its peak memory.

    On Linux the kernel's record of the peak is reset first. Elsewhere the peak is that of the whole life of the
    process, so only an action that needs more than all before is seen.
    """
    before = _reset()
    began, cpu_began = time.perf_counter(), time.process_time()
    found = action()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return found, Cost(seconds, cpu_seconds, max(0.0, _peak() - before))


def _reset() -> float:
    """Return free memory to the system and reset the peak, if possible; return the memory in use in MB."""
    with suppress(AttributeError, OSError, TypeError):  # the C library of Linux has it
        ctypes.CDLL(None).malloc_trim(0)
    try:
        (_PROCESS / "clear_refs").write_text("5")
    except OSError:
        return _peak()
    return _status("VmRSS")


def _peak() -> float:
    if (_PROCESS / "status").exists():
        return _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _status(key: str) -> float:
    found = re.search(rf"^{key}:\s*(\d+) kB", (_PROCESS / "status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"{_PROCESS / 'status'} has no {key}")
    return int(found[1]) / 1024
