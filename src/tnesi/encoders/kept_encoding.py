"""Encoded rows beside a checkpoint: an interrupted run continues after the last block that was encoded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tnesi.data.contents import contents
from tnesi.data.spooled_rows import SpooledRows, SpoolSize
from tnesi.encoders.image_files import Problem
from tnesi.errors import TnesiError
from tnesi.system.files import InUseError, alone_in, replacing

FORMAT = 1


class KeptEncodingError(TnesiError, ValueError):
    """Encoded rows beside a checkpoint that do not belong to a run."""


@dataclass(frozen=True)
class _Progress:
    """What has been encoded.

    Attributes
    ----------
    key : str
        Identifies the encoder.
    n_items : int
    digest : str
        Of the content of these items.
    size : SpoolSize
    problems : list of Problem
    """

    key: str = ""
    n_items: int = 0
    digest: str = ""
    size: SpoolSize = field(default_factory=SpoolSize)
    problems: list[Problem] = field(default_factory=list)


class KeptEncoding:
    """The encoded rows in a folder, with a digest of the items that they are of.

    Attributes
    ----------
    rows : SpooledRows
    problems : list of Problem
        Items that were left out.
    """

    def __init__(self, folder: Path, key: str, *, resume: bool) -> None:
        self._folder, self._path = folder, folder / "encoded.json"
        self._before = self._read() if resume and self._path.exists() else _Progress(key)
        if self._before.key != key:
            raise KeptEncodingError(
                "{folder} has rows of another encoder",
                folder=folder,
                parameter="checkpoint",
                advice="start over without {resume}, or pass another folder as {checkpoint}",
            )
        if not self._before.n_items:
            self._path.unlink(missing_ok=True)
        self.rows = SpooledRows(0, folder, self._before.size)
        self.problems = list(self._before.problems)
        self._digest = hashlib.blake2b(digest_size=16)
        self._digests: dict[int, str] = {}  # after so many items, which may be ahead of the rows

    def has(self, items: Any, done: int) -> bool:
        """Return whether the next items, of which there are `done` so far, were encoded by an earlier run."""
        for content in contents(items):
            self._digest.update(len(content).to_bytes(8, "little"))
            self._digest.update(content)
        self._digests[done] = self._digest.hexdigest()
        if done > self._before.n_items:
            return False
        if done == self._before.n_items and self._digests[done] != self._before.digest:
            raise KeptEncodingError(
                "{folder} has rows of other data",
                folder=self._folder,
                parameter="checkpoint",
                advice="start over without {resume}, or pass another folder as {checkpoint}",
            )
        return True

    def save(self, done: int) -> None:
        """Save that these rows are the first `done` items."""
        now = _Progress(self._before.key, done, self._digests[done], self.rows.size, self.problems)
        with replacing(self._path, sync=False) as temporary:
            temporary.write_text(json.dumps({"format": FORMAT, **asdict(now)}))

    def _read(self) -> _Progress:
        try:
            given = json.loads(self._path.read_text())
            if given.pop("format") != FORMAT:
                raise ValueError("another version of tnesi wrote it")
            size = SpoolSize(**given.pop("size"))
            found = _Progress(**given | {"size": size, "problems": [Problem(**one) for one in given["problems"]]})
            for name, n_bytes in size.bytes_of().items():
                there = (self._folder / name).stat().st_size if n_bytes else 0
                if there < n_bytes:
                    raise ValueError(f"{name} has {there} bytes instead of {n_bytes}")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
            raise KeptEncodingError(
                "{path} is damaged ({reason})", path=self._path, reason=error, advice="start over without {resume}"
            ) from error
        return found


@contextmanager
def encoding_kept_in(folder: Path, key: str, *, resume: bool) -> Iterator[KeptEncoding]:
    """Lock the folder of encoded rows, and yield what is in it."""
    try:
        with alone_in(folder, wait=False):
            for part in folder.glob(".*.part"):  # of a killed run
                part.unlink(missing_ok=True)
            yield KeptEncoding(folder, key, resume=resume)
    except InUseError:
        raise KeptEncodingError(
            "another fit uses {folder}", folder=folder, advice="wait for it, or pass another folder as {checkpoint}"
        ) from None
