"""How rows and fields appear on the page: what every kind of data provides, and the choice of the kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tnesi.studio.first_layer import FirstLayer
from tnesi.types import Array

Json = dict[str, Any]
Kind = Literal["image", "profile", "words", "document", "table"]

MOST_TILES = 200
LARGEST_SIDE = 4096
MOST_WORDS = 20
_LONGEST_WORD = 60
_LARGEST = 1e300


class Shown(ABC):
    """What can be shown of some data.

    Attributes
    ----------
    kind : {"image", "profile", "words", "document", "table"}
    n_rows : int
    tile : (int, int)
        Height and width of a small picture.
    photos : bool
        Whether pictures have their own colors; otherwise they are ink on the background of the page.
    features : Features or None
        Names of the features, where they describe rows and fields in words.
    """

    kind: Kind
    n_rows: int
    tile = (1, 1)
    photos = False
    features: Features | None = None

    @abstractmethod
    def details(self, row: int, *, whole: bool = False) -> Json:
        """Return what the page shows of a row besides a picture; `whole` texts only on request."""

    def brief(self, row: int) -> Json:
        """Return what lists show of a row besides a small picture."""
        return {}

    def field_details(self, layer: FirstLayer, field: int) -> Json:
        """Return what the page shows of a field."""
        fields = np.array([field])
        words = None if self.features is None else self.features.telling(layer.fields(fields)[0], MOST_WORDS)
        return {"typical": int(layer.typical(fields)[0]), "words": words}

    def field_texts(self, layer: FirstLayer, fields: Array) -> list[str] | None:
        """Return a few words for each field, one on each line; None where fields have pictures."""
        return None


class ShownPictures(Shown):
    """Rows that are shown as pictures.

    Attributes
    ----------
    draws_fields : bool
        Whether fields look like rows.
    """

    draws_fields = False

    @abstractmethod
    def printed(self, rows: Sequence[int]) -> tuple[Array, tuple[int, int]]:
        """Return rows as values to print in a report, large ones dark, and their shape."""

    @abstractmethod
    def rows_sheet(self, rows: Sequence[int]) -> bytes:
        """Return small pictures of some rows side by side, as a PNG."""

    @abstractmethod
    def fields_sheet(self, layer: FirstLayer, fields: Array, columns: int) -> bytes:
        """Return small pictures of fields side by side, as a PNG."""

    @abstractmethod
    def large(self, row: int, size: int) -> tuple[bytes, str]:
        """Return a large picture of a row, and its media type."""


class Features:
    """Names of features, and which of them set a row or a field apart from the average row."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._usual: Array | None = None

    def set_average(self, average: Array) -> None:
        self._usual = average / max(float(average.sum()), 1e-30)

    def telling(self, values: Array, n: int) -> list[tuple[str, float]]:
        """Return the names of the features that contribute most to the difference from the average, with weights."""
        values = summable(values)
        share = values / max(float(values.sum()), 1e-30)
        if self._usual is not None:
            share = share * np.log(np.maximum(share, 1e-12) / np.maximum(self._usual, 1e-12))
        best = np.argsort(-share, kind="stable")[:n]
        return [(self._names[i][:_LONGEST_WORD], float(f"{share[i]:.4g}")) for i in best.tolist() if share[i] > 0]

    def words(self, values: Array, n: int) -> list[str]:
        """Return these names without weights."""
        return [word for word, _ in self.telling(values, n)]


def summable(values: Array) -> Array:
    """Return non-negative values whose sum cannot overflow."""
    return np.clip(np.asarray(values, dtype=np.float64).ravel(), 0, _LARGEST)
