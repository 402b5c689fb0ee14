"""Who hears how far a long computation is; the command line shows it as a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Progress:
    """Hears nothing; override what is of interest."""

    def begin(self, total: float) -> None:
        """Hear how much there is to do."""

    def tell(self, text: str) -> None:
        """Hear what is being done now."""

    def advance(self, amount: float = 1) -> None:
        """Hear that so much is done."""


def tell_iterations(progress: Progress, name: str) -> Callable[[dict[str, Any]], None]:
    """Return a callback for `fit` that tells of its iterations."""

    def callback(entry: dict[str, Any]) -> None:
        progress.tell(f"{name}: {iteration_of(entry)}")

    return callback


def iteration_of(entry: dict[str, Any]) -> str:
    """Return which iteration a record is of, and of which mixture in a committee."""
    place = f"mixture {entry['mixture']} of {entry['mixtures']}, " if "mixture" in entry else ""
    return f"{place}iteration {entry['iteration']}"


def tell_parts(progress: Progress) -> Callable[[str, int, int | None], None]:
    """Return a callback for downloads and preparations, which say what is done and how much of it."""

    def callback(what: str, done: int, total: int | None) -> None:
        progress.tell(f"{what}: {100 * done / total:.0f} %" if total else f"{what}: {done:,}")

    return callback
