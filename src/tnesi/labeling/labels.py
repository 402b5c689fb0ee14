"""Conversion of labels to class numbers."""

from __future__ import annotations

import warnings
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from tnesi.errors import InvalidDataError
from tnesi.types import Array


def _as_array(y: Any) -> Array:
    """Return labels as a flat array, of objects unless all of them are numbers.

    Integers with missing values (pandas' Int64, polars, Arrow) stay integers instead of becoming floats.
    """
    if hasattr(y, "columns") and len(y.columns) == 1:  # a frame of one column
        y = y.column(0) if hasattr(y, "column") else y[y.columns[0]]
    if hasattr(y, "to_pylist"):  # Arrow
        values = np.array(y.to_pylist(), dtype=object)
    elif hasattr(y, "null_count") and hasattr(y, "to_list"):  # polars
        values = np.array(y.to_list(), dtype=object) if y.null_count() else y.to_numpy()
    elif hasattr(y, "to_numpy"):
        masked = hasattr(y, "dtype") and not isinstance(y.dtype, np.dtype)
        values = y.to_numpy(dtype=object) if masked else y.to_numpy()
    else:
        values = np.asarray(y)
    if values.dtype.kind in "US" and not isinstance(y, np.ndarray):  # NumPy converts mixed lists to strings
        values = np.array(y, dtype=object)
    flat: Array = column_or_1d(values, warn=True)
    return flat


