"""Opening a project file: a valid SQLite database of this program that belongs to the data."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

SCHEMA = 1
_APPLICATION = 0x746E6573  # "tnes", in the file's header
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE answers (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('label', 'skip', 'clear', 'rename', 'undo')),
    row INTEGER, label TEXT, old TEXT, undone INTEGER REFERENCES answers (id),
    client TEXT NOT NULL, request TEXT NOT NULL, time TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX requests ON answers (request) WHERE request <> '';
CREATE TABLE models (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
CREATE TABLE history (answer INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT;
"""


class StoreError(ValueError):
    """A project file that cannot be used; the message says which one, why, and what to do."""


def open_project(path: Path, fingerprint: str, name: str, n_rows: int) -> sqlite3.Connection:
    if path.is_dir():
        raise StoreError(f"{path} is a folder: give the name of a file with --project")
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent} for {path.name}: create it, or give --project FILE")
    if path.exists() and not os.access(path, os.W_OK):
        raise StoreError(f"{path} cannot be written: allow it, or copy the file to a folder of your own")
    with kind_errors(path):
        connection = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 1")  # a copy of the file alone has all answers
            _check(connection, path, fingerprint, name, n_rows)
        except BaseException:
            connection.close()
            raise
        return connection


def _check(connection: sqlite3.Connection, path: Path, fingerprint: str, name: str, n_rows: int) -> None:
    """Make the tables in a new file; check that an existing one is valid and belongs to these data."""
    connection.execute("BEGIN EXCLUSIVE")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables:
        _make_tables(connection)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA}")
        facts = {"fingerprint": fingerprint, "data": name, "rows": str(n_rows), "project": secrets.token_hex(8)}
        connection.executemany("INSERT INTO meta VALUES (?, ?)", facts.items())
    elif application != _APPLICATION:
        raise StoreError(f"{path} is a database of another program: give another file with --project")
    elif schema > SCHEMA:
        raise StoreError(f"{path} was made by a newer tnesi: pip install --upgrade tnesi")
    else:
        (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if sound != "ok":
            raise sqlite3.DatabaseError(sound)
        meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        if _tables(connection) != _own_tables() or not re.fullmatch("[0-9a-f]{16}", str(meta.get("project"))):
            raise sqlite3.DatabaseError("another program changed it")
        if meta.get("fingerprint") != fingerprint:
            raise StoreError(
                f"{path} belongs to other data ({meta.get('data')}, {meta.get('rows')} rows), or {name} has changed "
                "since: use another file with --project to start over"
            )
    connection.execute("COMMIT")


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)


def _tables(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """Return all definitions in a file: tables and indices, and foreign triggers or views."""
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall())


def _own_tables() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        _make_tables(empty)
        return _tables(empty)


@contextmanager
def kind_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, KeyError, AssertionError) as error:
        if isinstance(error, StoreError):
            raise
        text = str(error)
        if "locked" in text:
            raise StoreError(f"{path} is in use by another studio: go on in its page, or end it first") from error
        if isinstance(error, sqlite3.OperationalError) and ("unable to open" in text or "readonly" in text):
            raise StoreError(f"{path} cannot be written: give a file in a folder of your own with --project") from error
        if "full" in text:
            raise StoreError(f"{path}: the disk is full: make room, or give a file elsewhere with --project") from error
        raise StoreError(
            f"{path} is not a project file of tnesi, or it is damaged ({text}): give another file with --project"
        ) from error
