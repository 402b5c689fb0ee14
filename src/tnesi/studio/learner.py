"""Background work: learning the mixture, then the classes after each answer, and choosing questions.

Two threads always work on the newest state. They publish results by setting an attribute of the session, and requests
never wait for them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

import numpy as np

from tnesi.studio import first_layer
from tnesi.studio.field_map import make_map
from tnesi.studio.first_layer import FirstLayer, Settings
from tnesi.studio.learned import Learned, learn
from tnesi.studio.outlook import Step
from tnesi.studio.questions import AHEAD, n_parts, plan
from tnesi.studio.session import Session

_NICE, _NICEST = 3, 19
"""Requests come first, then learning from answers, then choosing questions."""
_MORE_CLASSES = 4
"""Clusters are computed ahead for this many more classes than there are."""


class Learner:
    """The two threads."""

    def __init__(self, session: Session, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._closing = threading.Event()
        self._answered, self._wanted = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"studio-{name}", daemon=True)
            for name, work in (("learner", self._learn), ("planner", self._ask))
        ]
        self._layer: FirstLayer | None = None
        self._unsaved: FirstLayer | None = None

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def notify(self) -> None:
        """Wake the threads after a new answer."""
        self._answered.set()
        self._wanted.set()

    def close(self) -> bool:
        """Stop learning as soon as possible; return whether it has stopped."""
        self._closing.set()
        self.notify()
        for thread in self._threads:
            thread.join(timeout=10)
        return not any(thread.is_alive() for thread in self._threads)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._session.fail(error)

    # The learner

    def _learn(self) -> None:
        session = self._session
        layer = self._first_layer()
        if layer is None:
            return
        _make_way(_NICE)
        learned = learn(layer, session.store.view)
        layer.parts()  # needed by both the questions and the map
        self._layer = layer
        session.publish_learned(learned, None)
        self._wanted.set()  # choose the first questions while the map is made
        session.publish_layer(layer, make_map(layer), "ready")
        if self._unsaved is not None:
            with contextlib.suppress(OSError):  # disk full: it is learned again next time
                session.store.keep_model(first_layer.to_bytes(self._unsaved), self._settings.text())
        while not self._closing.is_set():
            self._answered.wait()
            self._answered.clear()
            view = session.store.view
            if view.last == learned.answer or self._closing.is_set():
                continue
            before, learned = learned, learn(layer, view)
            session.publish_learned(learned, step_between(before, learned))
            self._wanted.set()

    def _first_layer(self) -> FirstLayer | None:
        """Return the first layer from the project file, a model file, or learned now; None if learning was stopped."""
        session, settings = self._session, self._settings
        session.tell("reading", "reading the data", None)
        kept = session.store.kept_model()
        if kept is not None and settings.of_project(kept[1]):
            session.tell("training", "reading the learned fields", None)
            try:
                return first_layer.from_bytes(kept[0], session.data)
            except ValueError:  # damaged: learn it again with the same settings
                settings = self._settings = Settings.from_text(kept[1])
        if settings.model is not None:
            session.tell("training", f"assigning the rows to the fields of {settings.model.name}", None)
            layer = first_layer.over_model(settings.model, session.data, settings)
        else:
            session.tell("training", "a first look at the data", 0.0)
            first_look = first_layer.preview(session.data, settings)
            if first_look is not None and not self._closing.is_set():
                session.publish_layer(first_look, make_map(first_look), "training")
            layer = first_layer.learn(session.data, settings, self._tell, session.encoder)
        if self._closing.is_set():
            return None
        self._unsaved = layer
        return layer

    def _tell(self, text: str, share: float | None) -> bool:
        self._session.tell("training", text, share)
        return self._closing.is_set()

    # The planner

    def _ask(self) -> None:
        session = self._session
        done = None
        _make_way(_NICEST)
        while not self._closing.is_set():
            self._wanted.wait()
            self._wanted.clear()
            learned, layer = session.learned, self._layer
            if layer is None or learned is None or self._closing.is_set():
                continue
            view = session.store.view
            wanted = learned.answer, view.skips
            if wanted == done:
                continue
            labeler = layer.labeler
            ahead = max(AHEAD, 2 * session.questions.n_clients())
            session.publish_plan(plan(labeler, learned.known(), view.skips, ahead))
            done = wanted
            if not self._wanted.is_set():
                session.publish_conflicts(learned)
            n_rows, n_classes = learned.label.size, len(learned.names)
            for n in (*range(n_classes + 1, n_classes + 1 + _MORE_CLASSES), *n_parts(n_rows)):
                if not self._wanted.is_set() and 1 < n <= n_rows:  # idle: prepare later questions
                    labeler.clusters(n)


def _make_way(nice: int) -> None:
    """Lower the priority of this thread and those that it starts (Linux)."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


def step_between(before: Learned, after: Learned) -> Step | None:
    """Return what changed between two states; None if there is nothing to compare."""
    if before.model is None or after.model is None:
        return None
    place = {name: k for k, name in enumerate(after.names)}
    as_now = np.array([place.get(name, -1) for name in before.names])
    changed = float(np.mean(as_now[before.best] != after.best))
    new = [row for row in (after.label >= 0).nonzero()[0].tolist() if before.label[row] < 0]
    said = [before.names[before.best[row]] == after.names[after.label[row]] for row in new]
    return Step(all(said) if said else None, changed)
