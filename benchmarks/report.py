"""Compare a measured figure with its target."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    what: str
    measured: float
    unit: str
    reach: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.reach is None:
            return ""
        reached = self.measured >= self.reach if self.at_least else self.measured <= self.reach
        return "reached" if reached else "MISSED"


def print_table(rows: list[Row]) -> None:
    for row in rows:
        bound = "" if row.reach is None else f"{'at least' if row.at_least else 'at most'} {row.reach:g}"
        print(f"{row.what:62s} {row.measured:10.3f} {row.unit:8s} {bound:16s} {row.verdict:8s} {row.note}", flush=True)


def best_of(n: int, action: Callable[[], Any]) -> float:
    """Return the shortest time of `n` runs, in seconds."""
    times = []
    for _ in range(n):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)
