"""Documents and rows of tables on the page: as people know them, with fields described by what sets them apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tnesi.data.readers.mixed import MixedSource
from tnesi.data.source import Source
from tnesi.encoders.documents import DecodingReport, read_documents
from tnesi.model.rows import Matrix, dense
from tnesi.studio.first_layer import FirstLayer
from tnesi.studio.shown import MOST_WORDS, Features, Json, Shown
from tnesi.types import Array

_FOLDED, _LONGEST = 1500, 100_000
"""Characters of a document with the question, and on request."""
_SNIPPET = 100
_MOST_COLUMNS = 200
_LONGEST_CELL = 500
_LINES = 3
"""Words on a tile of the map."""


class WordRows(Shown):
    """Rows of numbers with names, such as word counts: as the words that set them apart."""

    kind = "words"
    features: Features

    def __init__(self, values: Matrix, features: Features) -> None:
        self._values, self.n_rows, self.features = values, values.shape[0], features

    def details(self, row: int, *, whole: bool = False) -> Json:
        return {"words": self.features.telling(self._dense(row), MOST_WORDS)}

    def brief(self, row: int) -> Json:
        return {"words": self.features.words(self._dense(row), 4)}

    def field_texts(self, layer: FirstLayer, fields: Array) -> list[str]:
        return ["".join(self.features.words(values, 1)) for values in layer.fields(fields)]

    def _dense(self, row: int) -> Array:
        return dense(self._values[[row]])


class _Texts(Shown):
    """Rows that are shown as text.

    Parameters
    ----------
    n_rows : int
    features : Features or None
        None where the names of the features mean nothing to people, as those of embeddings.
    """

    def __init__(self, n_rows: int, features: Features | None) -> None:
        self.n_rows, self.features = n_rows, features

    @abstractmethod
    def snippet(self, row: int) -> str:
        """Return the row in a line."""

    def brief(self, row: int) -> Json:
        return {"snippet": self.snippet(row)}

    def field_texts(self, layer: FirstLayer, fields: Array) -> list[str]:
        if self.features is None:
            return ["\n".join(self.snippet(row).split()[:_LINES]) for row in layer.typical(fields).tolist()]
        return ["\n".join(self.features.words(values, _LINES)) for values in layer.fields(fields)]


class Documents(_Texts):
    """Documents: texts, or files that are read when they are shown."""

    kind = "document"

    def __init__(self, documents: Sequence[str] | Sequence[Path], features: Features | None) -> None:
        super().__init__(len(documents), features)
        self._documents = documents

    def text(self, row: int) -> str:
        try:
            return next(read_documents([self._documents[row]], DecodingReport("utf-8")))
        except OSError as error:
            return f"This file cannot be read any more ({error.strerror})."

    def details(self, row: int, *, whole: bool = False) -> Json:
        text = self.text(row)
        return {"text": text[: _LONGEST if whole else _FOLDED], "text_length": len(text)}

    def snippet(self, row: int) -> str:
        return " ".join(self.text(row)[: 4 * _SNIPPET].split())[:_SNIPPET]


class TableRows(_Texts):
    """Rows of a table with the names of its columns."""

    kind = "table"

    def __init__(self, table: Source, features: Features | None) -> None:
        super().__init__(table.n_rows, features)
        self._table = table.table if isinstance(table, MixedSource) else None
        self._numbers = None if self._table is not None else table.load()
        self._names = table.feature_names or [f"column {i}" for i in range(table.n_features)]

    def details(self, row: int, *, whole: bool = False) -> Json:
        shown = zip(self._names[:_MOST_COLUMNS], self._cells(row, _MOST_COLUMNS), strict=True)
        return {"columns": [[name, cell] for name, cell in shown], "n_columns": len(self._names)}

    def snippet(self, row: int) -> str:
        return ", ".join(cell for cell in self._cells(row, _MOST_COLUMNS) if cell)[:_SNIPPET]

    def _cells(self, row: int, most: int) -> list[str | None]:
        if self._table is not None:
            return [_as_cell(column[row].as_py()) for column in self._table.columns[:most]]
        assert self._numbers is not None
        return [_as_cell(value) for value in np.asarray(self._numbers[row]).ravel()[:most]]


def _as_cell(value: object) -> str | None:
    """Return a value as text, None where it is missing.

    Examples
    --------
    >>> _as_cell(3.0), _as_cell(0.5), _as_cell("basic"), _as_cell(float("nan"))
    ('3', '0.5', 'basic', None)
    """
    if value is None or value != value:
        return None
    return str(value)[:_LONGEST_CELL].removesuffix(".0" if isinstance(value, float | np.floating) else "\0")
