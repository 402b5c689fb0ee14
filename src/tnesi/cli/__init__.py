"""The command ``tnesi``; needs typer and rich (``pip install 'tnesi[cli]'``)."""

from __future__ import annotations

import signal
import sys

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Somebody wants it to end, or has closed its terminal."""


def main() -> None:
    """Run the command line."""
    try:
        from tnesi.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'tnesi[cli]'")
    for number in ENDING:  # leave nothing half-written
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    app()
