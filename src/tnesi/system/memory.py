"""How much memory there is, and what fits into it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

_PER_WEIGHT = 24
"""Bytes that learning takes for each weight: W and log W in float32 of two iterations, and those of the start or, where
the rows are many, sums in float64."""
_PER_WEIGHT_LEARNED = 8
"""Bytes that a mixture takes afterwards."""
_HARDLY_ANY = 2**27
"""Bytes; a few threads and buffers take as much."""


def free_memory(root: Path = Path("/")) -> int:
    """Return the memory that this process can still allocate, in bytes.

    That is the least of what the machine has, what the limits of the process leave (``ulimit -v`` and ``-d``), and what
    those of its control group leave (containers, batch systems). It is 8 GB where the system reports nothing.

    Parameters
    ----------
    root : Path
        Where the folders ``proc`` and ``sys`` are.
    """
    of_machine = _numbers(root / "proc/meminfo").get("MemAvailable")
    found = [] if of_machine is None else [of_machine * 1024]
    found += [*_left_by_process(root), *_left_by_groups(root)]
    return max(0, min(found, default=8 * 2**30))


def is_lack_of_memory(error: BaseException | None, outside: BaseException | None = None) -> bool:
    """Return whether an error, or one that led to it, says that there is not enough memory.

    `outside` is an exception that was being handled already; it and what led to it do not count. If hardly any memory
    is left, every error counts: libraries report failed allocations and threads in many ways.
    """
    if error is not None and free_memory() < _HARDLY_ANY:
        return True
    while error is not None and error is not outside:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        error = error.__cause__ or error.__context__
    return False


def _left_by_process(root: Path) -> Iterator[int]:
    """Yield what the limits of this process leave."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    used = _numbers(root / "proc/self/status")
    for limit, use in (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")):
        number = getattr(resource, limit, None)  # which some systems lack
        most = resource.RLIM_INFINITY if number is None else resource.getrlimit(number)[0]
        if most != resource.RLIM_INFINITY:
            yield most - used.get(use, 0) * 1024


def _left_by_groups(root: Path) -> Iterator[int]:
    """Yield what the limits of the control group of this process leave, and those of the groups around it."""
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
        if ".." in parts:  # the group is outside of what this process can see
            parts = []
        for mount in mounts:
            for depth in range(len(parts), -1, -1):
                folder = (root / "sys/fs/cgroup" / mount).joinpath(*parts[:depth])
                most, used = (_text(folder / name).strip() for name in names)
                if most.isdecimal() and used.isdecimal():  # "max" is no limit
                    statistics = _numbers(folder / "memory.stat")  # files in the cache make room when it is needed
                    yield int(most) - int(used) + sum(statistics.get(name, 0) for name in cached)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers in a file of lines like ``MemAvailable:  123 kB`` by their names."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}


def check_fields_fit(n_fields: int, n_features: int, n_more: int = 0) -> None:
    """Refuse fields that cannot fit into memory, where `n_more` other mixtures are still to be learned beside them."""
    per_field = n_features * (_PER_WEIGHT + n_more * _PER_WEIGHT_LEARNED)
    room = free_memory()
    if n_fields * per_field <= room:
        return
    raise ValueError(
        f"{n_fields} fields of {n_features} features take {n_fields * per_field / 1e9:.1f} GB of memory to learn, "
        f"{room / 1e9:.1f} GB are free: {_what_fits(room // per_field, n_more)}"
    )


def _what_fits(n_fields: int, n_more: int) -> str:
    fewer = "use fewer features (drop the rarest ones, or choose with sklearn.feature_selection)"
    if n_fields < 1:
        return f"not even one field fits; {fewer}"
    mixtures = ", or fewer mixtures" if n_more else ""
    return f"pass n_components={n_fields} or fewer{mixtures}, or {fewer}"
