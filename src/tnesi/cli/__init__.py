"""The command ``tnesi``; needs typer and rich (``pip install 'tnesi[cli]'``)."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line."""
    try:
        from tnesi.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'tnesi[cli]'")
    for name in ("SIGTERM", "SIGHUP"):  # told to end, or the terminal was closed: leave nothing half-written
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    app()
