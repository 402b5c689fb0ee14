"""CSV files with columns of any kind: types that fit all rows, in constant memory.

Opening a file reads it twice: to find its encoding, and the types of its columns. Each pass reads it again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from tnesi.data.optional import needed
from tnesi.data.readers.csv_files import find_delimiter, is_number, told_delimiter, unequal_lines
from tnesi.data.readers.table_files import TableFile
from tnesi.data.readers.text_files import encoding_of, head_of, open_utf8
from tnesi.data.source import DataError, damaged

_HEAD = 2**20
"""Bytes that show how a file is written."""
_LOOKED_AT = 200
"""Rows that show whether the first line has names, and which types are worth a try."""
_LONGEST_NAME = 60
_BLOCKS = (2**20, 2**23, 2**26, 2**30)
"""Bytes that are read at a time, of which pyarrow holds up to 32; the next size is for files with longer rows."""


class CsvTable(TableFile):
    """A table in a CSV file; cells in quotes may have several lines."""

    def __init__(self, path: Path) -> None:
        self.path, self._encoding = path, encoding_of(path)
        if self._encoding == "cp1252":
            self.note = "the file is not in UTF-8 and was read as Windows-1252"
        text = head_of(path, self._encoding, _HEAD)
        first = next((line for line in io.StringIO(text, newline=None) if line.strip()), "")
        if not first:
            raise DataError(f"{path} is empty: there is nothing to learn from")
        lines = io.StringIO(text, newline=None)
        self._n_skipped = sum(1 for _ in takewhile("\n".__eq__, lines))
        told = told_delimiter(first)
        with damaged(path):
            self._delimiter = told or find_delimiter(first)
            found = list(islice(_rows(text, self._delimiter), _LOOKED_AT))
        if told:
            self._n_skipped += 1 + sum(1 for _ in takewhile("\n".__eq__, lines))
            del found[0]
            if not found:
                raise DataError(f"{path} has no rows: there is nothing to learn from")
        if len(found) > 1 and len(text.encode()) > _HEAD - 4:
            found.pop()  # which may end within a cell
        top, below = [cell.strip() for cell in found[0]], found[1:]
        ragged = next((row for row in below if len(row) != len(top)), None)
        if ragged is not None or (len(top) == 1 and not (below and _is_name(top[0]))):
            cells = "" if ragged is None else f", but has lines of {len(top)} and of {len(ragged)} cells"
            raise DataError(
                f"{path} is text, and not a table{cells}. Put documents into a folder, one file each, or into a CSV "
                "file with one quoted document per row below the name of the column"
            )
        self._has_names = _is_header(top, below)
        if self._has_names and not below:
            raise DataError(f"{path} has no rows: there is nothing to learn from")
        self.names = top if self._has_names else [str(i) for i in range(len(top))]
        with damaged(path):
            self.n_rows, self.types, self._block_size = self._survey()

    def batches(self, columns: Sequence[int]) -> Iterator[Any]:
        return self._read({i: self.types[i] for i in columns}, self._block_size)

    def _survey(self) -> tuple[int, list[Any], int]:
        """Return the number of rows, types of all columns, and a block size that suits the longest row."""
        arrow = needed("pyarrow", "reading CSV")
        text = arrow.string()
        for size in _BLOCKS:
            n_rows, types = 0, list[list[Any]]()
            try:
                for batch in self._read(dict.fromkeys(range(len(self.names)), text), size):
                    if not n_rows:
                        types = _possible(batch.slice(0, _LOOKED_AT).columns)
                    types = _narrowed(batch.columns, types)
                    n_rows += batch.num_rows
            except arrow.ArrowInvalid as error:
                if (unequal := unequal_lines(self.path, str(error))) is not None:
                    raise unequal from error
                if "straddl" not in str(error) or size == _BLOCKS[-1]:
                    raise
                continue
            return n_rows, [left[0] if left else text for left in types], size
        raise AssertionError

    def _read(self, types: dict[int, Any], block_size: int) -> Iterator[Any]:
        reader = needed("pyarrow.csv", "reading CSV")
        with open_utf8(self.path, self._encoding) as file:
            yield from reader.open_csv(
                file,
                reader.ReadOptions(
                    column_names=[str(i) for i in range(len(self.names))],
                    skip_rows=self._n_skipped,
                    skip_rows_after_names=int(self._has_names),
                    block_size=block_size,
                ),
                reader.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                reader.ConvertOptions(
                    column_types={str(i): kind for i, kind in types.items()},
                    include_columns=[str(i) for i in types],
                    strings_can_be_null=True,
                ),
            )


def _possible(columns: list[Any]) -> list[list[Any]]:
    """Return the types that columns may have, judged by their first cells: in the order of pyarrow, without text."""
    arrow, compute = needed("pyarrow", "reading CSV"), needed("pyarrow.compute", "reading CSV")
    found = []
    for column in _read_back(columns, None).columns:
        kind = column.type
        plain, zoned = ([arrow.timestamp(unit, zone) for unit in ("s", "ns")] for zone in (None, "UTC"))
        whole, truth, real = arrow.int64(), arrow.bool_(), arrow.float64()
        if kind == arrow.null():
            types = [kind, whole, truth, arrow.date32(), arrow.time32("s"), *plain, *zoned, real]
        elif kind == whole:
            extremes = compute.min_max(column).as_py()
            types = [whole, truth, real] if {*extremes.values()} <= {0, 1} else [whole, real]
        elif kind == arrow.date32():
            types = [kind, *plain]
        elif arrow.types.is_timestamp(kind):
            types = [one for one in (*plain, *zoned) if one.tz == kind.tz and kind.unit in ("s", one.unit)]
        else:
            types = [] if kind == arrow.string() else [kind]
        found.append(types)
    return found


def _narrowed(columns: list[Any], types: list[list[Any]]) -> list[list[Any]]:
    """Return which of the given types all cells of each column have."""
    fitting = {kind: {*_fitting(columns, [i for i, those in enumerate(types) if kind in those], kind)}
               for kind in dict.fromkeys(kind for those in types for kind in those)}  # fmt: skip
    return [[kind for kind in those if i in fitting[kind]] for i, those in enumerate(types)]


def _fitting(columns: list[Any], which: list[int], kind: object) -> list[int]:
    """Return which of some columns have a type: tried together, since they mostly do, and else by halves."""
    if not which or _fit([columns[i] for i in which], kind):
        return which
    half = len(which) // 2
    return _fitting(columns, which[:half], kind) + _fitting(columns, which[half:], kind) if half else []


def _fit(columns: list[Any], kind: object) -> bool:
    """Return whether the cells of some columns all have a type."""
    try:
        _read_back(columns, kind)
    except needed("pyarrow", "reading CSV").ArrowInvalid:
        return False
    return True


def _read_back(columns: list[Any], kind: object) -> Any:
    """Return columns of text as pyarrow reads them from a file, with a type for all of them or the ones it finds."""
    arrow, csv_of_arrow = needed("pyarrow", "reading CSV"), needed("pyarrow.csv", "reading CSV")
    lines, names = arrow.BufferOutputStream(), [str(i) for i in range(len(columns))]
    csv_of_arrow.write_csv(arrow.table(columns, names=names), lines, csv_of_arrow.WriteOptions(include_header=False))
    written = lines.getvalue()
    return csv_of_arrow.read_csv(
        arrow.BufferReader(written),
        csv_of_arrow.ReadOptions(column_names=names, block_size=max(1, written.size)),
        csv_of_arrow.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv_of_arrow.ConvertOptions(column_types={} if kind is None else dict.fromkeys(names, kind)),
    )


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
