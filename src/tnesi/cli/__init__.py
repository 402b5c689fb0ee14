"""The command ``tnesi``; needs typer and rich (``pip install 'tnesi[cli]'``)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end the program."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def when_ending(act: Callable[[int, FrameType | None], object]) -> None:
    """Install a handler for the signals that end the program, except for ignored ones (as under nohup)."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, act)


def end_undisturbed() -> None:
    """Ignore further signals while the program ends, which takes seconds."""
    for number in (signal.SIGINT, *ENDING):
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """Run the command line."""
    try:
        try:
            from tnesi.cli.app import app
        except ModuleNotFoundError as error:
            if error.name not in ("typer", "rich"):
                raise
            sys.exit(f"the command line needs {error.name}: pip install 'tnesi[cli]'")
        when_ending(lambda number, _: sys.exit(128 + number))  # leave nothing half-written
        app()
    except KeyboardInterrupt:  # before a command runs
        sys.exit(INTERRUPTED)
    finally:
        end_undisturbed()
