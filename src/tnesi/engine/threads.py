"""How many threads to use."""

from __future__ import annotations

import os


def resolve_threads(n_threads: int | None) -> int:
    """Return the number of threads: as asked, else OMP_NUM_THREADS, else the processors this process may use."""
    if n_threads is not None:
        return int(n_threads)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(available, int(asked)) if asked.isdigit() and int(asked) > 0 else available
