"""Tables with text, categories, dates or missing values, in CSV, Parquet or JSON lines.

They are held in memory as Arrow tables. `tnesi.encoders.TableEncoder` converts them to numbers, or
`tnesi.encoders.TextEncoder` if the only column is text.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.column_names import INDEX_NAMES, find_label_column
from tnesi.data.label_values import parse_labels
from tnesi.data.optional import needed
from tnesi.data.readers.csv_files import find_delimiter, is_number, split_cells
from tnesi.data.readers.parquet import open_parquet
from tnesi.data.readers.tables import NotNumbersError
from tnesi.data.recognize import decode, is_gzip, open_plain
from tnesi.data.source import BLOCK_ROWS, Data, DataError, Source, check_room, check_shape, damaged
from tnesi.types import Array

_HEAD = 2**20
_TEXT_FROM = 40
"""Minimum mean length, in characters, for a single text column to hold documents."""


class MixedSource(Source):
    """Rows of an Arrow table.

    Attributes
    ----------
    table : pyarrow.Table
        The features, with unique column names.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, table: Any) -> None:
        self.table = table
        self.n_rows, self.n_features = table.num_rows, table.num_columns
        self.feature_names = list(table.column_names)

    @property
    def kind(self) -> Any:
        return "documents" if self.n_features == 1 and _is_text(self.table.column(0)) else "table"

    def items(self, size: int = BLOCK_ROWS) -> Iterator[Any]:
        for start in range(0, self.n_rows, size):
            part = self.table.slice(start, size)
            yield part.column(0).to_pylist() if self.kind == "documents" else part

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        raise DataError(
            "not all columns are numbers", advice="encode them first, for example with tnesi.encoders.TableEncoder"
        )


def read_mixed_csv(path: Path, label_column: str | int | None = None) -> Data:
    """Open a CSV file with columns of any kind."""
    arrow, arrow_csv = needed("pyarrow", "reading CSV"), needed("pyarrow.csv", "reading CSV")
    check_room(4 * path.stat().st_size, f"the table in {path}")
    with damaged(path), open_plain(path) as file:
        lines = [line for line in io.StringIO(decode(file.read(_HEAD), path), newline=None) if line.strip()]
    if len(lines) < 2:
        raise NotNumbersError("{path} is not a table of several rows", path=path)
    delimiter = find_delimiter(lines[0])
    top = [cell.strip() for cell in split_cells(lines[0].rstrip("\n"), delimiter)]
    has_names = (
        len(lines) > 1 and len(set(top)) == len(top) and not any(cell == "" or is_number(cell) for cell in top[1:])
    )
    if len(top) == 1 and path.suffix.lower() not in (".csv", ".tsv"):
        raise NotNumbersError("{path} is text, but not a table", path=path)
    try:
        with damaged(path), arrow.input_stream(str(path), compression="gzip" if is_gzip(path) else None) as file:
            table = arrow_csv.read_csv(
                file,
                arrow_csv.ReadOptions(column_names=None if has_names else [str(i) for i in range(len(top))]),
                arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(strings_can_be_null=True),
            )
    except DataError as error:
        raise NotNumbersError(
            "{path} is text, but not a table ({reason})", path=path, reason=error.__cause__
        ) from error
    if not table.num_rows:
        raise NotNumbersError("{path} has no rows", path=path)
    return _data(table, label_column, path)


def read_mixed_parquet(path: Path, label_column: str | int | None = None) -> Data:
    """Open a Parquet file with columns of any kind."""
    with open_parquet(path) as file:
        check_room(20 * path.stat().st_size, f"the table in {path}")
        table = file.read()
    return _data(table, label_column, path)


def read_json_lines(path: Path, label_column: str | int | None = None) -> Data:
    """Open a file with a JSON object on each line."""
    arrow_json = needed("pyarrow.json", "reading JSON lines")
    check_room(4 * path.stat().st_size, f"the table in {path}")
    with damaged(path):
        table = arrow_json.read_json(str(path))
    return _data(table, label_column, path)


def _data(table: Any, label_column: str | int | None, path: Path) -> Data:
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
        labels = parse_labels([None if v is None else str(v) for v in table.column(label).to_pylist()], path)
    kept = table.select(features).rename_columns(_distinct([names[i] for i in features]))
    return Data(MixedSource(kept), labels, name=path.name, note="; ".join(notes))


def _distinct(names: list[str]) -> list[str]:
    """Make names unique by numbering duplicates."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _is_text(column: Any) -> bool:
    types = needed("pyarrow.types", "reading tables")
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        return False
    texts = [text for text in column.slice(0, 1000).to_pylist() if text]
    return bool(texts) and float(np.mean([len(text) for text in texts])) >= _TEXT_FROM
