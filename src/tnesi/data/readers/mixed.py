"""Tables with text, categories, dates or missing values, in CSV, Parquet or JSON lines.

They are held in memory as Arrow tables. `tnesi.encoders.TableEncoder` converts them to numbers, or
`tnesi.encoders.TextEncoder` if the only column is text.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.column_names import INDEX_NAMES, find_label_column
from tnesi.data.label_values import parse_labels
from tnesi.data.optional import needed
from tnesi.data.readers.csv_files import find_delimiter, is_number
from tnesi.data.readers.parquet import open_parquet
from tnesi.data.readers.vectors import stacked_vectors
from tnesi.data.recognize import UTF16_MARKS, open_plain
from tnesi.data.source import (
    BLOCK_ROWS,
    ArraySource,
    Data,
    DataError,
    Kind,
    Source,
    check_room,
    check_shape,
    damaged,
)
from tnesi.system.memory import free_memory
from tnesi.types import Array

_HEAD = 2**20
"""Characters that show how a file is written."""
_LOOKED_AT = 200
"""Rows that show whether the first line has names."""
_LONGEST_NAME = 60
_TEXT_FROM = 40
"""Minimum mean length, in characters, for a single text column to hold documents."""


class MixedSource(Source):
    """Rows of an Arrow table.

    Attributes
    ----------
    table : pyarrow.Table
        The features, with unique column names.
    reason : str
        Why they are not numbers.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, table: Any, reason: str) -> None:
        self.table, self.reason = table, reason
        self.n_rows, self.n_features = table.num_rows, table.num_columns
        self.feature_names = list(table.column_names)
        self._documents = self.n_features == 1 and are_documents(table.column(0).slice(0, 1000).to_pylist())

    @property
    def kind(self) -> Kind:
        return "documents" if self._documents else "table"

    def items(self, size: int = BLOCK_ROWS) -> Iterator[Any]:
        for start in range(0, self.n_rows, size):
            part = self.table.slice(start, size)
            yield part.column(0).to_pylist() if self._documents else part

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        raise DataError(
            "{reason}; or encode the columns, for example with tnesi.encoders.TableEncoder", reason=self.reason
        )


def read_mixed_csv(path: Path, label_column: str | int | None = None, reason: str = "") -> Data:
    """Open a CSV file with columns of any kind."""
    arrow, arrow_csv = needed("pyarrow", "reading CSV"), needed("pyarrow.csv", "reading CSV")
    check_room(6 * path.stat().st_size, f"the table in {path}")
    raw, text, note = _read_text(path)
    first = next((line for line in io.StringIO(text[:_HEAD], newline=None) if line.strip()), "")
    if not first:
        raise DataError(f"{path} is empty: there is nothing to learn from")
    with damaged(path):
        delimiter = find_delimiter(first)
        rows = list(islice(_rows(text[:_HEAD], delimiter), _LOOKED_AT))
    if len(rows) > 1 and len(text) > _HEAD:
        rows.pop()  # which may end within a cell
    top, below = [cell.strip() for cell in rows[0]], rows[1:]
    ragged = next((row for row in below if len(row) != len(top)), None)
    if ragged is not None or (len(top) == 1 and not (below and _is_name(top[0]))):
        cells = "" if ragged is None else f", but has lines of {len(top)} and of {len(ragged)} cells"
        raise DataError(
            f"{path} is text, and not a table{cells}. Put documents into a folder, one file each, or into a CSV file "
            "with one quoted document per row below the name of the column"
        )
    has_names = _is_header(top, below)
    if has_names and not below:
        raise DataError(f"{path} has no rows: there is nothing to learn from")
    with damaged(path):
        table = arrow_csv.read_csv(
            arrow.BufferReader(raw),
            arrow_csv.ReadOptions(
                column_names=None if has_names else [str(i) for i in range(len(top))],
                block_size=max(2**20, min(len(raw), 2**30)),  # a quoted text may be long
            ),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(strings_can_be_null=True),
        )
    data = _data(table, label_column, path, reason)
    return replace(data, note="; ".join(n for n in (data.note, note) if n))


def read_mixed_parquet(path: Path, label_column: str | int | None = None, reason: str = "") -> Data:
    """Open a Parquet file with columns of any kind."""
    with open_parquet(path) as file:
        check_room(20 * path.stat().st_size, f"the table in {path}")
        table = file.read()
    return _data(table, label_column, path, reason)


def read_json_lines(path: Path, label_column: str | int | None = None) -> Data:
    """Open a file with a JSON object on each line."""
    arrow, arrow_json = needed("pyarrow", "reading JSON lines"), needed("pyarrow.json", "reading JSON lines")
    check_room(6 * path.stat().st_size, f"the table in {path}")
    raw, text, note = _read_text(path)
    if text.lstrip()[:1] == "[":
        raise DataError(f"{path} is one JSON list: save it as JSON lines, one object per line")
    with damaged(path):
        try:
            table = arrow_json.read_json(
                arrow.BufferReader(raw), arrow_json.ReadOptions(block_size=max(2**20, min(len(raw), 2**30)))
            )
        except arrow.ArrowInvalid:
            table = arrow.table(_columns_of_lines(text))  # columns of several types, or damage that this names
    data = _data(table, label_column, path, "")
    return replace(data, note="; ".join(n for n in (data.note, note) if n))


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


