"""Numeric tables: common parts of CSV and Parquet files, and data frames."""

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
    """A table that does not consist of finite numbers."""


class Columns:
    """Feature columns and label column of a table.

    Attributes
    ----------
    features : list of int
    label : int or None
    note : str
        Choices made without being requested.
    """

    def __init__(self, names: Sequence[str], label_column: str | int | None, where: str | Path) -> None:
        if len(names) > MOST_COLUMNS:
            raise DataError(
                "{where} has {n} columns, more than {most_columns}",
                advice="use .npy or a sparse matrix",
                where=where,
                n=len(names),
                most_columns=MOST_COLUMNS,
            )
        self.names, self.where = names, where
        self.label = find_label_column(names, label_column, where)
        index = [i for i, name in enumerate(names) if name in INDEX_NAMES and i != self.label]
        self.features = [i for i in range(len(names)) if i != self.label and i not in index]
        if not self.features:
            raise DataError("{where} has no columns except the labels", advice="add numeric columns", where=where)
        notes = [f"index column {names[i]!r} omitted" for i in index]
        if self.label is not None and label_column is None:
            notes.append(f"labels from column {names[self.label]!r}")
        self.note = "; ".join(notes)

    @property
    def feature_names(self) -> list[str]:
        return [self.names[i] for i in self.features]

    def not_numbers(self, columns: Sequence[int]) -> DataError:
        """Return the error for columns that cannot be features."""
        names = ", ".join(repr(self.names[i]) for i in columns[:10]) + (", ..." if len(columns) > 10 else "")
        return NotNumbersError(
            "{where}: columns {names} are not numeric",
            advice="remove or encode them, or pass {label_column} if one holds the labels",
            where=self.where,
            names=names,
        )


class TableSource(Source):
    """Rows of a table that is read in column batches."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.columns = path, columns
        self.n_features = len(columns.features)
        self.feature_names: list[str] | None = columns.feature_names

    @abstractmethod
    def batches(self, size: int) -> Iterator[list[Array]]:
        """Yield the feature columns in batches of about `size` rows."""

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
            raise DataError(
                "{path} had {n_rows} rows and now has {at}",
                advice="open it again",
                path=self.path,
                at=at,
                n_rows=self.n_rows,
            )


def to_rows(batch: list[Array], first_row: int, dtype: np.dtype[Any], columns: Columns) -> Array:
    """Return a batch of columns as rows of `dtype`; the error for missing or unsuitable values says where they are."""
    given = np.stack(batch)
    if not np.isfinite(given).all():
        column, row = np.argwhere(~np.isfinite(given))[0]
        raise NotNumbersError(
            "{where}: row {number} (counted from 0) has no finite number in column {column!r}",
            advice="fill it in, or remove the row or the column",
            row=int(first_row + row),
            where=columns.where,
            number=first_row + row,
            column=columns.feature_names[column],
        )
    with np.errstate(invalid="ignore", over="ignore"):
        rows = given.astype(dtype, copy=False)
    if not np.array_equal(rows, given):
        column = np.argwhere(rows != given)[0][0]
        raise DataError(
            "{where}: column {name!r} has changed",
            advice="open it again",
            where=columns.where,
            name=columns.feature_names[column],
        )
    return np.ascontiguousarray(rows.T)


def read_frame(frame: Any, label_column: str | int | None = None) -> Data:
    """Return a data frame of numbers (pandas, polars or similar) as data.

    Examples
    --------
    >>> import pandas as pd
    >>> data = read_frame(pd.DataFrame({"a": [1, 2], "class": ["cat", "dog"]}))
    >>> data.rows.feature_names, data.y.tolist(), data.note
    (['a'], ['cat', 'dog'], "labels from column 'class'")
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
