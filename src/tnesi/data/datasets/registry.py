"""The facts about the named data sets (``registry.toml``), and where their files are looked for."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tnesi.data.datasets.download import Remote
from tnesi.system.files import cache_folder


@dataclass(frozen=True)
class Entry:
    """A named data set; the attributes are explained in ``registry.toml``."""

    name: str
    title: str
    rows: tuple[int, int]
    classes: int
    shape: tuple[int, int] | None
    license: str
    source: str
    folder: str
    files: tuple[str, ...]
    partial: tuple[tuple[str, ...], ...]
    also_in: tuple[str, ...]
    downloads: tuple[Remote, ...]
    unpack: str | None

    @property
    def urls(self) -> list[str]:
        """Where the files come from, mirror by mirror."""
        return [url for remote in self.downloads for url in remote.urls]

    @property
    def download_bytes(self) -> int:
        """How much there is to download, at most."""
        return sum(remote.at_most for remote in self.downloads)

    @property
    def found(self) -> bool:
        """Whether the data set is on this machine."""
        return self.find() is not None

    @property
    def found_files(self) -> list[Path]:
        """The files that would be read."""
        return self.find() or []

    @property
    def folders(self) -> list[Path]:
        """Where the files are looked for, in order."""
        if not self.files:
            return []
        given = os.environ.get("TNESI_DATA")
        places = [Path(given).expanduser()] if given else []
        return [*(place / self.folder for place in (*places, cache_folder())), *map(Path, self.also_in)]

    def find(self, *, partial: bool = True) -> list[Path] | None:
        """Return the files of the data set in the first folder that has them; without `partial`, all of them.

        The list is empty for data that need no files.
        """
        if not self.files:
            return []
        for names in (self.files, *(self.partial if partial else ())):
            for folder in self.folders:
                found = [path for name in names if (path := _plain_or_packed(folder, name))]
                if len(found) == len(names):
                    return found
        return None


def _plain_or_packed(folder: Path, name: str) -> Path | None:
    return next((path for end in ("", ".gz", ".zip") if (path := folder / f"{name}{end}").exists()), None)


def _entry(name: str, facts: dict[str, Any]) -> Entry:
    def remote(download: dict[str, Any]) -> Remote:
        urls = tuple(url + download["name"] if url.endswith("/") else url for url in facts["urls"])
        at_most = download.get("at_most") or download["size"]
        return Remote(download["name"], urls, download["digest"], at_most, download.get("size"))

    return Entry(
        name=name,
        title=facts["title"],
        rows=(facts["rows"][0], facts["rows"][1]),
        classes=facts["classes"],
        shape=(facts["shape"][0], facts["shape"][1]) if "shape" in facts else None,
        license=facts["license"],
        source=facts["source"],
        folder=facts.get("folder", ""),
        files=tuple(facts.get("files", [])),
        partial=tuple(map(tuple, facts.get("partial", []))),
        also_in=tuple(facts.get("also_in", [])),
        downloads=tuple(map(remote, facts.get("downloads", []))),
        unpack=facts.get("unpack"),
    )


def read_registry() -> dict[str, Entry]:
    """Return all entries by name."""
    facts = tomllib.loads(Path(__file__).with_name("registry.toml").read_text(encoding="utf-8"))
    return {name: _entry(name, facts.get(own.get("like"), {}) | own) for name, own in facts.items()}
