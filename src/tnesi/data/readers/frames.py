"""Data frames whose columns are not all numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tnesi.data.readers.mixed import TableSource, are_documents, distinct
from tnesi.data.readers.tables import Columns, NotNumbersError, column_of, frame_labels, read_frame
from tnesi.data.readers.vectors import is_vector, stacked_vectors
from tnesi.data.source import BLOCK_ROWS, ArraySource, Data, DataError, Source, check_shape
from tnesi.types import Array


class FrameSource(TableSource):
    """Rows of a data frame (pandas, polars).

    Attributes
    ----------
    frame : data frame
        Its columns are features.
    reason : str
        Why they are not numbers.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, frame: Any, reason: str) -> None:
        self.frame, self.reason = frame, reason
        self.n_rows, self.n_features = frame.shape
        self.feature_names = [str(name) for name in frame.columns]
        if self.n_features == 1 and are_documents(column_of(frame, 0)[:1000].to_list()):
            self.kind = "documents"

    def items(self, size: int = BLOCK_ROWS) -> Iterator[Any]:
        for start in range(0, self.n_rows, size):
            rows = slice(start, start + size)
            part = self.frame.iloc[rows] if hasattr(self.frame, "iloc") else self.frame[rows]
            yield column_of(part, 0).to_list() if self.kind == "documents" else part

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        raise DataError(f"{self.reason}; or encode the columns, for example with tnesi.encoders.TableEncoder")


def read_any_frame(frame: Any, label_column: str | int | None = None) -> Data:
    """Take a data frame with columns of any kind as data.

    Examples
    --------
    >>> import pandas as pd
    >>> data = read_any_frame(pd.DataFrame({"age": [31, 54], "job": ["clerk", "nurse"]}))
    >>> data.rows.kind
    'table'
    """
    try:
        return read_frame(frame, label_column)
    except NotNumbersError as error:
        reason = str(error)
        columns = Columns([str(key) for key in frame.columns], label_column, "the data frame")
    check_shape(len(frame), len(columns.features), "the data frame")
    labels = frame_labels(frame, columns)
    given = [column_of(frame, i) for i in columns.features]
    vectors = [i for i, values in zip(columns.features, given, strict=True) if is_vector(values[:1].to_list()[0])]
    if len(vectors) == 1:
        name = columns.names[vectors[0]]
        rows: Source = ArraySource(stacked_vectors(column_of(frame, vectors[0]).to_list(), name, "the data frame"))
        notes = [columns.note, f"vectors from the column {name!r}"]
        return Data(rows, labels, name="data frame", note="; ".join(note for note in notes if note))
    if hasattr(frame, "iloc"):
        part = frame.iloc[:, columns.features].set_axis(distinct(columns.feature_names), axis=1)
    else:
        part = frame[columns.feature_names]
    return Data(FrameSource(part, reason), labels, name="data frame", note=columns.note)
