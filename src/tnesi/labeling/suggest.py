"""Suggestions of rows to label: typical rows of parts of the data where labels are missing or ambiguous.

The rows are clustered into as many parts as there are labels and questions. The value of a question is the number of
rows that may be wrong without its answer: all rows of a part without a label, the undecided rows of any other part, and
the rows of two classes whose names may be swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tnesi.labeling.graph import nearness
from tnesi.labeling.labeler import Labeler
from tnesi.model.classes import margins
from tnesi.types import Array

MOST_PARTS = 100
"""Maximum number of parts, which take long to find; with more suggestions, parts provide several each."""
_STEPS = 3
"""Steps by which the parts are smoothed over the fields, which moves typical rows away from borders."""
_ALIKE = 1e-6
"""Factor for the value of a row that equals a chosen one."""
_SURE = 0.99
"""Confidence of a name above which there is no question about it."""


class Suggestion(NamedTuple):
    """A row to label next.

    Attributes
    ----------
    row : int
        Its index among the rows given to `fit`.
    reason : str
        Why its label is useful.
    classes : tuple
        The classes between which it would decide; empty if no label is near.
    """

    row: int
    reason: str
    classes: tuple[Any, ...]


class _Question(NamedTuple):
    """A question that a typical row can answer; `about` has the weights of the rows it concerns (N)."""

    worth: float
    about: Array
    reason: str
    classes: tuple[Any, ...]


@dataclass(frozen=True)
class Known:
    """The labels, and the predictions learned from them.

    Attributes
    ----------
    label : (N,) array of int
        Indices into `classes`, -1 for unlabeled.
    classes : (K,) array
        Empty if there is no label.
    posterior : (N, K) array
        The difference of a row's sum from 1 is the probability of unknown classes.
    confidence, rivals : (K,) arrays
        See :func:`tnesi.labeling.naming.confidence`; the rivals are classes.
    """

    label: Array
    classes: Array
    posterior: Array
    confidence: Array
    rivals: Array

    @classmethod
    def nothing(cls, n_rows: int) -> Known:
        none = np.empty(0)
        return cls(np.full(n_rows, -1), none, np.empty((n_rows, 0)), none, none)

    @cached_property
    def doubt(self) -> Array:
        """The probability that the most probable class of a row is wrong."""
        out: Array = 1 - self.posterior.max(axis=1, initial=0)
        return out


def suggest(
    labeler: Labeler, known: Known, n: int, *, n_parts: int | None = None, exclude: Sequence[int] = ()
) -> list[Suggestion]:
    """Return up to `n` rows to label next, the most valuable first.

    The rows are divided into `n_parts`, by default as many as there are labels and questions. Rows in `exclude` are not
    suggested; similar rows may be.
    """
    if n_parts is None:
        n_parts = max(2, min(int((known.label >= 0).sum()) + n, known.label.size, MOST_PARTS))
    weight = _weight(labeler)
    place = labeler.clusters(n_parts).place
    questions = [*_of_parts(place, n_parts, known, weight), *_of_names(known, weight)]
    return _rows_for(questions, labeler, known, n, exclude)


def explore(
    labeler: Labeler, known: Known, n: int, *, n_parts: int, exclude: Sequence[int] = (), asked: Sequence[int] = ()
) -> list[Suggestion]:
    """Return up to `n` typical rows of parts without a label, to discover new classes.

    The value of a row decreases with the number of labels of its predicted class. Rows in `asked` count as labeled.
    """
    weight, place = _weight(labeler), labeler.clusters(n_parts).place
    n_labels = np.bincount(known.label + 1, minlength=known.classes.size + 1)[1:]
    rarity = 1 / (1 + n_labels[known.posterior.argmax(axis=1)]) if known.classes.size else np.ones(place.size)
    worth = np.bincount(place, weight * rarity, n_parts)
    worth[place[known.label >= 0]] = 0
    worth[place[list(asked)]] = 0
    best = np.argsort(-worth, kind="stable")[:n]
    questions = [_unreached(place == part, weight)._replace(worth=float(worth[part])) for part in best]
    return _rows_for(questions, labeler, known, n, exclude)


def settle(labeler: Labeler, known: Known, n: int, *, n_parts: int, exclude: Sequence[int] = ()) -> list[Suggestion]:
    """Return up to `n` typical rows of the parts in which two classes compete for most rows.

    The value of a part is the sum of 1 - margin over its rows, which predicts errors better than the probability of the
    best class, divided by the number of its labels plus 1. Parts should be smaller with more labels, since a label
    decides little beyond the rows around it. There are no questions about names: with labels in many parts, another one
    of the same two classes would not help.
    """
    if known.classes.size < 2:
        return []
    weight, place = _weight(labeler), labeler.clusters(n_parts).place
    n_labels = np.bincount(place[known.label >= 0], minlength=n_parts)
    worth = np.bincount(place, weight * (1 - margins(known.posterior)), n_parts) / (1 + n_labels)
    questions = []
    for part in np.argsort(-worth, kind="stable")[:n]:
        inside = place == part
        question = _undecided(inside, known, weight)
        questions.append(question._replace(worth=float(worth[part]), about=inside.astype(np.float64)))
    return _rows_for(questions, labeler, known, n, exclude)


def audit(labeler: Labeler, known: Known, n: int, *, exclude: Sequence[int] = ()) -> list[Suggestion]:
    """Return up to `n` random rows of the classes with most rows per label.

    If classes are clear and labels are everywhere, no row is better than another, but the rows of a known class may
    include those of an unknown one.
    """
    best, names = known.posterior.argmax(axis=1), known.classes.tolist()
    n_labels = np.bincount(known.label + 1, minlength=len(names) + 1)[1:]
    size = np.bincount(best, _weight(labeler), len(names))
    free = known.label < 0
    free[list(exclude)] = False
    rng = np.random.default_rng((labeler.seed, n_labels.sum()))
    waiting = [rng.permutation(np.flatnonzero(free & (best == k))).tolist() for k in range(len(names))]
    found: list[Suggestion] = []
    while len(found) < n and any(waiting):
        worth = np.where([bool(rows) for rows in waiting], size / (1 + n_labels), -1)
        k = int(worth.argmax())
        reason = f"a random row of {_rows(size[k])} predicted as {names[k]}, to check that they are all of this class"
        found.append(Suggestion(waiting[k].pop(), reason, ()))
        n_labels[k] += 1
    return found


def _weight(labeler: Labeler) -> Array:
    n_rows = labeler.activities.shape[0]
    return np.ones(n_rows) if labeler.weight is None else labeler.weight.astype(np.float64)


def _rows_for(
    questions: Sequence[_Question], labeler: Labeler, known: Known, n: int, exclude: Sequence[int]
) -> list[Suggestion]:
    """Return a row for each of the best `n` questions."""
    best = sorted((one for one in questions if one.worth > 0), key=lambda one: -one.worth)[:n]
    if not best:
        return []
    free = known.label < 0
    free[list(exclude)] = False
    near = nearness(labeler.activities)
    typical = _typical(near, _weight(labeler), np.stack([one.about for one in best], axis=1))
    return list(_choose(best, typical, near, free, n))


def _of_parts(place: Array, n_parts: int, known: Known, weight: Array) -> Iterator[_Question]:
    reached = np.bincount(place[known.label >= 0], minlength=n_parts) > 0
    for part in range(n_parts):
        inside = place == part
        if not reached[part]:
            yield _unreached(inside, weight)
        elif known.classes.size >= 2:
            yield _undecided(inside, known, weight)


def _unreached(inside: Array, weight: Array) -> _Question:
    size = float(weight[inside].sum())
    reason = f"typical of about {_rows(size)} ({100 * size / weight.sum():.1f} %) without a label"
    return _Question(size, inside.astype(np.float64), reason, ())


def _undecided(inside: Array, known: Known, weight: Array) -> _Question:
    doubt = np.where(inside, known.doubt, 0.0)
    worth = float(weight @ doubt)
    rivals = known.classes[np.argsort(-((weight * doubt) @ known.posterior), kind="stable")[:2]].tolist()
    reason = f"between {rivals[0]} and {rivals[1]}: about {_rows(worth)} nearby are undecided"
    return _Question(worth, doubt, reason, tuple(rivals))


def _of_names(known: Known, weight: Array) -> Iterator[_Question]:
    """Yield questions about classes that may be confused with another, for typical rows of them."""
    if not known.classes.size:
        return
    best = np.where(known.posterior.sum(axis=1) > 0.5, known.posterior.argmax(axis=1), -1)
    names = known.classes.tolist()
    for k in np.flatnonzero(known.confidence < _SURE):
        name, rival, mine = names[k], known.rivals.tolist()[k], best == k
        both = mine | (best == names.index(rival))
        worth = float(2 * (1 - known.confidence[k]) * weight[both].sum())  # a swap affects the rows of both
        reason = f"typical of {_rows(weight[mine].sum())} predicted as {name}, which may be {rival}"
        yield _Question(worth, mine.astype(np.float64), reason, (name, rival))


def _typical(near: sparse.csr_array, weight: Array, about: Array) -> Array:
    """Return how typical each row is of the rows that questions concern (N x Q): their density around it."""
    back = sparse.csr_array(near.T @ sparse.diags_array(weight))
    mass = back.sum(axis=1)[:, None]
    for _ in range(_STEPS):
        about = near @ np.divide(back @ about, mass, out=np.zeros((mass.size, about.shape[1])), where=mass > 0)
    out: Array = near @ (back @ about)
    return out


def _choose(
    questions: list[_Question], typical: Array, near: sparse.csr_array, free: Array, n: int
) -> Iterator[Suggestion]:
    """Yield a typical row of each question that is far from those before; repeat until there are `n`."""
    length = np.sqrt((near * near).sum(axis=1))
    apart = free.astype(np.float64)
    open_questions = list(enumerate(questions))
    while open_questions:
        for j, question in list(open_questions):
            value = np.where(question.about > 0, typical[:, j] * apart, 0)
            row = int(value.argmax())
            if value[row] <= 0:
                open_questions = [one for one in open_questions if one[0] != j]
                continue
            yield Suggestion(row, question.reason, question.classes)
            n -= 1
            if n == 0:
                return
            cosine = (near @ near[[row]].toarray().ravel()) / (length * length[row])
            apart *= np.maximum(1 - cosine, _ALIKE)
            apart[row] = 0


def _rows(mass: float) -> str:
    number = max(1, round(mass))
    return "1 row" if number == 1 else f"{number:,} rows"
