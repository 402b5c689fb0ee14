"""Tables with text, categories, dates or missing values, in CSV, Parquet or JSON lines.

They are read in blocks, as Arrow tables. `tnesi.encoders.TableEncoder` converts them to numbers, or
`tnesi.encoders.TextEncoder` if the only column is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.column_names import INDEX_NAMES, find_label_column
from tnesi.data.label_values import LABEL_BYTES, parse_labels
from tnesi.data.optional import needed
from tnesi.data.readers.csv_tables import CsvTable
from tnesi.data.readers.json_lines import JsonLines
from tnesi.data.readers.table_files import ParquetTable, TableFile
from tnesi.data.readers.vectors import stacked_vectors
from tnesi.data.source import BLOCK_ROWS, ArraySource, Data, DataError, Kind, Source, check_room, check_shape, damaged
from tnesi.types import Array

_TEXT_FROM = 40
"""Minimum mean length, in characters, for a single text column to hold documents."""
_HEAD = 1000
_PACKED = 20
"""Bytes in memory per byte of a file, at most: Parquet packs."""
_KEPT_VECTORS = 2**26
"""Bytes of vectors up to which they are kept in memory."""


@dataclass(frozen=True)
class _Part:
    """Some columns of a table in a file, with distinct names."""

    file: TableFile
    columns: list[int]
    names: list[str]

    def tables(self, size: int) -> Iterator[Any]:
        """Yield all rows as Arrow tables of at most `size` rows."""
        for table in self.file.tables(self.columns, self.names):
            for start in range(0, table.num_rows, size):
                yield table.slice(start, size)


class TableSource(Source):
    """Rows of a table with columns of any kind; a single column of texts may be documents."""

    kind: Kind = "table"

    def as_kind(self, kind: Kind) -> Source | None:
        if self.n_features != 1 or kind not in ("documents", "table"):
            return None
        rows = copy(self)
        rows.kind = kind
        return rows


class MixedSource(TableSource):
    """Rows of a table in a file.

    Attributes
    ----------
    reason : str
        Why they are not numbers.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, file: TableFile, columns: list[int], names: list[str], reason: str) -> None:
        self._part, self.reason = _Part(file, columns, names), reason
        self.n_rows, self.n_features = file.n_rows, len(columns)
        self.feature_names = names
        if self.n_features == 1 and are_documents(next(self._part.tables(_HEAD)).column(0).to_pylist()):
            self.kind = "documents"

    @cached_property
    def table(self) -> Any:
        """All rows as a pyarrow.Table in memory."""
        path = self._part.file.path
        check_room(_PACKED * path.stat().st_size, f"the table in {path}")
        return needed("pyarrow", "reading tables").concat_tables(self._part.tables(BLOCK_ROWS))

    def items(self, size: int = BLOCK_ROWS) -> Iterator[Any]:
        for table in self._part.tables(size):
            yield table.column(0).to_pylist() if self.kind == "documents" else table

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        raise DataError(
            "{reason}; or encode the columns, for example with tnesi.encoders.TableEncoder", reason=self.reason
        )


class VectorSource(Source):
    """Rows of a column of vectors in a file."""

    def __init__(self, file: TableFile, column: int) -> None:
        self._part = _Part(file, [column], [file.names[column]])
        self.n_features, self.dtype = 0, np.dtype(np.float32)
        for block in self._arrays(BLOCK_ROWS):
            self.n_features = block.shape[1]
            self.dtype = np.result_type(self.dtype, block.dtype)
        self.n_rows, _ = check_shape(file.n_rows, self.n_features, file.path)

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        for block in self._arrays(size):
            yield block.astype(self.dtype, copy=False)

    def _arrays(self, size: int) -> Iterator[Array]:
        first_row, length = 0, 0
        for table in self._part.tables(size):
            block = stacked_vectors(
                table.column(0).to_pylist(), self._part.names[0], self._part.file.path, first_row, length
            )
            first_row, length = first_row + len(block), block.shape[1]
            yield block


