"""A folder that collects results: a JSON record a run, appended as it finishes, so that an interrupted one goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tnesi._files import replacing

Array = npt.NDArray[Any]
Record = dict[str, Any]

RECORDS = "records.jsonl"
CONFIGURATION = "protocol.json"


class RunFolder:
    """Records and arrays of one reproduction.

    Examples
    --------
    >>> import tempfile
    >>> folder = RunFolder(tempfile.mkdtemp())
    >>> folder.append({"run": 0, "error": 3.9})
    >>> RunFolder(folder.path).records
    [{'run': 0, 'error': 3.9}]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.records: list[Record] = list(self._read())

    def _read(self) -> list[Record]:
        file = self.path / RECORDS
        if not file.exists():
            return []
        content = file.read_bytes()
        found, damaged = [], bool(content) and not content.endswith(b"\n")
        for line in content.split(b"\n"):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                damaged = True  # what a kill or a full disk cut off
                continue
            if isinstance(record, dict):
                found.append(record)
        if damaged:
            with replacing(file) as temporary:
                temporary.write_text("".join(json.dumps(record) + "\n" for record in found))
        return found

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
        """Note what the runs are of; records of other settings in the same folder are an error."""
        file = self.path / CONFIGURATION
        if file.exists() and self.records:
            before = self.configuration
            for key in ("name", "settings", "quick"):
                if before.get(key) != json.loads(json.dumps(configuration.get(key))):
                    raise ValueError(
                        f"{self.path} holds runs with other settings ({key}: {before.get(key)}): choose another "
                        "folder with --output, or delete it"
                    )
        with replacing(file) as temporary:
            temporary.write_text(json.dumps(configuration, indent=1) + "\n")

    @property
    def configuration(self) -> Record:
        try:
            found = json.loads((self.path / CONFIGURATION).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} is not a run folder: there is no {CONFIGURATION} in it") from None
        except ValueError as error:
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
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as found:
            return {key: found[key] for key in found.files}
