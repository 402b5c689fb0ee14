"""Convert labels to integers or strings, with None for unlabeled rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.source import DataError, damaged
from tnesi.types import Array

LABEL_BYTES = 100
"""Approximate size of a label while labels are read."""
MISSING = ("", "nan", "NaN", "NA", "N/A", "NULL", "null", "None")
"""Texts that mean a missing label."""
_LONGEST = 200
INTEGER = re.compile(r"(-?(?:0|[1-9]\d{0,17}))(?:\.0+)?")
"""Text of a whole number in a table."""


def tidy_labels(values: Array, n_rows: int, where: str | Path) -> Array:
    """Return one label per row; labels other than integers become strings.

    None, NaN and empty strings are missing labels. If there are any, the result is an object array with None for them.

    Examples
    --------
    >>> tidy_labels(np.array([3.0, np.nan]), 2, "labels.npy")
    array([3, None], dtype=object)
    >>> tidy_labels(np.array(["cat", ""]), 2, "labels.npy")
    array(['cat', None], dtype=object)
    """
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or len(values) != n_rows:
        shape = " x ".join(map(str, values.shape))
        raise DataError(f"{where}: labels of shape {shape} for {n_rows} rows", advice="pass one label per row")
    if np.can_cast(values.dtype, np.int64):
        return values.astype(np.int64)
    with damaged(where):  # strings may hold invalid characters
        labels = [_label(v, where) for v in values.tolist()]
    present = [v for v in labels if v is not None]
    if any(isinstance(v, str) for v in present):
        labels = [v if v is None else str(v) for v in labels]
        kind: Any = str
    else:
        kind = np.int64
    return np.array(labels, kind if len(present) == n_rows else object)


def parse_labels(texts: Sequence[str | None], where: str | Path) -> Array:
    """Return labels from text: integers if all are integers (including 3.0, as pandas writes next to missing values).

    Numbers with leading zeros stay strings.

    Examples
    --------
    >>> parse_labels(["3", "", "12.0"], "labels.csv")
    array([3, None, 12], dtype=object)
    >>> parse_labels(["01", "02"], "labels.csv")
    array(['01', '02'], dtype='<U2')
    """
    stripped = [(t or "").strip() for t in texts]
    numbers = [INTEGER.fullmatch(t) for t in stripped]
    values: list[Any] = stripped
    if all(n or not t for n, t in zip(numbers, stripped, strict=True)):
        values = [int(n[1]) if n else None for n in numbers]
    column = np.empty(len(values), object)
    column[:] = values
    return tidy_labels(column, len(values), where)


def _label(value: object, where: str | Path) -> int | str | None:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: the label {value[:40]!r} is not valid UTF-8") from error
    if isinstance(value, float):
        if value != value:
            return None
        if not value.is_integer():
            raise DataError(
                f"{where}: the label {value} is not an integer", advice="use integers or strings as classes"
            )
        value = int(value)
    if isinstance(value, int | np.integer):
        if not -(2**63) <= value < 2**63:
            raise DataError(f"{where}: the label {value} is too large", advice="use a string")
        return int(value)
    text = str(value).strip()
    if len(text) > _LONGEST:
        raise DataError(f"{where}: a label has {len(text)} characters ({text[:20]}...)", advice="shorten it")
    return None if text in MISSING else text
