"""The command ``tnesi``; needs typer and rich (``pip install 'tnesi[cli]'``)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Somebody wants it to end, or has closed its terminal."""
INTERRUPTED = 130
"""How it ends after Ctrl-C."""


def when_ending(act: Callable[[int, FrameType | None], object]) -> None:
    """Do this when somebody wants the program to end; who has it ignored, as nohup does, is not asked."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, act)


def end_undisturbed() -> None:
    """From here on it ends by itself, in seconds."""
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
    except KeyboardInterrupt:  # before there was a command
        sys.exit(INTERRUPTED)
    finally:
        end_undisturbed()
