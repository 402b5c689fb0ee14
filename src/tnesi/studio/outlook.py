"""Expected error, conflicting labels, and advice after the answers so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betaincinv

from tnesi.labeling.labeler import FAR_IN_TESTS, Labeler
from tnesi.labeling.left_out import LeftOut
from tnesi.model.classes import sums_by_class
from tnesi.types import Array

CLEAR = 0.6
"""A row is decided where its best class is ahead of the second best by more than this, as in the published rule."""
_CONFLICT = 0.8
_MOST_CONFLICTS = 20
_FEW = 0.15
_TOLD_APART = 10
"""After this many expected answers in a row, more are pointless."""
_STILL = 0.003
"""Share of the rows that these answers may change."""
_WORTH_CLUSTERS, _WORTH_OTHERS, _WORTH_LABEL = 20, 8, 0.4
"""Rows that an estimate is worth before there is any label, and more for each label unless only clusters were named."""
_FEW_ROWS = 500
"""The estimate for named clusters has half the weight with this number of rows: what looks clear may be chance."""
_ALONE = 1e-3
_SIDE = 0.05
"""Probability that the true error is above the interval, and below it."""


class Estimate(NamedTuple):
    """The expected error, and an interval that should contain it nine times out of ten."""

    value: float
    low: float
    high: float
    note: str


class Naming(NamedTuple):
    """How sure the names of the classes are: see :func:`tnesi.labeling.naming.confidence` (rivals are numbers)."""

    confidence: Array
    rivals: Array


class Conflict(NamedTuple):
    """A label that contradicts its surroundings; `label` and `seems` are class numbers."""

    row: int
    label: int
    seems: int
    probability: float


class Step(NamedTuple):
    """What an answer changed.

    Attributes
    ----------
    expected : bool or None
        Whether the answer was what had been predicted; None where nothing had been.
    changed : float
        Share of the rows whose predicted class changed.
    """

    expected: bool | None
    changed: float


def expected_error(doubt: Array, label: Array, best: Array, part: Array, naming: Naming, method: str) -> Estimate:
    """Return the expected error of the rows without a label.

    There are three kinds of errors. Rows may be on the wrong side of a border, as their doubt indicates. Classes may be
    swapped, as the confidence in their names indicates. Rows may belong to an unseen class: those in parts of the data
    without any label, with the frequency at which labels so far were the first of their class. The weight of the
    estimate depends on the numbers of labels and rows: it counts like this many inspected rows. The lower end of the
    interval excludes unseen classes.

    Parameters
    ----------
    doubt : (N,) array
        Probability that a row is not of its most probable class, if it is of a known one.
    label, best : (N,) arrays
        Numbers of classes given (-1: none) and predicted.
    part : (N,) array
        To which of a few parts, found without labels, a row belongs.
    method : str
        By which the classes were learned.
    """
    free = label < 0
    given = label[~free]
    if not free.any():
        return Estimate(0.0, 0.0, 0.0, "all rows have labels")
    only_one = np.bincount(given) == 1
    reached = np.bincount(part[~free], minlength=int(part.max()) + 1) > 0
    new = float(only_one.sum() / (given.size + 1))
    wrong = np.where(reached[part], doubt, np.maximum(doubt, new))
    share = np.bincount(best, minlength=naming.confidence.size) / best.size
    swapped = float(np.sum((1 - naming.confidence) * (share + share[naming.rivals]) / 2))
    value, least = (min(1.0, float(each[free].mean()) + swapped) for each in (wrong, doubt))
    if method == "clusters":
        worth = (_WORTH_CLUSTERS + given.size) * label.size / (label.size + _FEW_ROWS)
    else:
        worth = _WORTH_OTHERS + _WORTH_LABEL * given.size
    low = float(betaincinv(max(least * worth, 1e-6), (1 - least) * worth + 1, _SIDE))
    high = float(betaincinv(value * worth + 1, max((1 - value) * worth, 1e-6), 1 - _SIDE))
    note = (
        f"an estimate from {given.size} labels: between {100 * low:.1f} % and {100 * high:.1f} %, nine times out of ten"
    )
    return Estimate(value, low, high, note)


def left_out_doubt(activities: sparse.csr_array, mass: Array, posterior: Array) -> Array:
    """Return how doubtful the class of each row is for the other rows of its fields.

    Rows influence their own fields, so their own probabilities are too high.
    """
    sums = np.asarray(activities.T @ posterior)
    others = mass[activities.indices] - activities.data
    weight = np.divide(activities.data, others, out=np.zeros_like(activities.data), where=others > _ALONE)
    by_others = sparse.csr_array((weight, activities.indices, activities.indptr), shape=activities.shape)
    own = np.asarray(by_others.multiply(activities).sum(axis=1)).ravel()
    t = np.maximum(by_others @ sums - own[:, None] * posterior, 0)
    total = t.sum(axis=1)
    out: Array = 1 - np.divide(t.max(axis=1), total, out=np.ones_like(total), where=total > 0)
    return out


def conflicts(labeler: Labeler, label: Array, best: Array, n_classes: int, method: str) -> list[Conflict]:
    """Return the labels among rows of another class, the most surrounded first.

    The surroundings of a row are the other rows that share its fields, weighted by activity. If labels were spread, a
    label influences its surroundings, so these are computed with the label held out. If many labels seem wrong, classes
    overlap and surroundings mean nothing.
    """
    points = np.flatnonzero(label >= 0)
    if method == "clusters":
        return _worst(_surrounded(labeler.activities, points, label, best, n_classes))
    test, found = LeftOut.of(label, n_classes, labeler.seed), []
    for out, rest in test.rounds():
        given = test.points[rest], test.label[rest], n_classes, FAR_IN_TESTS, labeler.n_threads
        layer, _ = labeler.spread_layers(*given)[-1]
        without = layer.posterior(labeler.activities).argmax(axis=1)
        found += _surrounded(labeler.activities, test.points[out], label, without, n_classes)
    most = max(2, _FEW * np.count_nonzero(test.part >= 0))  # a slip, and the one label that it contradicts
    return _worst(found) if len(found) <= most else []


def _worst(found: list[Conflict]) -> list[Conflict]:
    return sorted(found, key=lambda one: -one.probability)[:_MOST_CONFLICTS]


def _surrounded(
    activities: sparse.csr_array, points: Array, label: Array, best: Array, n_classes: int
) -> list[Conflict]:
    count = sums_by_class(activities, None, best, n_classes)
    near = activities[points]
    others = count.sum(axis=1)[near.indices] - 1
    near.data = np.divide(near.data, others, out=np.zeros(near.nnz), where=others > 0)
    shares = near @ count
    shares[np.arange(points.size), best[points]] -= near.sum(axis=1)  # a row does not surround itself
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    seems, share = shares.argmax(axis=1), shares.max(axis=1)
    wrong = np.flatnonzero((seems != label[points]) & (share >= _CONFLICT))
    return [Conflict(int(points[i]), int(label[points[i]]), int(seems[i]), float(share[i])) for i in wrong]


def advice(n_classes: int, n_conflicts: int, steps: Sequence[Step], note: str | None) -> tuple[str, str]:
    """Return the advice: its kind and a text; `note` is a warning about the data."""
    if n_classes < 2 and note is None:
        text = "Label an example of another class." if n_classes else "Label the first example."
        return "need_classes", text
    last = [step for step in steps if step.expected is not None][-_TOLD_APART:]
    settled = len(last) == _TOLD_APART and all(step.expected for step in last)
    changed = sum(step.changed for step in last)
    if settled and changed < _STILL:
        text = (
            f"More labels are unlikely to help: your last {_TOLD_APART} answers were as expected and changed "
            f"{100 * changed:.1f} % of the rows."
        )
        return "enough", text
    if n_conflicts:
        what = "1 label contradicts its" if n_conflicts == 1 else f"{n_conflicts} labels contradict their"
        return "look_again", f"{what} surroundings: look again."
    return ("go_on", "Continue: each answer adds information.") if note is None else ("data", f"{note}.")
