"""Tables of any library as columns: values in their own precision, and which of them are missing.

Integers stay integers and time stamps stay ticks of their unit, because floats cannot distinguish large ones.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.types import Array

MISSING_TEXTS = frozenset(
    {"", "?", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "<na>", "-", ".", "#value!", "#div/0!"}
)
"""Texts that stand for a missing value, in lower case and without blanks around them."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    values : ndarray of shape (n_rows,)
        Integers, floats, booleans, datetime64, timedelta64, or objects: str, int, float, bool, datetime64.
    missing : ndarray of bool of shape (n_rows,)
        Mask of missing values.
    """

    name: str
    values: Array
    missing: Array

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Array) -> Column:
        return Column(self.name, self.values[rows], self.missing[rows])

    def followed_by(self, other: Column) -> Column:
        """Return the rows of both; where their types differ, integers and floats stay what they are as objects."""
        mine, others = self.values, other.values
        if mine.dtype.kind != others.dtype.kind:
            mine, others = _objects(self), _objects(other)
        values = np.concatenate([mine, others])
        return Column(self.name, values, np.concatenate([self.missing, other.missing]))


@dataclass(frozen=True)
class Table:
    """The columns of a table.

    Attributes
    ----------
    columns : list of Column
    n_rows : int
    named : bool
        Whether the names come from the table. Those of arrays are x0, x1, ...
    """

    columns: list[Column]
    n_rows: int
    named: bool

    def take(self, rows: Array) -> Table:
        return Table([column.take(rows) for column in self.columns], len(rows), self.named)


def read_table(X: Any) -> Table:
    """Return the columns of a table: pandas, polars, Arrow, NumPy (2-D or structured), or a dict of columns.

    Examples
    --------
    >>> table = read_table({"age": [31, None, 54], "job": ["clerk", "?", "nurse"]})
    >>> [(column.name, column.missing.tolist()) for column in table.columns]
    [('age', [False, True, False]), ('job', [False, True, False])]
    """
    if sparse.issparse(X):
        raise TypeError("Sparse input is not a table: sparse rows are counts already, so pass them to the classifier.")
    library = type(X).__module__.partition(".")[0]
    if library == "pandas" and hasattr(X, "columns"):
        names = list(X.columns)
        table = _table(names, [_of_pandas(X.iloc[:, i], str(name)) for i, name in enumerate(names)], len(X))
    elif library == "polars" and hasattr(X, "get_columns"):
        series = X.get_columns()
        table = _table([one.name for one in series], [_of_polars(one) for one in series], len(X))
    elif library == "pyarrow" and hasattr(X, "column_names"):
        names = list(X.column_names)
        table = _table(names, [_of_arrow(X.column(i), name) for i, name in enumerate(names)], X.num_rows)
    elif isinstance(X, Mapping):
        columns = [_of_values(values, str(name)) for name, values in X.items()]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            listed = ", ".join(f"{column.name!r} has {len(column)}" for column in columns[:10])
            raise ValueError(f"The columns of a table need the same number of rows: {listed}.")
        table = _table(list(X), columns, lengths.pop() if lengths else 0)
    elif isinstance(X, np.ndarray) and X.dtype.names is not None:
        if X.ndim != 1:
            raise ValueError(f"A structured array is a table if it has one dimension; this one has {X.ndim}.")
        names = list(X.dtype.names)
        table = _table(names, [_of_values(X[name], name) for name in names], len(X))
    else:
        return _of_matrix(X)
    return table


def _table(names: Sequence[object], columns: list[Column], n_rows: int) -> Table:
    seen: set[str] = set()
    for name in names:
        if str(name) in seen:
            raise ValueError(f"Two columns are named {str(name)!r}: rename one of them or leave it out.")
        seen.add(str(name))
    return Table(columns, n_rows, named=True)


def _of_matrix(X: object) -> Table:
    if isinstance(X, (str, bytes)) or not (hasattr(X, "__len__") or hasattr(X, "__array__")):
        raise TypeError(f"Expected a table (a data frame, a 2-D array, a dict of columns), got {type(X).__name__}.")
    try:
        matrix = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"The rows of the table do not have the same number of values: {error}") from None
    if matrix.dtype.kind == "U" and not isinstance(X, np.ndarray):
        matrix = np.asarray(X, dtype=object)  # numbers in a list beside strings stay numbers
    if matrix.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {matrix.ndim}D array instead: a table has rows and columns. "
            "Reshape your data: one column is X.reshape(-1, 1), one row is X.reshape(1, -1)."
        )
    if np.iscomplexobj(matrix):
        raise ValueError("Complex data not supported: pass the real and the imaginary part as two columns.")
    columns = [_of_values(matrix[:, i], f"x{i}") for i in range(matrix.shape[1])]
    return Table(columns, matrix.shape[0], named=False)


def _of_pandas(series: Any, name: str) -> Column:
    missing = series.isna().to_numpy(dtype=bool)
    dtype = series.dtype
    if str(dtype) == "category":
        return _of_objects(
            [None if gone else text_of(v) for v, gone in zip(series.tolist(), missing, strict=True)], name
        )
    if getattr(dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return Column(name, series.to_numpy(), missing)
    kind = getattr(dtype, "kind", "O")
    if kind in "biufmM":
        if type(dtype).__module__.startswith("numpy"):
            return _of_values(series.to_numpy(), name)
        filled = series[~missing].to_numpy(dtype=_numpy_type(dtype))
        values = np.zeros(len(series), filled.dtype)
        values[~missing] = filled
        return _of_values(values, name, missing)
    return _of_objects(series.tolist(), name)


def _numpy_type(dtype: Any) -> Any:
    """Return the NumPy type of a type with missing values (Int64, boolean, timestamp[ns][pyarrow])."""
    numpy_dtype = getattr(dtype, "numpy_dtype", None)
    return None if numpy_dtype is None or numpy_dtype.kind == "O" else numpy_dtype


def _of_polars(series: Any) -> Column:
    name, missing = series.name, series.is_null().to_numpy()
    nested = series.dtype.is_nested()
    if nested or str(series.dtype) in ("Object", "Binary"):
        return _of_objects(series.to_list(), name)
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        return _of_values(series.fill_null(0).to_numpy(), name, missing)
    if str(series.dtype) == "Boolean":
        return _of_values(series.fill_null(False).to_numpy(), name, missing)
    if series.dtype.is_temporal() and str(series.dtype) != "Time":
        return _of_values(series.to_numpy(), name, missing)  # missing ones are NaT
    return _of_objects(series.to_list(), name)


def _of_arrow(chunks: Any, name: str) -> Column:
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")

    if pa.types.is_dictionary(chunks.type):
        chunks = chunks.cast(chunks.type.value_type)
    kind, missing = chunks.type, np.asarray(chunks.is_null())
    if pa.types.is_boolean(kind):
        return _of_values(np.asarray(pc.fill_null(chunks, False)), name, missing)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _of_values(np.asarray(pc.fill_null(chunks, pa.scalar(0, kind))), name, missing)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        form = f"{'M' if pa.types.is_timestamp(kind) else 'm'}8[{kind.unit}]"
        ticks = np.asarray(pc.fill_null(chunks.cast(pa.int64()), 0)).astype(np.int64)
        return _of_values(ticks.view(form), name, missing)
    return _of_objects(chunks.to_pylist(), name)


def _of_values(values: object, name: str, missing: Array | None = None) -> Column:
    """Take an array or a list, whose missing values may be marked in the values themselves."""
    if not isinstance(values, np.ndarray):
        to_numpy: Callable[[], Array] | None = getattr(values, "to_numpy", None)
        if to_numpy is not None and not isinstance(values, (list, tuple)):
            return _of_series(values, name)
        if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
            raise TypeError(f"Column {name!r} is a {type(values).__name__}: a list or an array of values is needed.")
        return _of_objects(list(values), name)
    if values.ndim != 1:
        raise ValueError(f"Column {name!r} has {values.ndim} dimensions: encode vectors with VectorEncoder.")
    if np.ma.isMaskedArray(values):
        hidden = np.ma.getmaskarray(values)
        missing = hidden if missing is None else missing | hidden
        values = np.asarray(values.filled() if values.dtype.kind != "O" else values.filled(None))
    if values.dtype.kind in "OSUTV":
        given = values.tolist()
        if missing is not None:
            given = [None if gone else value for value, gone in zip(given, missing, strict=True)]
        return _of_objects(given, name)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} needs its two parts as two columns.")
    if values.dtype.kind == "f":
        absent = np.isnan(values)
        values = values.astype(np.float64, copy=False)
    elif values.dtype.kind in "mM":
        absent = np.isnat(values)
        if np.datetime_data(values.dtype)[0] == "generic":
            values = values.astype(f"{values.dtype.kind}8[s]")
    else:
        absent = np.zeros(len(values), bool)
    return Column(name, values, absent if missing is None else absent | missing)


def _of_series(values: Any, name: str) -> Column:
    library = type(values).__module__.partition(".")[0]
    if library == "pandas":
        return _of_pandas(values if hasattr(values, "iloc") else values.to_series(), name)  # or an index
    if library == "polars":
        return _of_polars(values.alias(name))
    if library == "pyarrow":
        return _of_arrow(values, name)
    return _of_values(np.asarray(values), name)


def _of_objects(values: list[Any], name: str) -> Column:
    """Take Python objects of any type; columns of one type become arrays of it."""
    tidy = [_tidy(value, name, row) for row, value in enumerate(values)]
    missing = np.array([value is None for value in tidy], dtype=bool)
    present = [value for value in tidy if value is not None]
    types = {type(value) for value in present}
    out: Array
    if types <= {bool} and types:
        out = np.array([bool(value) for value in tidy])
    elif types == {int} and all(-(2**63) <= value < 2**63 for value in present):
        out = np.array([value or 0 for value in tidy], dtype=np.int64)
    elif types <= {int, float} and types:
        out = np.array([math.nan if value is None else float(value) for value in tidy])
    elif types in ({np.datetime64}, {np.timedelta64}):
        form = "M8" if types == {np.datetime64} else "m8"
        out = np.array([np.datetime64("NaT") if v is None else v for v in tidy] if form == "M8" else
                       [np.timedelta64("NaT") if v is None else v for v in tidy])  # fmt: skip
    else:
        out = np.empty(len(tidy), dtype=object)
        out[:] = tidy
    return Column(name, out, missing)


def _tidy(value: Any, name: str, row: int) -> Any:
    """Return a value as str, bool, int, float, datetime64 or timedelta64; None where it is missing."""
    if value is None:
        return None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return None if value.strip().lower() in MISSING_TEXTS else str(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return None if math.isnan(value) else float(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return None if np.isnat(value) else value
    if isinstance(value, (dt.datetime, dt.date, dt.timedelta)):
        return _time(value)
    if isinstance(value, dt.time):
        return np.timedelta64(
            ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond, "us"
        )
    if type(value).__name__ in ("NAType", "NaTType", "NullType"):
        return None
    if isinstance(value, (Sequence, Mapping, set, np.ndarray)) or np.ndim(value):
        raise TypeError(
            f"argument must be a string or a number: column {name!r} holds a {type(value).__name__} (row {row}). "
            "Leave the column out, or encode vectors with VectorEncoder."
        )
    return str(value)


def _time(value: Any) -> Any:
    if value != value:  # NaT of pandas is an instance of datetime
        return None
    if isinstance(value, dt.timedelta):
        return np.timedelta64(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if hasattr(value, "to_datetime64"):
        return value.to_datetime64()
    return np.datetime64(value)


def text_of(value: Any) -> str:
    """Return the name of a category: 3 and 3.0 are the same, and so are "a" and " a"."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _objects(column: Column) -> Array:
    out = np.empty(len(column), dtype=object)
    if column.values.dtype.kind in "mM":
        out[:] = list(column.values)  # scalars of NumPy, which know their unit
    else:
        out[:] = column.values.tolist()
    out[column.missing] = None
    return out
