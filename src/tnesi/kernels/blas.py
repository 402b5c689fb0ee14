"""Dense products with BLAS, bitwise equal for any number of threads.

BLAS libraries divide a product among threads in ways that change the last bits. Here BLAS runs on one thread, and a
thread pool computes parts of a fixed size.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from tnesi.types import Array

_PART = 1024
"""Columns of the result per part."""

_lock = threading.Lock()
_users = 0
_limit: Any = None


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread; contexts may be nested and entered from several threads at once."""
    global _users, _limit
    with _lock:
        _users += 1
        if _users == 1:
            _limit = _libraries().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


def product(a: Array, b: Array, n_threads: int) -> Array:
    """Return ``a @ b.T``; call it within :func:`single_threaded_blas`."""
    out = np.empty((a.shape[0], b.shape[0]), np.float32)
    parts = [slice(start, start + _PART) for start in range(0, b.shape[0], _PART)]

    def multiply(part: slice) -> None:
        np.matmul(a, b[part].T, out=out[:, part])

    if n_threads == 1 or len(parts) == 1:
        for part in parts:
            multiply(part)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(multiply, parts))
    return out
