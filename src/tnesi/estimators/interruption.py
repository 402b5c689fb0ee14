"""Ctrl-C during work for which partial results are useless."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from tnesi.training.monitor import InterruptedWarning


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Return a context in which an interrupted `fit` raises KeyboardInterrupt instead of returning a partial result.

    Convergence warnings are ignored in it, since the records show whether `tol` was reached.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", InterruptedWarning)
        try:
            yield
        except InterruptedWarning as stop:
            raise KeyboardInterrupt from stop
