"""Background learning continues, whatever the state of the project file and the disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tnesi.studio import first_layer
from tnesi.studio.first_layer import Settings
from tnesi.studio.learner import Learner
from tnesi.studio.session import Session
from tnesi.studio.store import Store

Waiting = Callable[[Callable[[], Any]], Any]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE models SET content = x'00'",
        "UPDATE meta SET value = '{' WHERE name = 'settings'",
        f"UPDATE meta SET value = '{'[' * 100_000}' WHERE name = 'settings'",
        f"INSERT INTO history VALUES (1, '{'[' * 100_000}')",
        """INSERT INTO history VALUES (1, '{"answer": 1, "labels": 1, "decided": NaN, "error_estimate": 1e999}')""",
    ],
    ids=["mixture", "settings", "deep settings", "deep history", "no numbers"],
)
def test_damaged_parts_are_rebuilt(sessions: Any, waiting: Waiting, damage: str) -> None:
    before = sessions()
    before.store.label(3, "three").result()
    before.store._connection.execute(damage)
    before.close()
    session = sessions()
    assert session.store.view.labels == {3: "three"}
    assert not session.failed
    assert session.layer.n_fields == 100  # as before
    waiting(lambda: len(session.store.kept_model()[0]) > 1000)
    json.dumps(session.state("a"), allow_nan=False)


def test_a_full_disk_does_not_stop_the_studio(
    tmp_path: Path, digits: Any, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "p.sqlite", digits.fingerprint, digits.name, digits.rows.n_rows)

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(first_layer, "to_bytes", no_room)
    session = Session(digits, store)
    session.start(Learner(session, Settings(fields=20)))
    try:
        waiting(lambda: session.questions.open_for("", ()) and session.map_version)
        store.label(3, "three").result()
        session.answered()
        waiting(lambda: session.learned.answer == 1)
        assert not session.failed
    finally:
        session.close()
