"""Progress of long computations; the command line shows it as a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Progress:
    """A listener that ignores all events; subclasses override methods."""

    def begin(self, total: float) -> None:
        """Set the total amount of work."""

    def tell(self, text: str) -> None:
        """Describe the current step."""

    def advance(self, amount: float = 1) -> None:
        """Add to the amount of work done."""


def tell_iterations(progress: Progress, name: str) -> Callable[[dict[str, Any]], None]:
    """Return a callback for `fit` that describes the current iteration."""

    def callback(entry: dict[str, Any]) -> None:
        progress.tell(f"{name}: {iteration_of(entry)}")

    return callback


def iteration_of(entry: dict[str, Any]) -> str:
    """Return a description of the iteration of a record and, in a committee, of its mixture."""
    place = f"mixture {entry['mixture']} of {entry['mixtures']}, " if "mixture" in entry else ""
    return f"{place}iteration {entry['iteration']}"


def tell_parts(progress: Progress) -> Callable[[str, int, int | None], None]:
    """Return a callback for downloads and conversions that describes the step and the part done."""

    def callback(what: str, done: int, total: int | None) -> None:
        progress.tell(f"{what}: {100 * done / total:.0f} %" if total else f"{what}: {done:,}")

    return callback
