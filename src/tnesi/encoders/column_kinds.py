"""Recognition of the type of a column: numbers, times, categories, text, or no information."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from tnesi.encoders.columns import Column, text_of
from tnesi.encoders.written_values import NUMBER_STYLES, style_of, time_styles, written_number, written_time
from tnesi.types import Array

Kind = Literal["number", "time", "category", "text", "drop"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_ID_NAME = re.compile(r"(^|[\W_])(id|ids|uuid|guid|index|idx|key|row|rownum|rowid|nr|no)$|[a-z]I[Dd]$", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_ISO_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?)?Z?")
_SHARE_OF_KIND = 0.9
"""Minimum share of numbers (or times) among the texts of a column of numbers (or times)."""
_ENOUGH_ROWS = 20
"""Minimum number of rows for distinct values to indicate an identifier."""


@dataclass(frozen=True)
class Recognized:
    """A column and what it is.

    Attributes
    ----------
    kind : Kind
    column : Column
        The values as the kind needs them: numbers, time stamps, or objects of str.
    message : str
        A message for the user, or empty.
    style : str
        How numbers and times are written (see `tnesi.encoders.written_values`); empty for plain numbers and ISO 8601.
    """

    kind: Kind
    column: Column
    message: str = ""
    style: str = ""


def recognize(column: Column, kind: Kind | None = None) -> Recognized:
    """Recognize the type of a column, or convert it to `kind`.

    Examples
    --------
    >>> from tnesi.encoders.columns import read_table
    >>> table = read_table({"n": ["1", "2", "?"], "job": ["clerk", "nurse", "clerk"], "same": [7, 7, 7]})
    >>> [recognize(column).kind for column in table.columns]
    ['number', 'category', 'drop']
    """
    name = column.name
    if kind == "drop":
        return Recognized("drop", column)
    if kind in ("number", "time"):
        found = _numbers_in(column) if kind == "number" else _times_in(column)
        if found.column.missing.all():
            raise ValueError(f"No value of column {name!r} is a {kind}: leave it out of `kinds`.")
        return found
    if kind is not None:
        return Recognized(kind, as_texts(column))
    if column.missing.all():
        return Recognized("drop", column, f"Column {name!r} has no values and is left out.")
    if column.values.dtype.kind == "O":
        found = _recognize_objects(column)
    elif column.values.dtype.kind == "b":
        found = Recognized("category", as_texts(column))
    else:
        found = Recognized("time" if column.values.dtype.kind in "mM" else "number", column)
    return _without_information(found)


def _without_information(found: Recognized) -> Recognized:
    """Drop a column that is constant or an identifier."""
    column, name = found.column, found.column.name
    present = column.values[~column.missing]
    distinct = len(set(present.tolist())) if present.dtype.kind == "O" else len(np.unique(present))
    if distinct == 1 and not column.missing.any():
        return Recognized("drop", column, f"Column {name!r} has the same value in every row and is left out.")
    n = len(present)
    named_id = bool(_ID_NAME.search(name))
    almost_all = n >= _ENOUGH_ROWS and distinct >= 0.95 * n
    is_id = False
    if found.kind == "number" and almost_all:
        whole = present.dtype.kind in "iu" or bool(np.all(np.mod(present[np.isfinite(present)], 1) == 0))
        consecutive = whole and distinct == n and float(present.max()) - float(present.min()) == n - 1
        is_id = whole and (named_id or consecutive)
    elif found.kind == "category" and n >= _ENOUGH_ROWS:
        is_id = distinct >= 0.9 * n or (named_id and distinct >= 0.5 * n)
    if is_id:
        reason = f"Column {name!r} looks like an identifier ({distinct} different values in {n} rows) and is left out."
        return Recognized("drop", column, reason)
    return found


def _recognize_objects(column: Column) -> Recognized:
    present = column.values[~column.missing]
    numbers = _numbers_in(column)
    n_numbers = int((~numbers.column.missing).sum())
    codes = sum(isinstance(v, str) and re.fullmatch(r"0\d+", v.strip()) is not None for v in present)
    if n_numbers >= _SHARE_OF_KIND * len(present) and not codes:
        return numbers
    times = _times_in(column)
    if int((~times.column.missing).sum()) >= _SHARE_OF_KIND * len(present):
        return times
    texts = as_texts(column)
    values = texts.values[~texts.missing].tolist()
    message = ""
    if n_numbers and n_numbers < len(present) and not codes:
        message = f"Column {column.name!r} mixes numbers and texts; each different value is a category."
    return Recognized("text" if _is_free_text(values) else "category", texts, message)


def _numbers_in(column: Column) -> Recognized:
    """Return the numbers of a column: plain ones, or written in a style in which more values are numbers."""
    numbers, message = as_numbers(column)
    present = column.values[~column.missing]
    if present.dtype.kind == "O" and int((~numbers.missing).sum()) < len(present):
        style = style_of(present, NUMBER_STYLES, written_number)
        written, about = as_numbers(column, style)
        if written.missing.sum() < numbers.missing.sum():
            return Recognized("number", written, about, style)
    return Recognized("number", numbers, message)


def _times_in(column: Column) -> Recognized:
    """Return the times of a column: in ISO 8601, or written in a style in which more values are times."""
    times, message = as_times(column)
    present = column.values[~column.missing]
    if present.dtype.kind == "O" and int((~times.missing).sum()) < len(present):
        style = style_of(present, time_styles(present), written_time)
        written, about = as_times(column, style)
        if written.missing.sum() < times.missing.sum():
            return Recognized("time", written, about, style)
    return Recognized("time", times, message)


def _is_free_text(values: list[str]) -> bool:
    """Whether the values are sentences: long, of several words or without spaces, and seldom repeated."""
    long = sum(len(value) >= 20 and (value.count(" ") >= 3 or not value.isascii()) for value in values)
    return long >= 0.5 * len(values) and len(set(values)) >= 0.5 * len(values) and len(values) > 1


def as_numbers(column: Column, style: str = "") -> tuple[Column, str]:
    """Return the numbers of a column, and what became of the other values: they count as missing."""
    if column.values.dtype.kind in "iuf":
        return column, ""
    if column.values.dtype.kind == "b":
        return Column(column.name, column.values.astype(np.int64), column.missing), ""
    if column.values.dtype.kind in "mM":
        return Column(column.name, column.values, np.ones(len(column), bool)), _others(
            column, column.missing, "numbers"
        )
    values = [None if gone else _number(v, style) for v, gone in zip(column.values, column.missing, strict=True)]
    missing = np.array([value is None for value in values], dtype=bool)
    whole = all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values if value is not None)
    dtype = np.int64 if whole else np.float64
    out = np.array([0 if value is None else value for value in values], dtype=dtype)
    return Column(column.name, out, missing), _others(column, missing, "numbers")


def _number(value: Any, style: str) -> int | float | None:
    if isinstance(value, (bool, int, float)):
        return value
    if not isinstance(value, str):
        return None
    if style:
        return written_number(value, style)
    text = value.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def as_times(column: Column, style: str = "") -> tuple[Column, str]:
    """Return the time stamps of a column, and what became of the other values.

    Texts are in ISO 8601, or also as people write them if there is a `style`.
    """
    if column.values.dtype.kind in "mM":
        return column, ""
    out = np.full(len(column), np.datetime64("NaT"), dtype="M8[us]")
    if column.values.dtype.kind == "O":
        parsed = [None if gone else _stamp(v, style) for v, gone in zip(column.values, column.missing, strict=True)]
        finest = "ns" if any(v is not None and np.datetime_data(v.dtype)[0] == "ns" for v in parsed) else "us"
        out = out.astype(f"M8[{finest}]")
        for row, value in enumerate(parsed):
            if value is not None:
                out[row] = value
    missing = np.isnat(out)
    return Column(column.name, out, missing), _others(column, missing, "times")


def _stamp(value: Any, style: str) -> np.datetime64 | None:
    if isinstance(value, np.datetime64):
        return value
    if not isinstance(value, str):
        return None
    if not _ISO_TIME.fullmatch(value.strip()):
        return written_time(value, style) if style else None
    try:
        return np.datetime64(value.strip().rstrip("Z").replace(",", "."))
    except ValueError:
        return None


def as_texts(column: Column) -> Column:
    """Return the values as texts without blanks around them; 3 and 3.0 are the same."""
    out = np.empty(len(column), dtype=object)
    out[:] = [
        "" if gone else text_of(value)
        for value, gone in zip(column.values.tolist() if column.values.dtype.kind not in "mM" else column.values,
                               column.missing, strict=True)
    ]  # fmt: skip
    return Column(column.name, out, column.missing)


def _others(column: Column, missing: Array, what: str) -> str:
    rows = np.flatnonzero(missing & ~column.missing)
    if not len(rows):
        return ""
    first = column.values[rows[0]]
    count = "one value that is" if len(rows) == 1 else f"{len(rows)} values that are"
    return (
        f"Column {column.name!r} has {count} not {what} (first: row {rows[0]}, {str(first)[:40]!r}) "
        "and counted as missing."
    )


def most_frequent(values: list[str], at_most: int, min_count: int) -> list[str]:
    """Return the values that occur often enough, in alphabetical order."""
    counts = Counter(values)
    often = sorted((value for value, count in counts.items() if count >= min_count), key=lambda v: (-counts[v], v))
    return sorted(often[:at_most])