def _missing(value: Any) -> bool:
    """Return whether a label is None, NaN, pandas' NA, or a blank string."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _is_unlabeled(y: Array, unlabeled: Any) -> Array:
    """Return which labels are the marker, or missing.

    A marker of -1 also matches the string "-1", which NumPy and files make of it among strings.
    """
    marker = None if _missing(unlabeled) else unlabeled
    if y.dtype.kind in "OU":
        text = None if marker is None else str(marker)
        values = y.tolist()
        return np.array([_missing(v) or v == (text if isinstance(v, str) else marker) for v in values], dtype=bool)
    empty = np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, dtype=bool)
    if marker is None or isinstance(marker, str):
        return np.asarray(empty)
    return np.asarray(empty | (y == marker), dtype=bool)


def is_unlabeled(y: Any, unlabeled: Any) -> Array:
    """Return which rows have no label: the marker, or a missing value.

    Examples
    --------
    >>> is_unlabeled(["cat", "", "-1", None, "dog"], -1).tolist()
    [False, True, True, True, False]
    """
    return _is_unlabeled(_as_array(y), unlabeled)


def given_labels(y: Any, unlabeled: Any) -> tuple[Array, Array]:
    """Return the rows that have a label, and their labels in their original type.

    Examples
    --------
    >>> given_labels([3, None, 5], -1)
    (array([0, 2]), array([3, 5]))
    """
    codes, classes = encode_labels(y, unlabeled, none_is_fine=True, one_is_fine=True)
    rows = np.flatnonzero(codes >= 0)
    return rows, classes[codes[rows]]


def encode_labels(
    y: Any,
    unlabeled: Any,
    *,
    present: Array | None = None,
    none_is_fine: bool = False,
    one_is_fine: bool = False,
) -> tuple[Array, Array]:
    """Return labels as class numbers (int32, -1 for unlabeled) and the sorted classes.

    Labels of at least two classes are required unless `one_is_fine` or `none_is_fine`. With a mask of the rows that are
    `present`, only their labels and classes are returned.

    Examples
    --------
    >>> codes, classes = encode_labels(["cat", "?", "dog"], unlabeled="?")
    >>> codes.tolist(), classes.tolist()
    ([0, -1, 1], ['cat', 'dog'])
    """
    y = _as_array(y)
    _reject_dates(y)
    labeled = ~_is_unlabeled(y, unlabeled)
    if none_is_fine and not labeled.any():
        return np.full(y.shape if present is None else present.sum(), -1, np.int32), y[:0]
    if not labeled.any():
        raise InvalidDataError(
            "y has no labels, only the marker {marker!r}",
            parameter="y",
            marker=unlabeled,
            advice="label at least one row of each class, or use PoissonMixture to learn without labels",
        )
    given = y[labeled]
    if given.dtype.kind == "O":
        kinds = {str if isinstance(v, str) else bool if isinstance(v, (bool, np.bool_)) else Number for v in given}
        if len(kinds) > 1 or not all(isinstance(v, (str, Number, np.bool_)) for v in given):
            raise InvalidDataError(
                "the labels have different types", parameter="y", advice="pass only strings, or only numbers"
            )
        given = np.array(given.tolist())
    with warnings.catch_warnings():  # with one label per class, every label is unique
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        check_classification_targets(given)
    classes, codes = np.unique(given, return_inverse=True)
    if classes.size < 2 and not one_is_fine:
        raise InvalidDataError(
            "all labels are of one class ({only!r}), but a classifier needs at least two classes",
            parameter="y",
            only=classes.tolist()[0],
            marker=unlabeled,
            advice="check that {unlabeled}={marker!r} is the marker of unlabeled rows in y",
        )
    out = np.full(y.shape, -1, np.int32)
    out[labeled] = codes
    return (out, classes) if present is None else _of_present(out, classes, present)


def _reject_dates(y: Array) -> None:
    """Raise an error for dates, which neither model files nor tables of predictions can store as classes."""
    first = next((v for v in y.tolist() if not _missing(v)), None) if y.dtype.kind == "O" else None
    if y.dtype.kind in "mM" or isinstance(first, date | timedelta):
        raise InvalidDataError(
            "the labels are dates or times", parameter="y", advice="pass strings, for example y.astype(str)"
        )


def merge_classes(known: Array | None, more: Array | None) -> Array:
    """Return the classes of both, sorted.

    Examples
    --------
    >>> merge_classes(np.array([3, 5]), np.array([4, 5])).tolist()
    [3, 4, 5]
    """
    some = [classes for classes in (known, more) if classes is not None and classes.size]
    if not some:
        return np.empty(0, np.int64)
    if len({classes.dtype.kind == "U" for classes in some}) > 1:
        raise InvalidDataError(
            "labels such as {new!r} do not have the type of earlier labels ({old!r})",
            parameter="y",
            new=some[1].tolist()[0],
            old=some[0].tolist()[0],
            advice="pass only strings, or only numbers",
        )
    return np.unique(np.concatenate(some))


def with_marker(classes: Array, unlabeled: Any) -> Array:
    """Return the classes followed by the marker of unlabeled rows, the name of the unknown class.

    Examples
    --------
    >>> with_marker(np.array([3, 5]), -1).tolist()
    [3, 5, -1]
    >>> with_marker(np.array(["cat", "dog"]), -1).tolist()
    ['cat', 'dog', '-1']
    """
    marker: Any
    if classes.dtype.kind == "U":
        marker = "" if _missing(unlabeled) else str(unlabeled)
    else:
        marker = -1 if _missing(unlabeled) or isinstance(unlabeled, str) else unlabeled
    if marker in classes:
        raise InvalidDataError(
            "rows of unknown classes would be predicted as {marker!r}, which is one of the classes",
            parameter="unknown_classes",
            marker=marker,
            advice="rename that class",
        )
    return np.append(classes, marker)


def _of_present(label: Array, classes: Array, present: Array) -> tuple[Array, Array]:
    """Return the labels of the rows that are present, and the classes that these labels use."""
    label = label[present]
    used = np.unique(label[label >= 0])
    if classes.size and used.size < 2:
        raise InvalidDataError(
            "fewer than two classes have labels with a positive weight",
            parameter="sample_weight",
            advice="pass positive weights for labels of two classes",
        )
    renumber = np.full(classes.size + 1, -1, np.int32)
    renumber[used] = np.arange(used.size)
    return renumber[label], classes[used]
