"""Ctrl-C where half a result is no result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from tnesi.training.monitor import InterruptedWarning


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Within, Ctrl-C ends the work, where `fit` by itself would return what it has learned so far.

    Iterations that end before `tol` is reached are no reason to warn here: the records show it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", InterruptedWarning)
        try:
            yield
        except InterruptedWarning as stop:
            raise KeyboardInterrupt from stop