def read_mixed_csv(path: Path, label_column: str | int | None = None, reason: str = "") -> Data:
    """Open a CSV file with columns of any kind."""
    return _data(CsvTable(path), label_column, reason)


def read_mixed_parquet(path: Path, label_column: str | int | None = None, reason: str = "") -> Data:
    """Open a Parquet file with columns of any kind."""
    return _data(ParquetTable(path), label_column, reason)


def read_json_lines(path: Path, label_column: str | int | None = None) -> Data:
    """Open a file with a JSON object on each line."""
    return _data(JsonLines(path), label_column, "")


def are_documents(values: Sequence[Any]) -> bool:
    """Whether the entries of the only column of a table are texts to read, and not categories.

    Examples
    --------
    >>> are_documents(["The boat left the harbor before sunrise, as always.", None]), are_documents(["red", "green"])
    (True, False)
    """
    texts = [text for text in values if isinstance(text, str) and text]
    others = [value for value in values if not isinstance(value, str) and value is not None and value == value]
    return bool(texts) and not others and float(np.mean([len(text) for text in texts])) >= _TEXT_FROM


def _data(file: TableFile, label_column: str | int | None, reason: str) -> Data:
    path = file.path
    names = [name.strip() for name in file.names]
    label = find_label_column(names, label_column, path)
    index = [i for i, name in enumerate(names) if name in INDEX_NAMES and i != label]
    features = [i for i in range(len(names)) if i != label and i not in index]
    if not features:
        raise DataError("{path} has no columns except the labels", path=path)
    check_shape(file.n_rows, len(features), path)
    rows, note = _source(file, features, names, reason or f"{path}: the columns are not all numbers")
    notes = [f"index column {names[i]!r} omitted" for i in index]
    if label is not None and label_column is None:
        notes.append(f"labels from column {names[label]!r}")
    labels = None
    if label is not None:
        with damaged(path):
            texts = [None if v is None else str(v) for v in file.column(label, LABEL_BYTES)]
        labels = parse_labels(texts, path)
    notes += [one for one in (note, file.note) if one]
    return Data(rows, labels, name=path.name, note="; ".join(notes))


def _source(file: TableFile, features: list[int], names: list[str], reason: str) -> tuple[Source, str]:
    """Return the rows of some columns, and a note on columns that were left out."""
    types = needed("pyarrow.types", "reading tables")
    path = file.path
    vectors = [i for i in features if _is_vectors(types, file.types[i])]
    nested = [i for i in features if types.is_nested(file.types[i]) and i not in vectors]
    if len(vectors) > 1:
        listed = " and ".join(repr(names[i]) for i in vectors)
        raise DataError(f"{path}: the columns {listed} are all vectors: leave only one of them in the file")
    if vectors:
        others = [repr(names[i]) for i in features if i != vectors[0]]
        listed = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        note = f"vectors from the column {names[vectors[0]]!r}" + (f", without {listed}" if others else "")
        rows: Source = VectorSource(file, vectors[0])
        kept = rows.n_rows * rows.n_features * rows.dtype.itemsize <= _KEPT_VECTORS
        return ArraySource(np.asarray(rows.load())) if kept else rows, note
    kept_columns = [i for i in features if i not in nested]
    if not kept_columns:
        raise DataError(f"{path}: the columns are nested: flatten them")
    listed = ", ".join(repr(names[i]) for i in nested[:5])
    source = MixedSource(file, kept_columns, distinct([names[i] for i in kept_columns]), reason)
    return source, f"nested columns left out: {listed}" if nested else ""


def _is_vectors(types: Any, kind: Any) -> bool:
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    return bool(types.is_integer(kind.value_type) or types.is_floating(kind.value_type))


def distinct(names: list[str]) -> list[str]:
    """Number the later ones among equal names.

    Examples
    --------
    >>> distinct(["a", "a", "a (2)"])
    ['a', 'a (3)', 'a (2)']
    """
    taken, out = set(names), list[str]()
    seen: set[str] = set()
    for name in names:
        new, number = name, 2
        while new in seen or (new != name and new in taken):
            new, number = f"{name} ({number})", number + 1
        seen.add(new)
        out.append(new)
    return out
