"""The project file: nothing acknowledged is lost, and unusable files are refused with a clear message."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tnesi.studio.answers import RefusedError
from tnesi.studio.project_file import SCHEMA, StoreError
from tnesi.studio.store import DiskError, Store

Stores = Callable[..., Store]


def test_answers_are_there_again(stores: Stores) -> None:
    store = stores()
    assert store.label(3, " cat ", "a").result().entry.label == "cat"
    store.label(4, "dog", "a").result()
    store.skip(5, "a").result()
    store.rename("dog", "wolf", "b").result()
    before, project = store.view, store.project
    store.close()
    again = stores()
    assert again.view == before
    assert again.project == project
    assert again.view.labels == {3: "cat", 4: "wolf"}
    assert again.view.skips == {5}


def test_undo_goes_back_to_the_beginning_also_after_a_restart(stores: Stores) -> None:
    store = stores()
    for row in range(6):
        store.label(row, "ab"[row % 2], "tab 1").result()
    store.clear(0, "tab 1").result()
    store.undo("tab 1").result()
    store.close()
    again = stores()
    for _ in range(6):
        again.undo("another tab").result()
    assert again.view.labels == {}
    with pytest.raises(RefusedError, match="Nothing to undo"):
        again.undo("another tab").result()
    assert len(again.history(0)) == 4  # label, clear and two undos: all are kept


def test_the_same_request_again_does_nothing_new(stores: Stores) -> None:
    store = stores()
    first = store.label(1, "cat", "a", "r1").result()
    store.label(1, "dog", "b", "r2").result()
    again = store.label(1, "cat", "a", "r1").result()
    assert (again.entry, again.new) == (first.entry, False)
    assert store.view.labels == {1: "dog"}
    store.undo("b", "r3").result()
    store.undo("b", "r3").result()
    assert store.view.labels == {1: "cat"}
    store.close()
    assert stores().label(1, "cat", "a", "r1").result().new is False


def test_answers_at_the_same_time_are_all_kept(stores: Stores) -> None:
    store = stores(n_rows=1000)

    def speak(client: int) -> None:
        for i in range(20):
            store.label(20 * client + i, f"class {client}", f"c{client}").result()

    threads = [threading.Thread(target=speak, args=(client,)) for client in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.view.last == 200
    store.close()
    assert stores(n_rows=1000).view.labels == {row: f"class {row // 20}" for row in range(200)}


def test_two_people_on_one_row_the_last_is_kept_with_its_history(stores: Stores) -> None:
    store = stores()
    store.label(7, "cat", "a").result()
    store.label(7, "dog", "b").result()
    assert store.view.labels == {7: "dog"}
    assert [(e.client, e.label) for e in store.history(7)] == [("a", "cat"), ("b", "dog")]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda s: s.label(100, "cat"), "There is no row 100: rows are numbered from 0 to 99"),
        (lambda s: s.clear(3), "Row 3 has no label"),
        (lambda s: s.rename("x", "y"), "no class 'x'"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    stores: Stores, act: Callable[[Store], object], text: str
) -> None:
    store = stores()
    with pytest.raises(RefusedError, match=text):
        act(store).result()  # type: ignore[attr-defined]
    assert store.view.last == 0


def test_labels_are_imported_once(stores: Stores) -> None:
    store = stores()
    store.label(1, "dog").result()
    assert store.import_labels([(1, "cat"), (2, "cat")]).result() == 1
    assert store.view.labels == {1: "dog", 2: "cat"}
    store.clear(2).result()
    store.close()
    again = stores()
    assert again.import_labels([(1, "cat"), (2, "cat")]).result() == 0
    assert again.view.labels == {1: "dog"}


def test_a_model_and_points_are_kept(stores: Stores) -> None:
    store = stores()
    assert store.kept_model() is None
    assert store.keep_model(b"model", "settings")
    for i in range(5):
        store.keep_point(i, str(i))
    store.close()
    again = stores()
    assert again.kept_model() == (b"model", "settings")
    assert again.kept_points(3) == ["2", "3", "4"]


# Unusable files


def test_other_data(stores: Stores) -> None:
    stores().close()
    with pytest.raises(StoreError, match=r"belongs to other data \(counts.csv, 100 rows\).*--project"):
        stores(fingerprint="other")


def test_in_use(stores: Stores) -> None:
    stores()
    with pytest.raises(StoreError, match="in use by another studio"):
        stores()


def test_newer_schema(stores: Stores, tmp_path: Path) -> None:
    stores().close()
    with sqlite3.connect(tmp_path / "p.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    connection.close()
    with pytest.raises(StoreError, match="newer tnesi"):
        stores()


def test_another_program(stores: Stores, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "p.sqlite") as connection:
        connection.execute("CREATE TABLE songs (name)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        stores()


def test_not_a_database(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "p.sqlite").write_bytes(b"row,label\n" * 1000)
    with pytest.raises(StoreError, match="not a project file"):
        stores()
    assert (tmp_path / "p.sqlite").read_bytes() == b"row,label\n" * 1000


def test_damaged(stores: Stores, tmp_path: Path) -> None:
    store = stores()
    for row in range(100):
        store.label(row, "a long name of a class " * 4).result()
    store.close()
    content = bytearray((tmp_path / "p.sqlite").read_bytes())
    content[5000:] = b"\xff" * (len(content) - 5000)
    (tmp_path / "p.sqlite").write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        stores()


def test_folders(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        stores("folder")
    with pytest.raises(StoreError, match="there is no folder"):
        stores("nowhere/p.sqlite")


def test_a_full_disk_loses_only_what_was_not_acknowledged(stores: Stores) -> None:
    store = stores(n_rows=10**6)
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    taken: dict[int, str] = {}
    for row in range(10**5):
        name = f"a class with a long name {row % 7}"
        if store.label(row, name).exception() is not None:
            break
        taken[row] = name
    with pytest.raises(DiskError, match="is the disk full"):
        store.label(len(taken), "a class with a long name").result()
    assert taken
    assert store.view.labels == taken
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.label(10**5, "room again").result()
    store.close()
    assert stores(n_rows=10**6).view.labels == {**taken, 10**5: "room again"}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE meta SET value = '../../evil' WHERE name = 'project'",
        "UPDATE meta SET value = '/home/somebody/package' WHERE name = 'project'",
        "DELETE FROM meta WHERE name = 'project'",
        "CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
        "CREATE VIEW v AS SELECT * FROM answers",
        "DROP TABLE history",
        "CREATE TABLE more (x)",
        "DROP TABLE models; CREATE TABLE models (name TEXT PRIMARY KEY, content BLOB NOT NULL)",
    ],
)
def test_a_hostile_project_file(stores: Stores, tmp_path: Path, change: str) -> None:
    """Its project would become a file name, and a trigger would discard answers."""
    stores().close()
    with sqlite3.connect(tmp_path / "p.sqlite") as connection:
        connection.executescript(change)
    connection.close()
    with pytest.raises(StoreError, match=r"damaged .*: give another file with --project"):
        stores()


def test_writing_continues_after_a_failed_read(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stores()
    store.label(1, "cat").result()
    read, insert = store._read, store._insert

    def broken(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store, "_read", broken)
    monkeypatch.setattr(store, "_insert", broken)
    for _ in range(2):
        with pytest.raises(DiskError):
            store.label(2, "dog").result(timeout=60)
    monkeypatch.setattr(store, "_insert", insert)
    with pytest.raises(DiskError):  # what there was has to be known first
        store.label(2, "dog").result(timeout=60)
    monkeypatch.setattr(store, "_read", read)
    store.label(3, "dog").result(timeout=60)
    assert store.view.labels == {1: "cat", 3: "dog"}


def test_a_copy_of_the_file_has_all_answers_while_the_studio_runs(stores: Stores, tmp_path: Path) -> None:
    store = stores()
    for row in range(5):
        store.label(row, "cat").result()
        (tmp_path / "copy.sqlite").write_bytes(store.path.read_bytes())
        copy = stores("copy.sqlite")
        assert copy.view.labels == dict.fromkeys(range(row + 1), "cat")
        copy.close()


def test_no_more_classes_by_importing_twice(stores: Stores) -> None:
    store = stores(n_rows=1000)
    assert store.import_labels((row, f"first {row}") for row in range(200)).result() == 200
    with pytest.raises(RefusedError, match="more than 300 classes"):
        store.import_labels((row, f"second {row}") for row in range(200, 400)).result()
    assert len(store.view.labels) == 200
    assert store.import_labels((row, f"second {row}") for row in range(200, 300)).result() == 100
    store.rename("first 0", "another").result()
    assert store.import_labels((row, f"first {row}") for row in range(200)).result() == 0  # nothing is new


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE answers SET row = NULL",
        "UPDATE answers SET row = 100",
        "UPDATE answers SET row = -1",
        "UPDATE answers SET kind = 'undo', undone = NULL",
        "UPDATE answers SET kind = 'rename', label = NULL, old = NULL",
        "UPDATE answers SET id = 9223372036854775807",
    ],
)
def test_impossible_answers(stores: Stores, tmp_path: Path, damage: str) -> None:
    store = stores()
    store.label(1, "cat").result()
    store.close()
    with sqlite3.connect(tmp_path / "p.sqlite") as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(StoreError, match="damaged"):
        stores()


@pytest.mark.parametrize(
    "name", ["", " ", "\x1b[31mred", "a\nb", "\u202eback", "NA", "-1", "3.0", "x" * 101, " padded ", "e\u0301"]
)
@pytest.mark.parametrize(("answer", "row"), [(1, 1), (3, 2)])
def test_names_in_a_file_are_checked_as_those_that_are_typed(
    stores: Stores, tmp_path: Path, name: str, answer: int, row: int
) -> None:
    store = stores()
    store.label(1, "cat").result()
    store.label(2, "dog").result()
    store.rename("dog", "wolf").result()
    store.close()
    for bad in (True, False):  # the message explains how to repair it
        with closing(sqlite3.connect(tmp_path / "p.sqlite")) as raw, raw:
            raw.execute("UPDATE answers SET label = ? WHERE id = ?", (name if bad else "repaired", answer))
        if bad:
            before = (tmp_path / "p.sqlite").read_bytes()
            with pytest.raises(StoreError, match=r"not allowed .* --project") as caught:
                stores()
            assert str(caught.value).isprintable()
            assert (tmp_path / "p.sqlite").read_bytes() == before
    assert stores().view.labels == {1: "cat", 2: "wolf"} | {row: "repaired"}


def test_a_file_that_must_not_be_written(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    stores().close()
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anything
    with pytest.raises(StoreError, match="cannot be written"):
        stores()


def test_a_request_is_of_one_kind(stores: Stores) -> None:
    store = stores()
    store.label(1, "cat", "me", "first").result()
    with pytest.raises(RefusedError, match="use a new one"):
        store.undo("me", "first").result()
    for other in ((2, "cat"), (1, "dog")):
        with pytest.raises(RefusedError, match="use a new one"):
            store.label(*other, "me", "first").result()
    assert not store.label(1, " cat", "me", "first").result().new
    assert store.view.labels == {1: "cat"}


def test_labels_that_cannot_be_names_are_reported_with_their_row(stores: Stores) -> None:
    with pytest.raises(RefusedError, match="Row 7: The name of the class has 200 characters"):
        stores().import_labels([(3, "cat"), (7, "x" * 200)])
