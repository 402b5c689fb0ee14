"""Preloaded by the workers of a temporary cluster."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Ignore Ctrl-C, which all processes of a terminal receive, so that the client can complete the iteration."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
