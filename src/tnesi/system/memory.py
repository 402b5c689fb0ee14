"""Free memory, and the number of fields that fit into it."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tnesi.errors import InvalidParameterError

_PER_WEIGHT = 24
"""Bytes per weight during learning: W and log W in float32 for two iterations, and the initial ones or, with many rows,
sums in float64."""
_PER_WEIGHT_LEARNED = 8
"""Bytes per weight of a learned mixture."""
_NEARLY_NONE = 2**27
"""Bytes; a few threads and buffers take that much."""


def free_memory(root: Path = Path("/")) -> int:
    """Return the memory that this process can still allocate, in bytes.

    That is the minimum of the machine's free memory and what the limits of the process (``ulimit -v`` and ``-d``) and
    of its control group (containers, batch systems) leave. It is 8 GB where the system reports nothing.

    Parameters
    ----------
    root : Path
        Folder that contains ``proc`` and ``sys``.
    """
    of_machine = _numbers(root / "proc/meminfo").get("MemAvailable")
    found = [] if of_machine is None else [of_machine * 1024]
    found += [*_left_by_process(root), *_left_by_groups(root)]
    return max(0, min(found, default=8 * 2**30))


def is_lack_of_memory(error: BaseException | None, outside: BaseException | None = None) -> bool:
    """Return whether an error, or one of its causes, is a lack of memory.

    `outside` is an exception that was already being handled; it and its causes do not count. If nearly no memory is
    left, every error counts: libraries report failed allocations and threads in many ways.
    """
    if error is not None and free_memory() < _NEARLY_NONE:
        return True
    while error is not None and error is not outside:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        error = error.__cause__ or error.__context__
    return False


def drop_pages(array: object) -> None:
    """Let the system drop the pages of a file that an array maps; otherwise the whole file ends up in memory."""
    mapped: Any = getattr(array, "_mmap", None) if getattr(array, "mode", "") == "r" else None
    if hasattr(mapped, "madvise"):  # not on Windows
        mapped.madvise(mmap.MADV_DONTNEED)


def _left_by_process(root: Path) -> Iterator[int]:
    """Yield the memory that the limits of this process leave."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    used = _numbers(root / "proc/self/status")
    for limit, use in (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")):
        number = getattr(resource, limit, None)  # missing on some systems
        most = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[0]
        if most != resource.RLIM_INFINITY:
            yield most - used.get(use, 0) * 1024


def _left_by_groups(root: Path) -> Iterator[int]:
    """Yield the memory that the limits of this process's control group and of its parents leave."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mounts: tuple[str, ...]
        if number == "0":  # version 2
            mounts, names, cached = ("", "unified"), ("memory.max", "memory.current"), ("inactive_file", "active_file")
        elif "memory" in controllers.split(","):
            mounts, names = ("memory",), ("memory.limit_in_bytes", "memory.usage_in_bytes")
            cached = ("total_inactive_file", "total_active_file")
        else:
            continue
        parts = [part for part in path.split("/") if part]
        if ".." in parts:  # not visible to this process
            parts = []
        for mount in mounts:
            for depth in range(len(parts), -1, -1):
                folder = (root / "sys/fs/cgroup" / mount).joinpath(*parts[:depth])
                most, used = (_text(folder / name).strip() for name in names)
                if most.isdecimal() and used.isdecimal():  # "max" is no limit
                    statistics = _numbers(folder / "memory.stat")  # cached files are dropped when memory is needed
                    yield int(most) - int(used) + sum(statistics.get(name, 0) for name in cached)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers in a file with lines like ``MemAvailable:  123 kB``, by name."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}


def check_fields_fit(n_fields: int, n_features: int, n_more: int = 0) -> None:
    """Raise an error if the fields do not fit into memory; `n_more` further mixtures are learned after this one."""
    per_field = n_features * (_PER_WEIGHT + n_more * _PER_WEIGHT_LEARNED)
    room = free_memory()
    if n_fields * per_field <= room:
        return
    advice = "use fewer features (drop the rarest ones, or select them with sklearn.feature_selection)"
    if room < per_field:
        advice = f"not even one field fits; {advice}"
    else:
        advice = f"pass {{n_components:{{most}}}} or fewer{', or fewer mixtures' if n_more else ''}, or {advice}"
    raise InvalidParameterError(
        "{fields} fields of {features} features need {need:.1f} GB of memory, but only {room:.1f} GB are free",
        parameter="n_components",
        advice=advice,
        fields=n_fields,
        features=n_features,
        need=n_fields * per_field / 1e9,
        room=room / 1e9,
        most=room // per_field,
    )
