"""The parts of a report page, as its template takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tnesi.report.examples import Sheet, data_uri
from tnesi.report.figures.canvas import Picture, to_png, to_svg
from tnesi.system.files import replacing

if TYPE_CHECKING:
    from markupsafe import Markup

DPI = 160


@dataclass(frozen=True)
class Table:
    """A table of text. The first `heads` columns are row headers."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: list[str]
    rows: list[list[str]]
    heads: int = 1
    note: str = ""
    words: bool = False
    """Whether cells are left-aligned text rather than numbers."""


@dataclass(frozen=True)
class Shown:
    """A figure in the page: vector graphics (`svg`) or a bitmap (`uri`)."""

    alt: str
    caption: str
    wide: bool
    svg: Markup | None = None
    uri: str = ""


@dataclass(frozen=True)
class Gallery:
    """Figures side by side; at most two in a row if they are large."""

    kind: ClassVar[str] = "gallery"
    title: str
    figures: list[Shown]
    text: str = ""
    large: bool = True


@dataclass(frozen=True)
class Examples:
    kind: ClassVar[str] = "examples"
    title: str
    settings: list[tuple[str, list[Sheet]]]


@dataclass(frozen=True)
class Section:
    title: str
    parts: list[Table | Gallery | Examples] = field(default_factory=list)
    text: str = ""
    results: bool = True
    """Whether the notes of the page apply to it."""


class FigureWriter:
    """Converts figures for the page, and saves each as a PNG in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] = set()

    def vector(self, picture: Picture) -> Shown:
        """Return a figure as vector graphics in the colors of the page."""
        from markupsafe import Markup

        picture = picture._replace(name=self._name(picture.name))
        self._write(picture.name, to_png(picture.figure, DPI))
        svg = Markup(to_svg(picture))  # made by ElementTree, which escapes all text
        return Shown(picture.alt, picture.caption, picture.wide, svg=svg)

    def bitmap(self, picture: Picture) -> Shown:
        """Return a figure as a bitmap."""
        png = self.save(picture, dpi=220)
        return Shown(picture.alt, picture.caption, picture.wide, uri=data_uri(png))

    def save(self, picture: Picture, dpi: int = DPI) -> bytes:
        """Save a figure; return the PNG."""
        png = to_png(picture.figure, dpi)
        self._write(self._name(picture.name), png)
        return png

    def _name(self, wanted: str) -> str:
        """Return a unique name that is safe for files and identifiers."""
        stem = re.sub(r"[^a-z0-9+]+", "-", wanted.lower()).strip("-")[:80] or "figure"
        name, n = stem, 1
        while name in self._names:
            n += 1
            name = f"{stem}-{n}"
        self._names.add(name)
        return name

    def _write(self, name: str, png: bytes) -> None:
        self._folder.mkdir(exist_ok=True)
        with replacing(self._folder / f"{name}.png") as temporary:
            temporary.write_bytes(png)
