"""A folder that collects results: a JSON record a run, appended as it finishes, so that an interrupted one goes on."""

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
from tnesi.data.source import DataError, damaged
from tnesi.system.files import alone_in, replacing
from tnesi.types import Array

Record = dict[str, Any]

RECORDS = "records.jsonl"
CONFIGURATION = "protocol.json"
BY_NAME = ("networks", "data")
"""Settings of each network and of each task's data."""
_MOST_TEXT = 2**30
_MOST_BYTES = 2**26
"""Of the arrays in one file; a reproduction saves far less."""


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
        """Create the folder if need be, mend what an interruption left, and keep other writers out meanwhile."""
        try:
            with alone_in(self.path, wait=False):
                self.records, damaged = self._read()
                if damaged:
                    with replacing(self.path / RECORDS) as temporary:
                        temporary.write_text("".join(json.dumps(record) + "\n" for record in self.records))
                yield self
        except BlockingIOError:
            raise ValueError(
                f"another process is at work in {self.path}: wait for it, or choose another folder"
            ) from None

    def _read(self) -> tuple[list[Record], bool]:
        """Return the records, and whether the file is damaged; a line that was cut off is not a record."""
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
        """Add a record; it is on the disk when this returns."""
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
        """Note what the runs are of. Runs of other settings in the folder are an error; networks and data are added."""
        new = json.loads(json.dumps(configuration))
        if (self.path / CONFIGURATION).exists() and self.records:
            before = self.configuration
            if difference := _difference(before, new):
                raise ValueError(
                    f"{self.path} holds runs with other settings ({difference}): choose another folder with --output, "
                    "or delete it"
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
            raise FileNotFoundError(f"{self.path} is not a run folder: there is no {CONFIGURATION} in it") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path / CONFIGURATION} is damaged ({error}): reproduce anew") from error
        if not isinstance(found, dict):
            raise ValueError(f"{self.path / CONFIGURATION} is damaged: reproduce anew")
        return found

    def save_arrays(self, name: str, **arrays: Array) -> None:
        with replacing(self.path / f"{name}.npz") as temporary, temporary.open("wb") as out:
            np.savez_compressed(out, allow_pickle=False, **arrays)

    def arrays(self, name: str) -> dict[str, Array] | None:
        """Return saved arrays, None if there are none of that name."""
        file = self.path / f"{name}.npz"
        if not file.exists():
            return None
        with damaged(file), zipfile.ZipFile(file) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MOST_BYTES:
                raise DataError(f"{file} is larger than what a reproduction saves: delete it")
            return {name: read_array(archive, name) for name in array_names(archive)}


def _content(file: Path) -> bytes:
    """Read a file, if it is one and not too large: a pipe would never end."""
    if not file.is_file() and file.exists():
        raise ValueError(f"{file} is no regular file")
    if file.stat().st_size > _MOST_TEXT:
        raise ValueError(f"{file} is larger than what a reproduction writes: the folder is damaged")
    return file.read_bytes()


def _difference(before: Record, new: Record) -> str:
    """Say in what two configurations differ, for runs that both have; nothing if in nothing that matters."""
    for key in ("name", "quick"):
        if before.get(key) != new.get(key):
            return f"{key}: {before.get(key)}"
    return settings_difference(before.get("settings", {}), new.get("settings", {}))


def settings_difference(before: Record, new: Record) -> str:
    """Say in what settings differ, networks and data apart that only one of them has."""
    for key in sorted({*before, *new} - set(BY_NAME)):
        if before.get(key) != new.get(key):
            return f"{key}: {before.get(key)}"
    for key in BY_NAME:
        ours, others = before.get(key, {}), new.get(key, {})
        for name in ours:
            if name in others and ours[name] != others[name]:
                return f"{name}: {ours[name]}"
    return ""
