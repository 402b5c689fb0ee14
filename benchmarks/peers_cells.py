"""The cells of the peers benchmark: what methods achieve on some features with a number of labels per class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tnesi.paper.statistics import Summary

Record = dict[str, Any]

OURS = "tnesi"
LOGISTIC = "logistic regression"
MOST_BEHIND = 1.0
"""Points that tnesi may be behind the best of its peers, or one standard error of the difference if that is larger."""
MOST_ECE = {10: 5.0, 100: 3.0}
"""Labels per class -> calibration error that is allowed, in points."""


class Where(NamedTuple):
    """What a cell is about."""

    data: str
    features: str
    labels: int


@dataclass
class Outcome:
    """What a method achieves in a cell, over all draws of labels."""

    sees_test: bool
    told_sizes: bool
    errors: dict[int, float] = field(default_factory=dict)
    calibration: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    shared_cpu_seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    @property
    def error(self) -> Summary:
        return Summary.of(list(self.errors.values()))

    @property
    def ece(self) -> float | None:
        return float(np.mean(self.calibration)) if self.calibration else None

    def as_json(self) -> Record:
        """Return means, for a file."""
        sem = self.error.sem
        return {
            "error": round(self.error.mean, 3),
            "sem": None if np.isnan(sem) else round(sem, 3),
            "draws": len(self.errors),
            "ece": None if self.ece is None else round(self.ece, 3),
            "seconds": round(float(np.median(self.seconds)), 3),
            "cpu_seconds": round(float(np.median(self.cpu_seconds)), 3),
            "shared_cpu_seconds": round(float(np.median(self.shared_cpu_seconds)), 3),
            "memory_mb": round(max(self.megabytes), 1),
            "sees_test": self.sees_test,
            "told_sizes": self.told_sizes,
        }


Cells = dict[Where, dict[str, Outcome]]


def cells_of(records: Iterable[Record]) -> Cells:
    """Collect the draws of each cell; records of methods that were left out do not count."""
    cells: Cells = {}
    for record in records:
        if "skipped" in record:
            continue
        cell = cells.setdefault(Where(record["data"], record["features"], record["labels"]), {})
        outcome = cell.setdefault(record["method"], Outcome(record["sees_test"], record["told_sizes"]))
        outcome.errors[record["draw"]] = record["error"]
        outcome.seconds.append(record["seconds"])
        outcome.cpu_seconds.append(record["cpu_seconds"])
        outcome.shared_cpu_seconds.append(record["shared_cpu_seconds"])
        outcome.megabytes.append(record["memory_mb"])
        if "ece" in record:
            outcome.calibration.append(record["ece"])
    return cells


class Gap(NamedTuple):
    """How far tnesi is behind a peer on the draws that both have had, in points; ahead where it is negative."""

    peer: str
    behind: float
    sem: float

    @property
    def too_far(self) -> bool:
        return self.behind > max(MOST_BEHIND, 0 if np.isnan(self.sem) else self.sem)


def gap_to(cell: dict[str, Outcome], peer: str) -> Gap:
    """Return the mean difference, and its standard error.

    Examples
    --------
    >>> ours, other = Outcome(False, False, {0: 3.0, 1: 5.0}), Outcome(False, False, {0: 1.0, 1: 4.0, 2: 60.0})
    >>> gap_to({"tnesi": ours, "other": other}, "other")
    Gap(peer='other', behind=1.5, sem=0.5)
    """
    ours, theirs = cell[OURS].errors, cell[peer].errors
    difference = Summary.of([ours[draw] - theirs[draw] for draw in sorted(ours.keys() & theirs.keys())])
    return Gap(peer, difference.mean, difference.sem)


def gap_to_best(cell: dict[str, Outcome], *, fair: bool = False) -> Gap | None:
    """Return the largest gap to any peer; `fair` leaves out those that see test rows or know class sizes.

    None without a peer that has had a draw of tnesi's.
    """
    if OURS not in cell:
        return None
    peers = [
        name
        for name, outcome in cell.items()
        if name != OURS
        and not (fair and (outcome.sees_test or outcome.told_sizes))
        and outcome.errors.keys() & cell[OURS].errors.keys()
    ]
    return max((gap_to(cell, peer) for peer in peers), key=lambda gap: gap.behind, default=None)


def gap_to_logistic(cell: dict[str, Outcome]) -> Gap | None:
    """Return the gap to logistic regression, if both have had the same draws."""
    if OURS not in cell or LOGISTIC not in cell or not cell[OURS].errors.keys() & cell[LOGISTIC].errors.keys():
        return None
    return gap_to(cell, LOGISTIC)
