"""Loaded by the workers of a cluster that `fit` starts for itself."""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C, which reaches all processes of a terminal, to the client: it finishes the iteration at hand."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
