"""What to ask next: prepared ahead, so that the next question is there at once, and dealt out to those who ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tnesi.kernels.blas import single_threaded_blas
from tnesi.labelling.labeller import Labeller
from tnesi.labelling.suggest import MOST_PARTS, Known, Suggestion, suggest
from tnesi.studio.first_layer import N_CLUSTERS

Array = npt.NDArray[Any]

AHEAD = 10
"""Questions that are prepared."""
_HELD = 300.0
"""Seconds for which nobody else gets a question that is open."""
_MOST_CLIENTS = 1000
ANY_ROW = "a row at random: there is no better question just now"


def n_parts(n_labels: int, n_rows: int) -> int:
    """Return into how many parts the data are divided to find questions: few at first, then as many as are found soon.

    Examples
    --------
    >>> [n_parts(n, 60_000) for n in (0, 9, 10, 500)]
    [10, 10, 100, 100]
    """
    return max(2, min(N_CLUSTERS if n_labels < N_CLUSTERS else MOST_PARTS, n_rows))


def plan(labeller: Labeller, known: Known, skips: Collection[int], n: int = AHEAD) -> list[Suggestion]:
    """Return the next questions, the most useful first.

    Before all others come typical rows of the few parts of the data that no label has reached: classes are found with
    them. What the first labels say of borders and names is not worth asking about yet.
    """
    given = np.flatnonzero(known.label >= 0)
    exclude, n_rows = sorted(skips), known.label.size
    with single_threaded_blas():
        found = suggest(labeller, known, n, n_parts=n_parts(given.size, n_rows), exclude=exclude)
        coarse = n_parts(0, n_rows)
        place = labeller.clusters(coarse).place
        if np.unique(place[given]).size == coarse:
            return found
        typical = suggest(labeller, Known.nothing(n_rows), coarse, n_parts=coarse, exclude=exclude)
    reached = set(place[given].tolist())
    first = [one for one in typical if int(place[one.row]) not in reached]
    rows = {one.row for one in first}
    return [*first, *(one for one in found if one.row not in rows)]


@dataclass
class _Open:
    question: Suggestion
    since: float


@dataclass
class Questions:
    """The queue. Everybody has one open question, and it stays until it is answered.

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
        """Replace what will be asked next; open questions stay, with a newer reason if there is one."""
        with self._lock:
            self._plan = tuple(questions)
            newer = {question.row: question for question in questions}
            for held in self._open.values():
                held.question = newer.get(held.question.row, held.question)

    @property
    def ready(self) -> bool:
        """Whether questions have been prepared at all."""
        return self._plan is not None

    def n_clients(self) -> int:
        """Return how many have an open question."""
        with self._lock:
            return sum(self._clock() - held.since < _HELD for held in self._open.values())

    def open_for(self, client: str, done: Container[int]) -> Suggestion | None:
        """Return a client's question; `done` are the rows that have been labelled or skipped.

        Nothing is held for somebody without a name, who only looks.
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
        """Ask a client for a row again."""
        with self._lock:
            known = next((one for one in self._plan or () if one.row == row), None)
            question = known or Suggestion(row, "its last answer was taken back", ())
            self._hold(client, question)
            return question

    def give_back(self, client: str) -> None:
        """Hear that a client is gone: others may have its question, which is still its own if it comes back."""
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
