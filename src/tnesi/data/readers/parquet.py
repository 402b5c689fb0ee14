"""Numeric Parquet files, streamed so that they may exceed memory. Values keep the data type of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.column_names import find_label_column
from tnesi.data.label_values import LABEL_BYTES, tidy_labels
from tnesi.data.optional import needed
from tnesi.data.readers.tables import Columns, NotNumbersError, TableSource
from tnesi.data.source import Data, DataError, check_room, check_shape, damaged
from tnesi.types import Array

_MOST_PER_BYTE = 10**5
"""Largest plausible number of values per byte; repeated values compress well."""

_BATCH_VALUES = 2**22


class ParquetSource(TableSource):
    """Rows of a Parquet file."""

    def __init__(self, path: Path, label_column: str | int | None = None) -> None:
        with open_parquet(path) as file:
            schema = file.schema_arrow
            super().__init__(path, Columns(schema.names, label_column, path))
            self.n_rows, _ = check_shape(file.metadata.num_rows, self.n_features, path)
            wrong = [i for i in self.columns.features if not _is_number(schema.field(i).type)]
            if wrong:
                raise self.columns.not_numbers(wrong)
            types = [schema.field(i).type for i in self.columns.features]
            self.dtype = np.result_type(*map(_numpy_type, types))
        name = next(self._incomplete(), None)
        if name is not None:
            raise NotNumbersError(
                "{path}: column {name!r} has missing values",
                advice="fill them in, or remove the column or the rows",
                path=path,
                name=name,
            )

    def _incomplete(self) -> Iterator[str]:
        """Yield the names of columns with missing values, which are known once they are read."""
        with open_parquet(self.path) as file:
            size = max(1, _BATCH_VALUES // self.n_features)
            for batch in file.iter_batches(size, columns=self.feature_names):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    if column.null_count or (
                        _numpy_type(column.type).kind == "f" and np.isnan(_to_numpy(column)).any()
                    ):
                        yield str(name)

    def batches(self, size: int) -> Iterator[list[Array]]:
        with open_parquet(self.path) as file:
            size = max(1, min(size, _BATCH_VALUES // self.n_features))
            for batch in file.iter_batches(size, columns=self.feature_names):
                yield [_to_numpy(column) for column in batch.columns]


def read_parquet(path: Path, label_column: str | int | None = None) -> Data:
    """Open a Parquet file as data."""
    rows = ParquetSource(path, label_column)
    labels = None
    if rows.columns.label is not None:
        labels = tidy_labels(read_column(path, rows.columns.label), rows.n_rows, path)
    return Data(rows, labels, name=path.name, note=rows.columns.note)


def read_column(path: Path, column: int | str) -> Array:
    """Read one column of any type, by number or name."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        number = find_label_column(names, column, path)
        check_room(file.metadata.num_rows * LABEL_BYTES, f"a column of {file.metadata.num_rows} rows")
        values: list[Any] = []
        for batch in file.iter_batches(columns=[names[number]] if number is not None else []):
            values += batch.column(0).to_pylist()
    out = np.empty(len(values), object)
    out[:] = values
    return out


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file after checking its metadata; errors in the block become `DataError`."""
    parquet = needed("pyarrow.parquet", "reading Parquet")
    limits = {"thrift_string_size_limit": 2**26, "thrift_container_size_limit": 2**22}
    with damaged(path), parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16, **limits) as file:
        _check(file, path)
        yield file


def _check(file: Any, path: Path) -> None:
    # Do not inspect row groups or columns: pyarrow aborts the process if their metadata is damaged, while reading them
    # raises an error.
    names, n_rows, there = file.schema_arrow.names, file.metadata.num_rows, path.stat().st_size
    if file.metadata.num_columns < len(names) or len(set(names)) < len(names):
        raise DataError("{path} has several columns of the same name", advice="rename them", path=path)
    if n_rows * len(names) > there * _MOST_PER_BYTE:
        raise DataError(
            "{path}: {n_rows} rows in {there} bytes are not plausible",
            advice="save it again",
            path=path,
            n_rows=n_rows,
            there=there,
        )


def _is_number(arrow_type: object) -> bool:
    types = needed("pyarrow.types", "reading Parquet")
    known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_known(arrow_type) for is_known in known)


def _numpy_type(arrow_type: Any) -> np.dtype[Any]:
    decimal = needed("pyarrow.types", "reading Parquet").is_decimal(arrow_type)
    return np.dtype(np.float64) if decimal else np.dtype(arrow_type.to_pandas_dtype())


def _to_numpy(column: Any) -> Array:
    if column.null_count or _numpy_type(column.type).kind == "f":
        column = column.cast("float64")  # missing values become NaN, decimals become floats
    return np.asarray(column.to_numpy(zero_copy_only=False))
