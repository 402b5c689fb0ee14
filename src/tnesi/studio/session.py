"""The state of a running studio: data, answers, what was learned, and listeners."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Protocol

from tnesi.data.scales import unequal_columns
from tnesi.data.source import Data
from tnesi.encoders.choice import Encoder
from tnesi.encoders.image_files import Problem
from tnesi.labeling.suggest import Suggestion
from tnesi.prediction import file_names
from tnesi.studio.answers import View
from tnesi.studio.field_map import FieldMap
from tnesi.studio.first_layer import FirstLayer
from tnesi.studio.learned import Learned
from tnesi.studio.originals import shown_rows
from tnesi.studio.outlook import Conflict, Step, advice
from tnesi.studio.questions import Questions
from tnesi.studio.store import Store

MOST_POINTS = 200
_ALARM_FROM = 10
"""Answers from which a doubtful result is an alarm; before that, it is only to be expected."""
_LISTED = 100
"""Files that were left out."""
Json = dict[str, Any]


class Worker(Protocol):
    """What learns in the background and publishes its results in a session."""

    def start(self) -> None: ...

    def notify(self) -> None:
        """Take note of a new answer."""

    def close(self) -> bool:
        """Stop; return whether it has stopped."""


class Session:
    """The state from which requests are answered.

    Attributes
    ----------
    data : Data
    store : Store
    shown : Shown
    questions : Questions
    layer : FirstLayer or None
        At first that of a preview.
    map : FieldMap or None
    map_version : int
    learned : Learned or None
    version : int
        Grows with every change.
    ending : bool
        Whether the server is shutting down.
    """

    def __init__(
        self,
        data: Data,
        store: Store,
        explain: Callable[[Exception], str] = str,
        *,
        encoder: Encoder | None = None,
        skipped: Sequence[Problem] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.data, self.store, self.encoder, self._explain = data, store, encoder, explain
        self._skipped, self._notes = skipped, notes
        self.shown, self._note = shown_rows(data, encoder), None if encoder else unequal_columns(data)
        self.questions = Questions(data.rows.n_rows)
        self.layer: FirstLayer | None = None
        self.map: FieldMap | None = None
        self.learned: Learned | None = None
        self.version, self.map_version, self.ending = 1, 0, False
        self._phase, self._error = "reading", ""
        self._progress: tuple[str, float | None] = ("", None)
        self._steps: list[Step] = []
        self._clashes: list[tuple[str, str, Conflict]] = []
        self._points: list[Json] = list(_readable(store.kept_points(MOST_POINTS)))
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._common: tuple[Json, str] = ({}, "")
        self._texts: tuple[FieldMap | None, list[str] | None] = (None, None)
        self._worker: Worker | None = None
        self._scratch: list[Path] = []

    def start(self, worker: Worker) -> None:
        """Begin to learn."""
        self._worker = worker
        worker.start()

    def end(self) -> None:
        """Notify all listeners of the shutdown; called by signal handlers, so it takes no lock."""
        self.ending = True
        self._tell_listeners()

    def close(self) -> bool:
        """Stop learning and write pending answers; return whether learning has stopped."""
        try:
            return self._worker is None or self._worker.close()
        finally:
            self.store.close()
            for folder in self._scratch:
                rmtree(folder, ignore_errors=True)

    def scratch(self) -> Path:
        """Return a new temporary folder for a download; it is removed with the session at the latest."""
        folder = Path(mkdtemp(prefix="tnesi-studio-"))
        self._scratch.append(folder)
        return folder

    def listen(self, listener: Callable[[], None]) -> None:
        """Register a function to call after each change, from any thread."""
        self._listeners.append(listener)

    # What the learner publishes

    def tell(self, phase: str, text: str, share: float | None) -> None:
        self._phase, self._progress = phase, (text, share)
        self._changed()

    @property
    def failed(self) -> bool:
        return self._phase == "failed"

    def fail(self, error: Exception) -> None:
        """Report that learning has failed; answers are still accepted."""
        self._phase, self._error = "failed", self._explain(error) or type(error).__name__
        self._changed()

    def publish_layer(self, layer: FirstLayer, field_map: FieldMap, phase: str) -> None:
        if self.shown.features is not None:
            self.shown.features.set_average(layer.usual())
        with self._lock:
            self.layer, self.map = layer, field_map
            self.map_version += 1
            self._phase = phase
        self._changed()

    def publish_learned(self, learned: Learned, step: Step | None) -> None:
        self.learned = learned
        if step is not None:
            self._steps = [*self._steps[-MOST_POINTS:], step]
        if learned.model is not None and (not self._points or self._points[-1]["answer"] != learned.answer):
            point = {
                "answer": learned.answer,
                "labels": int((learned.label >= 0).sum()),
                "decided": round(learned.decided, 4),
                "error_estimate": None if learned.estimate is None else round(learned.estimate.value, 4),
            }
            self._points = [*self._points[1 - MOST_POINTS :], point]
            self.store.keep_point(learned.answer, json.dumps(point))
        self._changed()

    def publish_conflicts(self, learned: Learned) -> None:
        self._clashes = [(learned.names[one.label], learned.names[one.seems], one) for one in learned.find_conflicts()]
        self._changed()

    def publish_plan(self, questions: Sequence[Suggestion]) -> None:
        self.questions.offer(questions)
        self._changed()

    def answered(self) -> None:
        """Learn from an answer that is on disk now."""
        if self._worker is not None:
            self._worker.notify()
        self._changed()

    def _changed(self) -> None:
        with self._lock:
            self.version += 1
        self._tell_listeners()

    def _tell_listeners(self) -> None:
        for listener in self._listeners:
            listener()

    # What the page shows

    @cached_property
    def about(self) -> Json:
        """Facts about the data, which do not change."""
        rows = self.data.rows
        return {
            "name": self.data.name,
            "rows": rows.n_rows,
            "features": rows.n_features,
            "image_shape": None if rows.image_shape is None else list(rows.image_shape),
            "feature_names": rows.feature_names is not None,
            "file": self.store.path.name,
            "project": self.store.project,
            "kind": self.shown.kind,
            "natural": bool(self.files),
            "photos": self.shown.photos,
            "note": self._note,
            "notes": list(self._notes),
            "skipped": {"total": len(self._skipped), "files": [str(one) for one in self._skipped[:_LISTED]]},
        }

    @cached_property
    def files(self) -> list[str]:
        """The rows' files, where each has one."""
        return file_names(self.data.rows)

    def file(self, row: int) -> str | None:
        """Return the name of a row's file, without its folder."""
        return Path(self.files[row]).name if self.files else None

    def state(self, client: str) -> Json:
        """Return the state for a client, with its open question."""
        return {**self._now()[0], "question": self.question(client)}

    def state_text(self, client: str) -> tuple[int, str]:
        """Return version and state as JSON; the part common to all clients is serialized once."""
        common, text = self._now()
        return common["version"], f'{text[:-1]}, "question": {json.dumps(self.question(client))}}}'

    def _now(self) -> tuple[Json, str]:
        if self._common[0].get("version") != self.version:
            common = self._state(self.version)
            self._common = common, json.dumps(common)
        return self._common

    def _state(self, version: int) -> Json:
        view, learned = self.store.view, self.learned
        estimate = None if learned is None or learned.estimate is None else learned.estimate._asdict()
        n_classes = len(view.classes)
        clashes = self._conflicts(view)
        if len(view.labels) + len(view.skips) < self.shown.n_rows:
            note = self._note
            if learned is not None and len(view.labels) >= _ALARM_FROM and learned.alarms:
                note = learned.alarms[0].rstrip(".")
            kind, text = advice(n_classes, len(clashes), self._steps, note)
        else:
            kind, text = "enough", "Every row has a label or was skipped."
        reflected = 0 if learned is None else learned.answer
        return {
            "version": version,
            "phase": self._phase,
            "progress": {"text": self._progress[0], "share": self._progress[1]},
            "error": self._error or None,
            "data": self.about,
            "classes": [self._class(one._asdict(), learned) for one in view.classes],
            "answers": {
                "labels": len(view.labels),
                "skips": len(view.skips),
                "total": len(view.labels) + len(view.skips),
                "last": view.last,
                "can_undo": view.can_undo,
                "learned": reflected,
            },
            "busy": learned is not None and reflected < view.last,
            "decided": 0.0 if learned is None else learned.decided,
            "error_estimate": estimate,
            "advice": {"kind": kind, "text": text},
            "conflicts": clashes,
            "history": self._points,
            "map_version": self.map_version,
        }

    def _class(self, entry: Json, learned: Learned | None) -> Json:
        """Add what was learned of a class."""
        entry |= {"rows": None, "share": None, "confidence": None, "rival": None}
        if learned is not None and learned.model is not None and entry["name"] in learned.names:
            k = learned.names.index(entry["name"])
            rows = int(learned.sizes[k])
            entry |= {
                "rows": rows,
                "share": round(rows / learned.best.size, 4),
                "confidence": round(float(learned.confidence[k]), 4),
                "rival": learned.names[int(learned.rivals[k])],
            }
        return entry

    def _conflicts(self, view: View) -> list[Json]:
        found = []
        for label, seems, one in self._clashes:
            if view.labels.get(one.row) == label:  # not corrected yet
                several = f"{seems}s" if len(seems) == 1 else f"rows of {seems}"
                entry = {
                    "row": one.row,
                    "label": label,
                    "seems": seems,
                    "probability": round(one.probability, 4),
                    "text": f"this {label} is among {several}",
                }
                found.append(entry | self.shown.brief(one.row))
        return found

    def question(self, client: str) -> Json | None:
        """Return the open question of a client, choosing one if there is none."""
        if not client:
            return None
        found = self.questions.open_for(client, self.store.view.done)
        return None if found is None else self.describe(found)

    def describe(self, question: Suggestion) -> Json:
        """Return a question as the page shows it."""
        view = self.store.view
        return {
            "row": question.row,
            "reason": question.reason,
            "suggested": self.suggested(question.row),
            "classes": [str(name) for name in question.classes],
            "number": len(view.labels) + len(view.skips) + 1,
            "file": self.file(question.row),
            **self.shown.details(question.row),
        }

    def suggested(self, row: int, n: int = 5) -> list[tuple[str, float]]:
        """Return the most probable classes of a row."""
        learned = self.learned
        if learned is None or learned.model is None:
            return []
        t = learned.posterior[row]
        return [(learned.names[k], round(float(t[k]), 4)) for k in (-t).argsort(kind="stable")[:n].tolist()]

    def brief(self, row: int) -> Json:
        """Return a row as lists show it."""
        learned = self.learned
        entry: Json = {"row": row, "file": self.file(row), "label": self.store.view.labels.get(row)}
        if learned is None or learned.model is None:
            entry |= {"predicted": None, "probability": None, "margin": None}
        else:
            entry |= {
                "predicted": learned.names[int(learned.best[row])],
                "probability": round(float(learned.probability[row]), 4),
                "margin": round(float(learned.margin[row]), 4),
            }
        return entry | self.shown.brief(row)

    def field_texts(self, layer: FirstLayer, shown_map: FieldMap) -> list[str] | None:
        """Return a few words for each field on the map, None where fields have pictures."""
        if self._texts[0] is not shown_map:
            self._texts = shown_map, self.shown.field_texts(layer, shown_map.fields)
        return self._texts[1]


def _readable(texts: Sequence[str]) -> Iterator[Json]:
    """Yield the valid points of the history; it is only displayed, so damaged ones are left out."""
    for text in texts:
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            point = json.loads(text)
            json.dumps(point, allow_nan=False)
            whole = all(type(point[name]) is int for name in ("answer", "labels")) and type(point["decided"]) is float
            if whole and isinstance(point["error_estimate"], float | None):
                yield point
