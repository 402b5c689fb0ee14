"""What a report page is made of; the template draws each kind of part."""

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
    """Cells of text; the first columns, as many as `heads`, name the row."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: list[str]
    rows: list[list[str]]
    heads: int = 1
    note: str = ""
    words: bool = False
    """Whether the cells are words, which begin at the left, not numbers."""


@dataclass(frozen=True)
class Shown:
    """A figure as it stands in the page: drawn by the browser (`svg`), or a picture of pixels (`uri`)."""

    alt: str
    caption: str
    wide: bool
    svg: Markup | None = None
    uri: str = ""


@dataclass(frozen=True)
class Gallery:
    """Figures side by side, as many as there is room for: large ones two at most."""

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
    """Whether it shows results, which the notes of the page restrict."""


class Press:
    """Makes figures ready for the page, and keeps each as a PNG in a folder for use elsewhere."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] = set()

    def drawing(self, picture: Picture) -> Shown:
        """Return a figure of lines and text, which takes its colors from the page."""
        from markupsafe import Markup

        picture = picture._replace(name=self._name(picture.name))
        self._keep(picture.name, to_png(picture.figure, DPI))
        svg = Markup(to_svg(picture))  # made by ElementTree, which escapes all text
        return Shown(picture.alt, picture.caption, picture.wide, svg=svg)

    def photograph(self, picture: Picture) -> Shown:
        """Return a figure of pixels."""
        png = self.keep(picture, dpi=220)
        return Shown(picture.alt, picture.caption, picture.wide, uri=data_uri(png))

    def keep(self, picture: Picture, dpi: int = DPI) -> bytes:
        """Keep a figure that does not stand in the page as it is."""
        png = to_png(picture.figure, dpi)
        self._keep(self._name(picture.name), png)
        return png

    def _name(self, wanted: str) -> str:
        """Return a name that is safe for a file and an identifier, and not taken."""
        stem = re.sub(r"[^a-z0-9+]+", "-", wanted.lower()).strip("-")[:80] or "figure"
        name, n = stem, 1
        while name in self._names:
            n += 1
            name = f"{stem}-{n}"
        self._names.add(name)
        return name

    def _keep(self, name: str, png: bytes) -> None:
        self._folder.mkdir(exist_ok=True)
        with replacing(self._folder / f"{name}.png") as temporary:
            temporary.write_bytes(png)
