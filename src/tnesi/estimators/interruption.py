"""Ctrl-C where half a result is no result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning


@contextmanager
def ctrl_c_stops() -> Iterator[None]:
    """Within, Ctrl-C ends the work, where `fit` by itself would return what it has learned so far.

    That the iterations ended before `tol` was reached is not worth a warning here: the records say so.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*did not reach tol", ConvergenceWarning)
        warnings.filterwarnings("error", "learning .*was interrupted", ConvergenceWarning)
        try:
            yield
        except ConvergenceWarning as stop:
            raise KeyboardInterrupt from stop
