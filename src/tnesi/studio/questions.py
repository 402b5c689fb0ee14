"""The next questions: prepared in advance, so that they are available immediately, and distributed to clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.suggest import Known, Suggestion, audit, explore, settle, suggest
from tnesi.studio.first_layer import N_CLUSTERS

AHEAD = 10
"""Questions that are prepared."""
_SOME, _MORE, _MANY = 50, 100, 300
"""Parts of the data in which classes are looked for, and in which it is seen what they compete for: at first, then."""
_SMALLER_FROM = 50
"""Labels from which that is seen in the smallest parts."""
_EXPLORED, _OF_FIVE = 40, 3
"""Until there are this many labels, this many of five questions look for unseen classes."""
_CLEAR = 0.1
"""Classes are clear where fewer of the rows are in doubt."""
_HELD = 300.0
"""Seconds for which an open question is reserved."""
_MOST_CLIENTS = 1000
ANY_ROW = "a random row: no better question is ready"


def n_parts(n_rows: int) -> tuple[int, int, int, int]:
    """Return the numbers of parts into which the data are divided to choose questions.

    New classes are sought in few parts first, then in more. Competing classes are sought in smaller parts, the smallest
    when there are many labels. These have at least 20 rows if possible.

    Examples
    --------
    >>> n_parts(60_000), n_parts(1000)
    ((10, 50, 100, 300), (10, 50, 50, 50))
    """
    most = max(2, min(n_rows, max(N_CLUSTERS, n_rows // 20)))
    return min(N_CLUSTERS, most), min(_SOME, most), min(_MORE, most), min(_MANY, most)


def plan(labeler: Labeler, known: Known, skips: Collection[int], n: int = AHEAD) -> list[Suggestion]:
    """Return the next questions, the most useful first.

    Typical rows of the few parts of the data without a label come first: they reveal classes. Borders and names come
    later.
    """
    given, n_rows = np.flatnonzero(known.label >= 0), known.label.size
    exclude = sorted(skips)
    few, some, *_ = n_parts(n_rows)
    with single_threaded_blas():
        place = labeler.clusters(few).place
        reached = set(place[given].tolist())
        first: list[Suggestion] = []
        if len(reached) < few:
            typical = suggest(labeler, Known.nothing(n_rows), few, n_parts=few, exclude=exclude)
            first = [one for one in typical if int(place[one.row]) not in reached]
        asked = [one.row for one in first]
        rest: list[Suggestion] = []
        if given.size < N_CLUSTERS and len(first) < n // 2:  # the very first ones must not wait for more parts
            rest = explore(labeler, known, n, n_parts=some, exclude=exclude, asked=asked)
        if given.size >= N_CLUSTERS or not (first or rest):
            rest = _later(labeler, known, exclude, n)
        if not (first or rest):  # every part has a label, all of one class: more typical rows
            rest = suggest(labeler, Known.nothing(n_rows), n, n_parts=few, exclude=[*exclude, *given.tolist()])
    return [*first, *(one for one in rest if one.row not in asked)]


def _later(labeler: Labeler, known: Known, exclude: Sequence[int], n: int) -> list[Suggestion]:
    """Return the questions when the few parts of the data have labels.

    Three of five questions look for more classes and two decide between known ones; from 40 labels on, all do. If
    classes are clear, questions are typical rows of small parts instead, since the few rows between classes say little
    about the others. When all parts have labels, questions are random and may find an unexpected class.
    """
    n_labels = int(np.count_nonzero(known.label >= 0))
    _, some, more, many = n_parts(known.label.size)
    if known.classes.size > 1 and known.doubt.mean() < _CLEAR:
        return explore(labeler, known, n, n_parts=many, exclude=exclude) or audit(labeler, known, n, exclude=exclude)
    small = many if n_labels >= _SMALLER_FROM else more
    decisive = settle(labeler, known, n, n_parts=small, exclude=exclude)
    explored = n_labels >= _EXPLORED and decisive
    finding = [] if explored else explore(labeler, known, n, n_parts=some, exclude=exclude)
    return list(_mixed(finding, decisive, n_labels))


def _mixed(finding: Sequence[Suggestion], decisive: Sequence[Suggestion], n_labels: int) -> Iterator[Suggestion]:
    """Alternate: three of the first, two of the others, by the number of labels at that time."""
    rows = {one.row for one in finding}
    kinds = [iter(finding), (one for one in decisive if one.row not in rows)]
    for at in range(n_labels, n_labels + len(finding) + len(decisive)):
        turn = int(at % 5 >= _OF_FIVE)
        question = next(kinds[turn], None) or next(kinds[1 - turn], None)
        if question is not None:
            yield question


@dataclass
class _Open:
    question: Suggestion
    since: float


@dataclass
class Questions:
    """The queue. Each client has one open question until it is answered.

    Attributes
    ----------
    n_rows : int
    """

    n_rows: int
    _plan: Sequence[Suggestion] | None = None
    _open: dict[str, _Open] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _clock: Callable[[], float] = time.monotonic

    def offer(self, questions: Sequence[Suggestion]) -> None:
        """Replace the next questions; open questions stay, with a newer reason if there is one."""
        with self._lock:
            self._plan = tuple(questions)
            newer = {question.row: question for question in questions}
            for held in self._open.values():
                held.question = newer.get(held.question.row, held.question)

    def n_clients(self) -> int:
        """Return the number of clients with an open question."""
        with self._lock:
            return sum(self._clock() - held.since < _HELD for held in self._open.values())

    def open_for(self, client: str, done: Container[int]) -> Suggestion | None:
        """Return a client's question; `done` are the rows that have been labeled or skipped.

        No question is reserved for a client without a name.
        """
        with self._lock:
            if client in self._open and self._open[client].question.row not in done:
                self._open[client].since = self._clock()
                return self._open[client].question
            self._open.pop(client, None)
            question = self._next(client, done)
            if question is not None and client:
                self._hold(client, question)
            return question

    def reopen(self, client: str, row: int) -> Suggestion:
        """Ask a client about a row again."""
        with self._lock:
            known = next((one for one in self._plan or () if one.row == row), None)
            question = known or Suggestion(row, "its last answer was undone", ())
            self._hold(client, question)
            return question

    def give_back(self, client: str) -> None:
        """Release the question of a client that left; it keeps it on return unless others got it."""
        with self._lock:
            if client in self._open:
                self._open[client].since = self._clock() - _HELD

    def _hold(self, client: str, question: Suggestion) -> None:
        self._open.pop(client, None)
        self._open[client] = _Open(question, self._clock())
        while len(self._open) > _MOST_CLIENTS:
            self._open.pop(next(iter(self._open)))

    def _next(self, client: str, done: Container[int]) -> Suggestion | None:
        if self._plan is None:
            return None
        now = self._clock()
        held = {one.question.row for one in self._open.values() if now - one.since < _HELD}
        waiting = [question for question in self._plan if question.row not in done]
        free = [question for question in waiting if question.row not in held]
        if free:
            return free[0]
        for row in self._rng.integers(self.n_rows, size=100).tolist():
            if row not in done and row not in held:
                return Suggestion(row, ANY_ROW, ())
        if waiting:
            return waiting[0]
        row = next((row for row in range(self.n_rows) if row not in done), None)
        return None if row is None else Suggestion(row, ANY_ROW, ())
