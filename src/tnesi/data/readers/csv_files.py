"""Numeric CSV files, optionally compressed with gzip, streamed so that they may exceed memory.

Opening a file reads it once to count rows, choose the smallest data type and read the labels. Every pass over the data
reads it again.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.column_names import INDEX_NAMES, LABEL_NAMES
from tnesi.data.label_values import LABEL_BYTES, parse_labels
from tnesi.data.optional import needed
from tnesi.data.readers.tables import MOST_COLUMNS, Columns, NotNumbersError, TableSource, to_rows
from tnesi.data.recognize import READABLE, decode, is_gzip, open_plain
from tnesi.data.source import Data, DataError, check_room, check_shape, damaged, smallest_dtype
from tnesi.types import Array

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_LONGEST_LINE = 2**23
_LARGEST_EXACT = 2**53
"""Integers up to this one are exact as floats."""
_BLOCK_BYTES = 2**20  # read at a time, unless lines are long


@dataclass(frozen=True)
class _Layout:
    """Format of a file: delimiter, lines to skip and column names."""

    delimiter: str
    decimal: str
    skip_lines: int
    names: list[str] | None
    first_row: list[str]
    block_bytes: int


class CsvSource(TableSource):
    """Rows of a CSV file."""

    def __init__(self, path: Path, label_column: str | int | None = None) -> None:
        self._layout = _find_layout(path)
        n_columns = len(self._layout.first_row)
        columns = Columns(self._layout.names or [str(i) for i in range(n_columns)], label_column, path)
        super().__init__(path, columns)
        if self._layout.names is None:
            self.feature_names = None
        words = [i for i in columns.features if (cell := self._layout.first_row[i].strip()) and not is_number(cell)]
        if words:
            raise columns.not_numbers(words)
        self.dtype = np.dtype(np.uint8)
        self.labels: Array | None = None
        with damaged(path):
            self._survey()

    def batches(self, size: int) -> Iterator[list[Array]]:
        for batch in self._read(labels=False):
            yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]

    def _survey(self) -> None:
        n_rows = 0
        texts: list[str | None] = []
        for batch in self._read(labels=True):
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns[: self.n_features]]
            block = to_rows(columns, n_rows, np.dtype(np.float64), self.columns)
            if np.abs(block).max(initial=0) > _LARGEST_EXACT:
                raise NotNumbersError("{path} has numbers of more than 15 digits", path=self.path)
            self.dtype = np.result_type(self.dtype, smallest_dtype(block))
            n_rows += len(block)
            if self.columns.label is not None:
                check_room(n_rows * LABEL_BYTES, f"the labels of {n_rows} rows")
                texts += batch.columns[-1].to_pylist()
        self.n_rows, _ = check_shape(n_rows, self.n_features, self.path)
        if self.columns.label is not None:
            self.labels = parse_labels(texts, self.path)

    def _read(self, labels: bool) -> Iterator[Any]:
        """Yield record batches of float64 features, followed by the labels if `labels` is true."""
        arrow = needed("pyarrow", "reading CSV")
        arrow_csv = needed("pyarrow.csv", "reading CSV")
        # columns are numbered because names may not be unique
        types = {str(i): arrow.float64() for i in self.columns.features}
        if labels and self.columns.label is not None:
            types[str(self.columns.label)] = arrow.string()
        with arrow.input_stream(str(self.path), compression="gzip" if is_gzip(self.path) else None) as file:
            try:
                yield from arrow_csv.open_csv(
                    file,
                    arrow_csv.ReadOptions(
                        column_names=[str(i) for i in range(len(self._layout.first_row))],
                        skip_rows=self._layout.skip_lines,
                        block_size=self._layout.block_bytes,
                    ),
                    arrow_csv.ParseOptions(delimiter=self._layout.delimiter),
                    arrow_csv.ConvertOptions(
                        column_types=types,
                        include_columns=list(types),
                        null_values=[""],
                        strings_can_be_null=True,
                        decimal_point=self._layout.decimal,
                    ),
                )
            except arrow.ArrowInvalid as error:
                raise self._explained(str(error)) from error

    def _explained(self, message: str) -> DataError:
        if found := re.search(r"In CSV column #(\d+).*invalid value '(.{0,40})", message, re.DOTALL):
            name, value = self.columns.names[int(found[1])], found[2].rstrip("'")
            return NotNumbersError(
                "{path}: column {name!r} has {value!r} instead of a number",
                advice="correct it, remove the row or the column, or pass {label_column} if these are labels",
                path=self.path,
                name=name,
                value=value,
            )
        return unequal_lines(self.path, message) or DataError(
            "{path} is not a valid table ({reason})", advice="save it again", path=self.path, reason=message[:200]
        )


def unequal_lines(path: Path, message: str) -> DataError | None:
    """Return the error for lines of different lengths or for no lines, which pyarrow names in its message."""
    if "Empty CSV" in message:
        return DataError("{path} has no rows", path=path)
    found = re.search(r"Expected (\d+) columns, got (\d+): (.{0,60})", message, re.DOTALL)
    if found is None:
        return None
    return DataError(
        "{path} has lines of {n} and of {n2} cells ({line!r})",
        advice="correct or remove these lines",
        path=path,
        n=found[1],
        n2=found[2],
        line=found[3],
    )


def read_csv(path: Path, label_column: str | int | None = None) -> Data:
    """Open a CSV file as data."""
    rows = CsvSource(path, label_column)
    return Data(rows, rows.labels, name=path.name, note=rows.columns.note)


def is_number(cell: str) -> bool:
    """Return whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which Python allows in numbers


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split one line into its cells."""
    return next(csv.reader([line], delimiter=delimiter), [])


def find_delimiter(line: str) -> str:
    """Return the delimiter of a line: comma, semicolon or tab, or else a vertical bar; comma if there is none.

    Examples
    --------
    >>> [find_delimiter(line) for line in ("a;b,c;d", "a|b", "a|b,c", "a")]
    [';', '|', ',', ',']
    """
    found = max(",;\t", key=lambda delimiter: len(split_cells(line, delimiter)))
    return "|" if "|" in line and len(split_cells(line, found)) == 1 else found


def told_delimiter(line: str) -> str:
    """Return the delimiter that a line for Excel names, or "".

    Examples
    --------
    >>> told_delimiter("sep=;"), told_delimiter("a;b")
    (';', '')
    """
    found = re.fullmatch(r'"?sep=(.)"?', line.rstrip("\r\n"), re.IGNORECASE)
    return found[1] if found else ""


def _find_layout(path: Path) -> _Layout:
    with damaged(path), open_plain(path) as file:
        head = file.read(_LONGEST_LINE)
    try:
        lines = io.StringIO(decode(head, path), newline=None)
    except DataError as error:
        raise NotNumbersError(str(error)) from error
    blank, first = 0, ""
    for line in lines:
        first = line.rstrip("\n")
        if first.strip():
            break
        blank += 1
    second = next((line.rstrip("\n") for line in lines if line.strip()), "")
    if told_delimiter(first):
        raise NotNumbersError("{path} begins with the name of its delimiter", path=path)
    if not first.strip():
        raise DataError("{path} is empty", path=path)
    if max(map(first.count, ",;\t ")) > MOST_COLUMNS or (len(head) == _LONGEST_LINE and not second):
        raise DataError("{path} has lines that are too long", advice="use .npy or a sparse matrix", path=path)
    with damaged(path):
        delimiter, decimal = find_delimiter(first), "."
        for candidate in ";\t,":
            cells = split_cells(second or first, candidate)
            with_comma = [cell for cell in cells if "," in cell]
            if len(cells) > 1 and with_comma and all(map(_DECIMAL_COMMA.fullmatch, with_comma)):
                delimiter, decimal = candidate, ","
                break
        if len(split_cells(first, delimiter)) == 1 and all(map(is_number, first.split(" "))):
            delimiter = " "  # numpy.savetxt
        top, below = split_cells(first, delimiter), split_cells(second, delimiter)
    if decimal == ",":
        top, below = ([c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c) else c for c in row] for row in (top, below))
    if not any(map(is_number, top + below)):
        raise NotNumbersError(
            "{path} is text, but not a table separated by commas, semicolons or tabs",
            advice="use {readable}",
            path=path,
            readable=READABLE,
        )
    if below and len(below) != len(top):
        kind = NotNumbersError if '"' in first + second else DataError  # quoted texts may have several lines
        raise kind(
            "{path} has lines of {n} and {n2} cells", advice="correct the file", path=path, n=len(top), n2=len(below)
        )
    block = _BLOCK_BYTES if 16 * max(len(first), len(second)) < _BLOCK_BYTES else _LONGEST_LINE
    if _is_header(top, below):
        return _Layout(delimiter, decimal, blank + 1, [name.strip() for name in top], below or [""] * len(top), block)
    return _Layout(delimiter, decimal, blank, None, top, block)


def _is_header(top: list[str], below: list[str]) -> bool:
    """Return whether the first line is a header: names above numbers, or 0, 1, 2, ... for unnamed columns."""
    numbers = [cell for cell in top if is_number(cell)]
    if numbers == [str(i) for i in range(len(numbers))]:
        others = {cell.strip().lower() for cell in top if not is_number(cell)}
        if len(numbers) >= 10 or (others and others <= {*LABEL_NAMES, *INDEX_NAMES}):
            return True
    return any(
        cell.strip() and not is_number(cell) and is_number(under) for cell, under in zip(top, below, strict=False)
    )
