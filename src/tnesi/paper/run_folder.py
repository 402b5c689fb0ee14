"""A folder of results: one JSON record per run, appended as it finishes, so that interrupted work can resume."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from tnesi.data.readers.npz import array_names, read_array
from tnesi.data.source import DataError, DataNotFoundError, damaged
from tnesi.system.files import alone_in, replacing
from tnesi.types import Array

Record = dict[str, Any]

RECORDS = "records.jsonl"
CONFIGURATION = "protocol.json"
BY_NAME = ("networks", "data")
"""Settings by network and by task."""
_MOST_TEXT = 2**30
_MOST_BYTES = 2**26
"""Largest size of the arrays in a file."""


class RunFolder:
    """Records and arrays of one reproduction.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> with RunFolder(path).writing() as folder:
    ...     folder.append({"run": 0, "error": 3.9})
    >>> RunFolder(path).records
    [{'run': 0, 'error': 3.9}]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.records, _ = self._read()

    @contextmanager
    def writing(self) -> Iterator[Self]:
        """Create the folder if needed, repair it after an interruption, and lock it for other writers."""
        try:
            with alone_in(self.path, wait=False):
                self.records, damaged = self._read()
                if damaged:
                    with replacing(self.path / RECORDS) as temporary:
                        temporary.write_text("".join(json.dumps(record) + "\n" for record in self.records))
                yield self
        except BlockingIOError:
            raise DataError(
                f"another process is writing to {self.path}", advice="wait for it or choose another folder"
            ) from None

    def _read(self) -> tuple[list[Record], bool]:
        """Return the records and whether the file is damaged. Truncated lines are ignored."""
        file = self.path / RECORDS
        content = _content(file) if file.exists() else b""
        found, damaged = [], bool(content) and not content.endswith(b"\n")
        for line in filter(None, content.split(b"\n")):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                damaged = True
                continue
            if isinstance(record, dict):
                found.append(record)
        return found, damaged

    def append(self, record: Record) -> None:
        """Append a record and wait until it is on disk."""
        line = (json.dumps(record) + "\n").encode()
        file = self.path / RECORDS
        size = file.stat().st_size if file.exists() else 0
        with file.open("ab") as out:
            try:
                out.write(line)
                out.flush()
                os.fsync(out.fileno())
            except OSError:
                out.truncate(size)
                raise
        self.records.append(record)

    def configure(self, configuration: Record) -> None:
        """Save the configuration; raise an error if the folder has runs with other settings."""
        new = json.loads(json.dumps(configuration))
        if (self.path / CONFIGURATION).exists() and self.records:
            before = self.configuration
            if difference := _difference(before, new):
                raise DataError(
                    "{path} holds runs with other settings ({difference})",
                    advice="choose another {output} or delete it",
                    path=self.path,
                    difference=difference,
                )
            for key in ("methods", "tasks"):
                named = {one["name"]: one for one in (*before.get(key, ()), *new.get(key, ()))}
                new[key] = list(named.values())
            new["notes"] = sorted({*before.get("notes", ()), *new.get("notes", ())})
            settings = before.get("settings", {}), new.setdefault("settings", {})
            for old, changed, keys in ((*settings, BY_NAME), (before, new, ("data", "sizes"))):
                changed |= {key: old.get(key, {}) | changed.get(key, {}) for key in keys}
        with replacing(self.path / CONFIGURATION) as temporary:
            temporary.write_text(json.dumps(new, indent=1) + "\n")

    @property
    def configuration(self) -> Record:
        try:
            found = json.loads(_content(self.path / CONFIGURATION))
        except FileNotFoundError:
            raise DataNotFoundError(
                f"{self.path} is not a run folder", advice=f"pass one with a file {CONFIGURATION}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{self.path / CONFIGURATION} is damaged ({error})", advice="delete the folder and reproduce it again"
            ) from error
        if not isinstance(found, dict):
            raise DataError(
                f"{self.path / CONFIGURATION} is damaged", advice="delete the folder and reproduce it again"
            )
        return found

    def save_arrays(self, name: str, **arrays: Array) -> None:
        with replacing(self.path / f"{name}.npz") as temporary, temporary.open("wb") as out:
            np.savez_compressed(out, allow_pickle=False, **arrays)

    def arrays(self, name: str) -> dict[str, Array] | None:
        """Return saved arrays, or None if there are none."""
        file = self.path / f"{name}.npz"
        if not file.exists():
            return None
        with damaged(file), zipfile.ZipFile(file) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MOST_BYTES:
                raise DataError(f"{file} is too large", advice="delete it")
            return {name: read_array(archive, name) for name in array_names(archive)}


def _content(file: Path) -> bytes:
    """Read a regular file of limited size."""
    if not file.is_file() and file.exists():
        raise DataError(f"{file} is not a regular file")
    if file.stat().st_size > _MOST_TEXT:
        raise DataError(f"{file} is too large", advice="delete the folder and reproduce it again")
    return file.read_bytes()


def _difference(before: Record, new: Record) -> str:
    """Describe the first relevant difference of two configurations, empty if there is none."""
    for key in ("name", "quick"):
        if before.get(key) != new.get(key):
            return f"{key}: {before.get(key)}"
    return settings_difference(before.get("settings", {}), new.get("settings", {}))


def settings_difference(before: Record, new: Record) -> str:
    """Describe the first difference of settings, ignoring networks and data that only one of them has."""
    for key in sorted({*before, *new} - set(BY_NAME)):
        if before.get(key) != new.get(key):
            return f"{key}: {before.get(key)}"
    for key in BY_NAME:
        ours, others = before.get(key, {}), new.get(key, {})
        for name in ours:
            if name in others and ours[name] != others[name]:
                return f"{name}: {ours[name]}"
    return ""
