"""Tables: what CSV and Parquet files have in common, and data frames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.column_names import INDEX_NAMES, find_label_column
from tnesi.data.label_values import tidy_labels
from tnesi.data.source import (
    BLOCK_ROWS,
    ArraySource,
    Data,
    DataError,
    Source,
    damaged,
    regroup,
    rows_at_a_time,
)
from tnesi.types import Array

MOST_COLUMNS = 200_000


class NotNumbersError(DataError):
    """A table that is not one of finite numbers."""


class Columns:
    """Which columns of a table are features and which one has the labels.

    Attributes
    ----------
    features : list of int
    label : int or None
    note : str
        What was decided without being asked for.
    """

    def __init__(self, names: Sequence[str], label_column: str | int | None, where: str | Path) -> None:
        if len(names) > MOST_COLUMNS:
            raise DataError(f"{where} has {len(names)} columns, more than {MOST_COLUMNS}: use .npy or a sparse matrix")
        self.names, self.where = names, where
        self.label = find_label_column(names, label_column, where)
        index = [i for i, name in enumerate(names) if name in INDEX_NAMES and i != self.label]
        self.features = [i for i in range(len(names)) if i != self.label and i not in index]
        if not self.features:
            raise DataError(f"{where} has no columns but the labels: columns of numbers are needed")
        notes = [f"the index column {names[i]!r} left out" for i in index]
        if self.label is not None and label_column is None:
            notes.append(f"labels from the column {names[self.label]!r}")
        self.note = "; ".join(notes)

    @property
    def feature_names(self) -> list[str]:
        return [self.names[i] for i in self.features]

    def not_numbers(self, columns: Sequence[int]) -> DataError:
        """Return the error for columns that cannot be features."""
        names = ", ".join(repr(self.names[i]) for i in columns[:10]) + (", ..." if len(columns) > 10 else "")
        return NotNumbersError(
            f"{self.where}: the columns {names} are not numbers. If one has the labels, name it with label_column; "
            "leave out the others or encode them as numbers"
        )


class TableSource(Source):
    """Rows of a table that is read in batches of columns."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.columns = path, columns
        self.n_features = len(columns.features)
        self.feature_names: list[str] | None = columns.feature_names

    @abstractmethod
    def batches(self, size: int) -> Iterator[list[Array]]:
        """Yield the columns of features, as long as they come, in batches of about `size` rows."""

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        size = rows_at_a_time(size, self.n_features, self.dtype)
        with damaged(self.path):
            yield from regroup(self._counted(size), size)

    def _counted(self, size: int) -> Iterator[Array]:
        at = 0
        for batch in self.batches(size):
            yield to_rows(batch, at, self.dtype, self.columns)
            at += len(batch[0])
        if at != self.n_rows:
            raise DataError(f"{self.path} has {at} rows now and had {self.n_rows}: open it again")


def to_rows(batch: list[Array], first_row: int, dtype: np.dtype[Any], columns: Columns) -> Array:
    """Return a batch of columns as rows of `dtype`; what is missing or does not fit is an error that says where."""
    given = np.stack(batch)
    if not np.isfinite(given).all():
        column, row = np.argwhere(~np.isfinite(given))[0]
        raise NotNumbersError(
            f"{columns.where}: row {first_row + row} (the first is 0) has no finite number in column "
            f"{columns.feature_names[column]!r}: fill it in, or leave out the row or the column"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        rows = given.astype(dtype, copy=False)
    if not np.array_equal(rows, given):
        column = np.argwhere(rows != given)[0][0]
        raise DataError(
            f"{columns.where}: column {columns.feature_names[column]!r} has values that it did not announce"
        )
    return np.ascontiguousarray(rows.T)


def read_frame(frame: Any, label_column: str | int | None = None) -> Data:
    """Take a data frame (pandas, polars or alike) of numbers as data.

    Examples
    --------
    >>> import pandas as pd
    >>> data = read_frame(pd.DataFrame({"a": [1, 2], "class": ["cat", "dog"]}))
    >>> data.rows.feature_names, data.y.tolist(), data.note
    (['a'], ['cat', 'dog'], "labels from the column 'class'")
    """
    keys = list(frame.columns)
    columns = Columns([str(key) for key in keys], label_column, "the data frame")
    values = [np.asarray(column_of(frame, i)) for i in columns.features]
    wrong = [i for i, v in zip(columns.features, values, strict=True) if v.dtype.kind not in "buif" or v.ndim != 1]
    if wrong:
        raise columns.not_numbers(wrong)
    rows = to_rows(values, 0, np.result_type(*values), columns) if len(frame) else np.empty((0, len(values)))
    labels = frame_labels(frame, columns)
    return Data(ArraySource(rows, feature_names=columns.feature_names), labels, name="data frame", note=columns.note)


def frame_labels(frame: Any, columns: Columns) -> Array | None:
    """Return the labels in a data frame."""
    if columns.label is None:
        return None
    return tidy_labels(np.asarray(column_of(frame, columns.label)), len(frame), "the data frame")


def column_of(frame: Any, number: int) -> Any:
    """Return a column by its place, since names may occur twice."""
    return frame.iloc[:, number] if hasattr(frame, "iloc") else frame[list(frame.columns)[number]]
