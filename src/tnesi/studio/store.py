"""One SQLite file with all answers and the learned mixture.

Answers form an append-only log, written by one thread. Simultaneous answers share a transaction, and an answer is
acknowledged only when it is on disk (write-ahead log, synchronous).
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tnesi.studio.answers import MOST_CLASSES, Answers, Entry, RefusedError, View, class_name
from tnesi.studio.project_file import StoreError, kind_errors, open_project

_MOST_ANSWERS = 2**40
_MOST_BLOB = 10**9
"""Bytes; SQLite takes no larger ones."""


class DiskError(OSError):
    """An answer that could not be written; the message is shown to the user."""


class Taken(NamedTuple):
    """An entry that is on disk; `new` is false if the same request came before."""

    entry: Entry
    new: bool


class Store:
    """An open project file; only one process at a time can open it.

    Attributes
    ----------
    view : View
        Snapshot of the answers.
    project : str
        A random name stored in the file.
    """

    def __init__(self, path: Path, fingerprint: str, name: str, n_rows: int) -> None:
        self.path, self._n_rows = path, n_rows
        self._connection = open_project(path, fingerprint, name, n_rows)
        self._file = path.stat()
        self._lock = threading.Lock()
        try:
            self._answers = self._read()
        except BaseException:
            self._connection.close()
            raise
        self.view: View = self._answers.view()
        self._stale = False  # whether they may have to be read again, after an error
        self.project = self._meta("project")
        self._waiting: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="studio-store", daemon=True)
        self._writer.start()

    # Answers

    def label(self, row: int, text: str, client: str = "", request: str = "") -> Future[Taken]:
        """Label a row, whether it has a label or not."""
        name = class_name(text)

        def entry() -> Entry:
            names = self._answers.names()
            if name not in names and len(names) >= MOST_CLASSES:
                raise RefusedError(f"There are {len(names)} classes, which is the maximum: use one of them")
            return self._new("label", client, request, row=self._checked(row), label=name)

        return self._take("label", entry, request, row=row, label=name)

    def skip(self, row: int, client: str = "", request: str = "") -> Future[Taken]:
        """Skip a row: it is not asked about again."""
        return self._take("skip", lambda: self._new("skip", client, request, row=self._checked(row)), request, row=row)

    def clear(self, row: int, client: str = "", request: str = "") -> Future[Taken]:
        """Remove the label of a row."""

        def entry() -> Entry:
            if self._checked(row) not in self._answers.labels:
                raise RefusedError(f"Row {row} has no label")
            return self._new("clear", client, request, row=row)

        return self._take("clear", entry, request, row=row)

    def rename(self, old: str, new: str, client: str = "", request: str = "") -> Future[Taken]:
        """Rename a class; if the new name exists, the two classes are merged."""
        name = class_name(new)

        def entry() -> Entry:
            if old not in self._answers.labels.values():
                raise RefusedError(f"There is no class {old[:100]!r}")
            if name == old:
                raise RefusedError(f"The class is already called {name!r}")
            return self._new("rename", client, request, label=name, old=old)

        return self._take("rename", entry, request, label=name, old=old)

    def undo(self, client: str = "", request: str = "") -> Future[Taken]:
        """Undo the client's last entry, or else the last one of all clients."""

        def entry() -> Entry:
            target = self._answers.to_undo(client)
            if target is None:
                raise RefusedError("Nothing to undo")
            return self._new("undo", client, request, row=target.row, undone=target.id)

        return self._take("undo", entry, request)

    def import_labels(self, labels: Iterable[tuple[int, str]]) -> Future[int]:
        """Add labels that come with the data as answers, for rows without any entry."""
        named = [(row, _name_of_row(row, text)) for row, text in labels]

        def add() -> int:
            known = {entry.row for entry in self._answers.entries.values()}
            fresh = [(self._checked(row), name) for row, name in named if row not in known]
            if len({name for _, name in fresh}.union(self._answers.labels.values())) > MOST_CLASSES:
                raise RefusedError(f"more than {MOST_CLASSES} classes: the studio supports no more")
            for row, name in fresh:
                self._insert(self._new("label", "import", "", row=row, label=name))
            return len(fresh)

        return self._do(add)

    def entry(self, number: int) -> Entry:
        """Return an entry by its number."""
        with self._lock:
            return self._answers.entries[number]

    def history(self, row: int) -> list[Entry]:
        """Return all entries about a row."""
        with self._lock:
            return self._answers.history(row)

    # What was learned

    def keep_model(self, content: bytes, settings: str) -> bool:
        """Store a learned mixture (a model file); return False if it is too large."""
        if len(content) > _MOST_BLOB:
            return False

        def write() -> None:
            self._connection.execute("INSERT OR REPLACE INTO models VALUES (?, ?)", ("mixture", content))
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('settings', ?)", (settings,))

        self._do(write).result()
        return True

    def kept_model(self) -> tuple[bytes, str] | None:
        """Return the stored mixture and its settings, if there is one."""

        def read() -> tuple[bytes, str] | None:
            found = self._connection.execute("SELECT content FROM models WHERE name = 'mixture'").fetchone()
            return None if found is None else (bytes(found[0]), self._meta("settings"))

        found: tuple[bytes, str] | None = self._do(read).result()
        return found

    def keep_point(self, answer: int, content: str) -> None:
        """Store a point of the history, without waiting."""
        statement = "INSERT OR REPLACE INTO history VALUES (?, ?)"
        self._do(lambda: self._connection.execute(statement, (answer, content)))

    def kept_points(self, most: int) -> list[str]:
        """Return the last points of the history of learning, in order."""
        statement = "SELECT content FROM history ORDER BY answer DESC LIMIT ?"
        rows = self._do(lambda: self._connection.execute(statement, (most,)).fetchall()).result()
        return [content for (content,) in reversed(rows)]

    def close(self) -> None:
        """Write pending answers and close the file."""
        self._waiting.put(None)
        self._writer.join()
        if not self.in_place():  # else the log would stay, and be played over another file of that name
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    # The thread that writes

    def _take(self, kind: str, entry: Callable[[], Entry], request: str, **said: Any) -> Future[Taken]:
        def act() -> Taken:
            if request and request in self._answers.requests:
                before = self._answers.entries[self._answers.requests[request]]
                if any(getattr(before, name) != value for name, value in {"kind": kind, **said}.items()):
                    raise RefusedError("Another request had this identifier: use a new one")
                return Taken(before, new=False)
            found = entry()
            self._insert(found)
            return Taken(found, new=True)

        return self._do(act)

    def _do(self, act: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.put((act, future))
        return future

    def _write(self) -> None:
        while (first := self._waiting.get()) is not None:
            together, ended = [first], False
            while not self._waiting.empty():
                one = self._waiting.get()
                if one is None:
                    ended = True
                    break
                together.append(one)
            self._write_together(together)
            if ended:
                return

    def _write_together(self, together: list[tuple[Callable[[], Any], Future[Any]]]) -> None:
        """Do all in one transaction. If it fails, all of it is rolled back and reported."""
        done: list[tuple[Future[Any], Any]] = []
        if not self.in_place():  # before anything is read from what is there now
            gone = DiskError(
                f"{self.path.name} was removed or replaced, so no more answers can be saved: download labels.csv from "
                "the page, stop the studio, and continue with --labels labels.csv"
            )
            for _, future in together:
                future.set_exception(gone)
            return
        try:
            if self._stale:
                self._start_over()
            with self._lock:
                self._connection.execute("BEGIN IMMEDIATE")
                for act, future in together:
                    try:
                        done.append((future, act()))
                    except RefusedError as error:
                        future.set_exception(error)
                self._connection.execute("COMMIT")
                self._know_file()
                self.view = self._answers.view()
        except Exception as error:
            self._stale = True
            with suppress(sqlite3.Error, StoreError):  # else with the next answer
                self._start_over()
            trouble = _explained(error, self.path)
            for _, future in together:
                if not future.done():
                    future.set_exception(trouble)
            return
        for future, result in done:
            future.set_result(result)

    def in_place(self) -> bool:
        """Whether the file is unchanged and in its place; SQLite would keep writing to a removed file, or overwrite
        one that replaced it.

        The file must not be opened here: closing it would release SQLite's lock, which belongs to the process.
        """
        with self._lock:  # not in the middle of writing
            try:
                found = self.path.stat()
            except OSError:
                return False
            same = (found.st_size, found.st_mtime_ns) == (self._file.st_size, self._file.st_mtime_ns)
            return os.path.samestat(found, self._file) and same

    def _know_file(self) -> None:
        """Remember the file as just written, unless another one replaced it."""
        with suppress(OSError):
            found = self.path.stat()
            if os.path.samestat(found, self._file):
                self._file = found

    def _start_over(self) -> None:
        with self._lock:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._answers = self._read()
            self.view = self._answers.view()
        self._stale = False

    def _insert(self, entry: Entry) -> None:
        self._connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", entry)
        self._answers.add(entry)

    def _new(self, kind: str, client: str, request: str, **rest: Any) -> Entry:
        number = 1 + next(reversed(self._answers.entries), 0)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Entry(number, kind, client=client, request=request, time=now, **rest)

    def _checked(self, row: int) -> int:
        if not 0 <= row < self._n_rows:
            raise RefusedError(f"There is no row {row}: rows are numbered from 0 to {self._n_rows - 1}")
        return row

    def _read(self) -> Answers:
        answers = Answers()
        with kind_errors(self.path):
            for values in self._connection.execute("SELECT * FROM answers ORDER BY id"):
                entry = Entry(*values)
                if not (0 < entry.id < _MOST_ANSWERS and (entry.row is None or 0 <= entry.row < self._n_rows)):
                    raise ValueError(f"answer {entry.id} cannot be")
                self._check_names(entry)
                answers.add(entry)
        return answers

    def _check_names(self, entry: Entry) -> None:
        """Check the names of an entry by the rule for names that are typed: another program may have written them."""
        for name in (entry.label, entry.old):
            if name is None:
                continue
            try:
                reason = "" if class_name(name) == name else "it has spaces around it or is not in Unicode form NFC"
            except RefusedError as error:
                reason = str(error).partition(":")[0]
            if reason:
                raise StoreError(
                    f"{self.path}: answer {entry.id} has {name[:100]!r} as the name of a class, which is not allowed "
                    f"({reason}). Nothing was changed. Replace the name with a SQLite editor, wherever it is in the "
                    "columns label and old of the table answers, or give another file with --project"
                )

    def _meta(self, name: str) -> str:
        found = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return "" if found is None else str(found[0])


def _name_of_row(row: int, text: str) -> str:
    try:
        return class_name(text)
    except RefusedError as error:
        raise RefusedError(f"Row {row}: {error}") from None


def _explained(error: Exception, path: Path) -> Exception:
    """Return the error to report for an answer that could not be written."""
    if isinstance(error, sqlite3.Error):
        return DiskError(f"the answer could not be written to {path.name} ({error}): is the disk full?")
    return error