def _read_text(path: Path) -> tuple[bytes, str, str]:
    """Return a file in UTF-8, as text, and a note where it is in another encoding."""
    with damaged(path), open_plain(path) as file:
        room = free_memory() // 8
        raw = file.read(room + 1)  # a packed file may be far larger than it seems
    check_room(6 * len(raw), f"the text in {path}")
    try:
        return raw, raw.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        pass
    if raw.startswith(UTF16_MARKS):
        with damaged(path):
            text = raw.decode("utf-16")
        return text.encode(), text, ""
    text = raw.decode("cp1252", "replace")
    return text.encode(), text, "the file is not in UTF-8 and was read as Windows-1252"


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield rows that are not empty; cells in quotes may contain the ends of lines."""
    return (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row)


def _is_name(cell: str) -> bool:
    return len(cell) <= _LONGEST_NAME and len(cell.split()) == 1 and cell[-1] not in ".!?,;:"


def _is_header(top: list[str], below: list[list[str]]) -> bool:
    """Tell whether the first line has names: distinct ones that are no numbers, and do not occur among the values."""
    if len(set(top)) < len(top) and not _numbers_below(top, below):
        return False
    if any(cell == "" or is_number(cell) for cell in top[1:]) or (top[0] and is_number(top[0])):
        return False
    if any(len(cell) > _LONGEST_NAME for cell in top):
        return False
    return not any(top[i] and top[i] == row[i].strip() for row in below for i in range(len(top)))


def _numbers_below(top: list[str], below: list[list[str]]) -> bool:
    """Whether a column has a name above numbers."""
    return any(
        not is_number(name) and below and all(is_number(row[i]) or not row[i].strip() for row in below)
        for i, name in enumerate(top)
    )


def _columns_of_lines(text: str) -> dict[str, list[Any]]:
    """Return the columns of JSON lines; where types differ, all values become texts."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"line {number} is not JSON ({error}): correct it, or leave it out") from error
        if not isinstance(row, dict):
            raise DataError(f"line {number} is not a JSON object: write {{...}} on each line")
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, list[Any]] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        kinds = Counter(float if type(v) is int else type(v) for v in values if v is not None)
        columns[name] = values if len(kinds) < 2 else [v if v is None or isinstance(v, str) else str(v) for v in values]
    return columns


def _data(table: Any, label_column: str | int | None, path: Path, reason: str) -> Data:
    reason = reason or f"{path}: the columns are not all numbers"
    names = [str(name).strip() for name in table.column_names]
    label = find_label_column(names, label_column, path)
    index = [i for i, name in enumerate(names) if name in INDEX_NAMES and i != label]
    features = [i for i in range(len(names)) if i != label and i not in index]
    if not features:
        raise DataError("{path} has no columns except the labels", path=path)
    check_shape(table.num_rows, len(features), path)
    notes = [f"index column {names[i]!r} omitted" for i in index]
    if label is not None and label_column is None:
        notes.append(f"labels from column {names[label]!r}")
    labels = None
    if label is not None:
        with damaged(path):
            texts = [None if v is None else str(v) for v in table.column(label).to_pylist()]
        labels = parse_labels(texts, path)
    rows, note = _source(table, features, names, path, reason)
    return Data(rows, labels, name=path.name, note="; ".join([*notes, note] if note else notes))


def _source(table: Any, features: list[int], names: list[str], path: Path, reason: str) -> tuple[Source, str]:
    """Return the rows of some columns, and a note on columns that were left out."""
    types = needed("pyarrow.types", "reading tables")
    vectors = [i for i in features if _is_vectors(types, table.schema.field(i).type)]
    nested = [i for i in features if types.is_nested(table.schema.field(i).type) and i not in vectors]
    if len(vectors) > 1:
        listed = " and ".join(repr(names[i]) for i in vectors)
        raise DataError(f"{path}: the columns {listed} are all vectors: leave only one of them in the file")
    if vectors:
        others = [repr(names[i]) for i in features if i != vectors[0]]
        rows = stacked_vectors(table.column(vectors[0]).to_pylist(), names[vectors[0]], path)
        listed = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        note = f"vectors from the column {names[vectors[0]]!r}" + (f", without {listed}" if others else "")
        return ArraySource(rows), note
    kept = [i for i in features if i not in nested]
    if not kept:
        raise DataError(f"{path}: the columns are nested: flatten them")
    part = table.select(kept).rename_columns(distinct([names[i] for i in kept]))
    listed = ", ".join(repr(names[i]) for i in nested[:5])
    return MixedSource(part, reason), f"nested columns left out: {listed}" if nested else ""


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
