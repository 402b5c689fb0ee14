"""What the classes look like after the answers so far: how sure, how wrong, what contradicts, and whether to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import betaincinv

from tnesi.layers.classes import sums_by_class

Array = npt.NDArray[Any]

CLEAR = 0.6
"""A row is decided where its best class is ahead of the second best by more than this, as in the published rule."""
_CONFLICT = 0.8
_MOST_CONFLICTS = 20
_TOLD_APART = 10
"""So many answers in a row that only say what was known already make more of them pointless."""
_STILL = 0.003
"""Share of the rows that these answers may have changed."""
_SIDE = 0.05
"""Probability that the true error is above the interval, and below it."""


class Estimate(NamedTuple):
    """The error that is to be expected, and an interval that should hold it nine times out of ten."""

    value: float
    low: float
    high: float
    note: str


class Conflict(NamedTuple):
    """A label that its surroundings contradict; `label` and `seems` are numbers of classes."""

    row: int
    label: int
    seems: int
    probability: float


class Step(NamedTuple):
    """What became known with an answer.

    Attributes
    ----------
    expected : bool or None
        Whether the answer was what had been predicted; None where nothing had been.
    changed : float
        Share of the rows whose predicted class changed.
    """

    expected: bool | None
    changed: float


def expected_error(posterior: Array, label: Array, confidence: Array, rivals: Array, method: str) -> Estimate:
    """Return the expected error of the rows without a label.

    Two things go wrong: rows on the wrong side of a border, of which the probabilities tell, and classes that have got
    the rows of another one, of which the confidence of their names tells. How well both are known depends on the number
    of labels: the estimate counts like so many rows that have been looked at.

    Parameters
    ----------
    posterior : (N, K) array
    label : (N,) array
        Numbers of classes, -1 for unlabelled.
    confidence, rivals : (K,) arrays
        See :func:`tnesi.labelling.naming.confidence`.
    method : str
        By which the classes were learned.
    """
    free = label < 0
    n_labels = int(label.size - free.sum())
    best = posterior.argmax(axis=1)
    borders = float(np.mean(1 - posterior[free].max(axis=1))) if free.any() else 0.0
    share = np.bincount(best, minlength=posterior.shape[1]) / best.size
    swapped = 0.0
    for k, (sure, rival) in enumerate(zip(confidence.tolist(), rivals.tolist(), strict=True)):
        swapped += (1 - sure) * (share[k] + share[rival]) / 2
    value = min(1.0, borders + swapped)
    worth = _worth(n_labels, posterior.shape[1], method)
    wrong, right = value * worth + 0.5, (1 - value) * worth + 0.5
    low, high = (float(betaincinv(wrong, right, side)) for side in (_SIDE, 1 - _SIDE))
    note = f"from {n_labels} labels; nine times out of ten between {100 * low:.1f} % and {100 * high:.1f} %"
    return Estimate(value, min(low, value), max(high, value), note)


def _worth(n_labels: int, n_classes: int, method: str) -> float:
    """Return how many rows the estimate is worth."""
    return (20 if method == "cluster" else 5) + n_labels


def conflicts(activities: sparse.csr_array, label: Array, best: Array, n_classes: int) -> list[Conflict]:
    """Return the labels among rows of another class, the most surrounded ones first.

    The surroundings of a row are the other rows that share its fields; every field counts alike.
    """
    points = np.flatnonzero(label >= 0)
    count = sums_by_class(activities, None, best, n_classes)
    found = []
    for point in points.tolist():
        own = activities.indices[activities.indptr[point] : activities.indptr[point + 1]]
        around = count[own].copy()
        around[:, best[point]] -= 1
        size = around.sum(axis=1)
        if not size.any():
            continue
        shares = (around[size > 0] / size[size > 0, None]).mean(axis=0)
        seems = int(shares.argmax())
        if seems != label[point] and shares[seems] >= _CONFLICT:
            found.append(Conflict(point, int(label[point]), seems, float(shares[seems])))
    return sorted(found, key=lambda one: -one.probability)[:_MOST_CONFLICTS]


def advice(n_classes: int, n_conflicts: int, steps: Sequence[Step], estimate: Estimate | None) -> tuple[str, str]:
    """Return what to do next: its kind, and a text for a person."""
    if n_classes < 2:
        text = "Name examples of two classes at least." if n_classes else "Name the first example."
        return "need_classes", text
    last = [step for step in steps if step.expected is not None][-_TOLD_APART:]
    settled = len(last) == _TOLD_APART and all(step.expected for step in last)
    changed = sum(step.changed for step in last)
    if settled and changed < _STILL:
        text = (
            f"More labels hardly pay: your last {_TOLD_APART} answers were what was expected, and changed "
            f"{100 * changed:.1f} % of the rows."
        )
        return "enough", text
    if n_conflicts:
        what = "1 label contradicts its" if n_conflicts == 1 else f"{n_conflicts} labels contradict their"
        return "look_again", f"{what} surroundings: look again."
    return "go_on", "Go on: each answer tells something new."
