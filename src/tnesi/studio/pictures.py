"""Rows and fields as a person sees them: small pictures, bars, or words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from tnesi.data.source import Data
from tnesi.report.examples import PROFILE_SHAPE, gray_picture, png
from tnesi.types import Array

Kind = Literal["image", "profile", "words"]

SHEET_COLUMNS = 16
MOST_TILES = 200
LARGEST_SIDE = 1024
_TILE = 64
"""Pixels of the longer side of a tile, at most."""
_MOST_BARS = 256
_COMPRESS = 4
_MOST_WORDS = 20
_LARGEST = 1e300
_WORDS_FROM = 100
"""Rows with names for so many features are shown as words: more bars cannot be told apart."""


class Shown:
    """What can be shown of some data.

    Attributes
    ----------
    kind : {"image", "profile", "words"}
    tile : (int, int)
        Height and width of a small picture.
    """

    def __init__(self, data: Data) -> None:
        self._rows, self._names = data.X, data.rows.feature_names
        self._shape = data.rows.image_shape
        self.n_rows, self.n_features = data.rows.n_rows, data.rows.n_features
        self.kind: Kind = "profile"
        if self._shape is not None and 1 not in self._shape:
            self.kind = "image"
        elif self._names is not None and (self.n_features >= _WORDS_FROM or sparse.issparse(self._rows)):
            self.kind = "words"
        self._usual: Array | None = None

    @property
    def tile(self) -> tuple[int, int]:
        height, width = self._shape if self.kind == "image" and self._shape else PROFILE_SHAPE
        factor = min(1.0, _TILE / max(height, width))
        return max(1, round(height * factor)), max(1, round(width * factor))

    def know_usual(self, usual: Array) -> None:
        """Hear what the average row is like: words are told by what sets a row apart from it."""
        self._usual = usual / max(float(usual.sum()), 1e-30)

    def values(self, rows: Sequence[int]) -> Array:
        """Return some rows, dense."""
        found = self._rows[np.asarray(rows, dtype=np.int64)]
        return found.toarray() if sparse.issparse(found) else np.asarray(found)

    def details(self, values: Array) -> dict[str, Any]:
        """Return what the page shows besides pictures: bars, their names, words."""
        values = _summable(values)
        return {
            "profile": None if self.kind == "image" else self._profile(values),
            "profile_names": self._names if self.kind == "profile" and values.size <= _MOST_BARS else None,
            "words": self._words(values, _MOST_WORDS) if self._names is not None and self.kind != "image" else None,
        }

    def few_words(self, values: Array, n: int = 4) -> list[str]:
        """Return the words that stand for a row."""
        return [str(word) for word, _ in self._words(_summable(values), n)]

    def _profile(self, values: Array) -> list[float]:
        if values.size > _MOST_BARS:
            starts = np.linspace(0, values.size, _MOST_BARS, endpoint=False).astype(int)
            values = np.maximum.reduceat(values, starts)
        return [float(f"{value:.4g}") for value in values]

    def _words(self, values: Array, n: int) -> list[tuple[str, float]]:
        if self._names is None:
            return []
        share = values / max(float(values.sum()), 1e-30)
        if self._usual is not None:  # how much a word adds to what sets the row apart
            share = share * np.log(np.maximum(share, 1e-12) / np.maximum(self._usual, 1e-12))
        best = np.argsort(-share, kind="stable")[:n]
        return [(self._names[i][:60], float(f"{share[i]:.4g}")) for i in best.tolist() if share[i] > 0]

    def rows_sheet(self, rows: Sequence[int]) -> bytes:
        """Return small pictures of some rows side by side, as a PNG."""
        return self.sheet(self.values(rows), SHEET_COLUMNS)

    def sheet(self, values: Array, columns: int) -> bytes:
        """Return small pictures side by side, as a PNG; each has its own scale of gray."""
        height, width = self.tile
        columns = max(1, min(columns, len(values)))
        sheet = np.full((-(-len(values) // columns) * height, columns * width), 255, np.uint8)
        for i, row in enumerate(values):
            y, x = divmod(i, columns)
            sheet[y * height : (y + 1) * height, x * width : (x + 1) * width] = self._tile(row)
        return png(sheet, compress_level=_COMPRESS)

    def _tile(self, row: Array) -> Array:
        from PIL import Image

        picture = gray_picture(row, self._shape if self.kind == "image" and self._shape else (1, row.size))
        if picture.shape != self.tile:
            height, width = self.tile
            picture = np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BOX))
        return picture

    def large(self, row: int, size: int) -> bytes:
        """Return one row as a large picture, as a PNG: pixels of small ones become squares."""
        from PIL import Image

        (values,) = self.values([row])
        shape = self._shape if self.kind == "image" and self._shape else (1, values.size)
        picture = Image.fromarray(gray_picture(values, shape))
        longest = max(picture.size)
        if size >= 2 * longest:
            factor = size // longest
            picture = picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
        elif size < longest:
            picture.thumbnail((size, size))
        return png(np.asarray(picture), compress_level=_COMPRESS)


def _summable(values: Array) -> Array:
    """Return values as they are shown: what would overflow in a sum, or in a rounded number, is cut."""
    return np.clip(np.asarray(values, dtype=np.float64).ravel(), 0, _LARGEST)
