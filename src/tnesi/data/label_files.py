"""Read labels from a separate file.

A text file has one label per line (empty for unlabeled rows), or two columns ``row,label`` for some of the rows
(counted from 0), with or without a header, such as the output of ``tnesi predict``. The labels can also be an array
(``.npy``, ``.npz``, IDX) or a Parquet column. Labels escaped for spreadsheets (``'=x``) are restored; see
`tnesi.data.formulas`.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from tnesi.data.column_names import LABEL_NAMES, find_label_column
from tnesi.data.formulas import unescape_formulas
from tnesi.data.label_values import parse_labels, tidy_labels
from tnesi.data.readers.arrays import map_npy
from tnesi.data.readers.csv_files import find_delimiter, is_number
from tnesi.data.readers.idx import read_idx
from tnesi.data.readers.npz import array_names, read_array
from tnesi.data.readers.parquet import open_parquet, read_column
from tnesi.data.recognize import open_plain, recognize
from tnesi.data.source import DataError, damaged
from tnesi.types import Array

_ROW_NAMES = ("row", "index")
_LONGEST_LINE = 2**16


def read_labels(path: str | Path, n_rows: int) -> Array:
    r"""Read the labels of `n_rows` rows: integers or strings, None for unlabeled rows.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("row,label\n0,cat\n2,dog\n")
    >>> read_labels(path, 4)
    array(['cat', None, 'dog', None], dtype=object)
    """
    path = Path(path)
    if path.is_dir():
        raise DataError("{path} is a folder", advice="pass a file with labels", parameter="labels", path=path)
    kind = recognize(path)
    if kind in ("text", "json lines"):  # a label may start with a bracket
        return _read_text(path, n_rows)
    if kind == "parquet":
        return _read_parquet(path, n_rows)
    if kind == "npy":
        return tidy_labels(map_npy(path), n_rows, path)
    if kind == "idx":
        return tidy_labels(read_idx(path), n_rows, path)
    if kind == "npz":
        with damaged(path), zipfile.ZipFile(path) as archive:
            names = array_names(archive)
            found = next((n for n in names if n.lower() in LABEL_NAMES), names[0] if len(names) == 1 else None)
            if found is None:
                raise DataError(f"{path} has the arrays {', '.join(names[:10])}", advice="name the array of labels y")
            return tidy_labels(read_array(archive, found), n_rows, path)
    raise DataError(f"{path} is not a label file", advice="use a text, CSV, .npy, .npz, IDX or Parquet file")


def _read_text(path: Path, n_rows: int) -> Array:
    with damaged(path), open_plain(path) as binary, io.TextIOWrapper(binary, "utf-8-sig", newline="") as file:
        head = file.read(_LONGEST_LINE).splitlines()
        file.seek(0)
        delimiter = find_delimiter(next((line for line in head if line.strip()), ""))
        most = 2 * n_rows + 10  # a line may be empty
        table = list(islice(csv.reader(_lines(file, path), delimiter=delimiter), most + 1))
    if len(table) > most:
        raise DataError(f"{path} has more labels than the data has rows ({n_rows})", advice="pass one label per row")
    if not table:  # for example, part of a byte order mark
        raise DataError(f"{path} has no labels", advice="write one per line")
    width = max(map(len, table))
    if width < 2:
        return _one_per_line([row[0].strip() if row else "" for row in table], n_rows, path)
    table = [row for row in table if row]
    row_column, label_column = 0, 1
    if not is_number(table[0][0]):
        names = [name.strip().lower() for name in table.pop(0)]
        row_column = next((i for i, name in enumerate(names) if name in _ROW_NAMES), 0)
        label_column = next((i for i, name in enumerate(names) if name in LABEL_NAMES), 1 if row_column == 0 else 0)
    elif width > 2:
        raise DataError(
            f"{path} has {width} columns", advice="name the two that hold row numbers and labels 'row' and 'label'"
        )
    if any(len(row) != width for row in table):
        raise DataError(f"{path}: not all lines have {width} columns", advice="correct the file")
    rows = [row[row_column].strip() for row in table]
    wrong = next((row for row in rows if not re.fullmatch("[0-9]{1,15}", row)), None)
    if wrong is not None:
        raise DataError(f"{path}: {wrong[:40]!r} is not a row number", advice="write 'row,label' on each line")
    texts = unescape_formulas([row[label_column].strip() for row in table])
    return _place([int(row) for row in rows], parse_labels(texts, path), n_rows, path)


def _lines(file: IO[str], path: Path) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise DataError(f"{path} has a line of more than {_LONGEST_LINE} characters")
        yield line


def _one_per_line(texts: list[str], n_rows: int, path: Path) -> Array:
    named = texts[0].lower() in LABEL_NAMES and texts[0] not in texts[1:]  # 'y' may be a label, of 'y' and 'n'
    texts = texts[named:]
    while len(texts) > n_rows and not texts[-1]:
        texts.pop()
    if len(texts) != n_rows:
        has = f"{len(texts)}" if len(texts) < n_rows else "more"
        raise DataError(
            f"{path} has {has} labels for {n_rows} rows", advice="write one per line, or 'row,label' for some rows"
        )
    return parse_labels(unescape_formulas(texts), path)


def _read_parquet(path: Path, n_rows: int) -> Array:
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        n_labels = file.metadata.num_rows
    if n_labels > n_rows:
        raise DataError(f"{path} has {n_labels} labels for {n_rows} rows", advice="pass one label per row")
    label = 0 if len(names) == 1 else find_label_column(names, None, path)
    if label is None:
        raise DataError(f"{path} has the columns {', '.join(names[:10])}", advice="name the label column 'label'")
    values = tidy_labels(read_column(path, label), n_labels, path)
    row_name = next((name for name in names if name.lower() in _ROW_NAMES), None)
    if row_name is None:
        return tidy_labels(values, n_rows, path)
    rows = tidy_labels(read_column(path, row_name), n_labels, path)
    if rows.dtype.kind != "i":
        raise DataError(f"{path}: column {row_name!r} has values that are not row numbers")
    return _place(rows.tolist(), values, n_rows, path)


def _place(rows: Sequence[int], labels: Array, n_rows: int, path: Path) -> Array:
    """Return labels for all rows, given those of some."""
    placed = np.full(n_rows, None, object)
    seen: set[int] = set()
    for row, label in zip(rows, labels.tolist(), strict=True):
        if not 0 <= row < n_rows:
            raise DataError(f"{path}: there is no row {row}", advice=f"use row numbers from 0 to {n_rows - 1}", row=row)
        if row in seen:
            raise DataError(f"{path} has row {row} twice", advice="remove one of them", row=row)
        seen.add(row)
        placed[row] = label
    return tidy_labels(placed, n_rows, path)
