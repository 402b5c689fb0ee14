"""Number of threads."""

from __future__ import annotations

import os
import sys


def resolve_threads(n_jobs: int | None) -> int:
    """Return the number of threads: `n_jobs`, or for None and -1 this process's share of the available processors.

    OMP_NUM_THREADS, which joblib and Dask set for their processes, limits the share. Tasks that run at the same time in
    a Dask worker share the processors.
    """
    if n_jobs not in (None, -1):
        return int(n_jobs)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = max(1, available // _task_slots())
    return min(share, _number("OMP_NUM_THREADS", available))


def _number(variable: str, default: int = 1) -> int:
    """Return the first number in an environment variable if it is a positive integer, else `default`."""
    text = os.environ.get(variable, "").split(",")[0].strip()
    return int(text) if text.isdigit() and int(text) > 0 else default


def _task_slots() -> int:
    """Return the number of simultaneous tasks of the Dask worker that runs this code, or 1."""
    distributed = sys.modules.get("distributed.worker")
    if distributed is None:
        return 1
    try:
        return int(distributed.get_worker().state.nthreads)
    except ValueError:  # not in a task
        return 1
