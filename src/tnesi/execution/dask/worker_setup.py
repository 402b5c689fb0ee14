"""Preloaded by the workers of a temporary cluster."""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Ignore Ctrl-C, which all processes of a terminal receive, so that the client can complete the iteration."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
