"""Labels as the user writes them, and as the layers want them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

Array = npt.NDArray[Any]


def _is_unlabelled(y: Array, unlabelled: Any) -> Array:
    """Where `y` is the marker; NaN and None are found too, and a number among strings (NumPy makes it one)."""
    if unlabelled is None or (isinstance(unlabelled, float) and np.isnan(unlabelled)):
        return np.array([v is None or v != v for v in y.tolist()], dtype=bool)
    if y.dtype.kind == "U":
        return np.asarray(y == str(unlabelled), dtype=bool)
    if y.dtype.kind == "O":
        return np.array([v == unlabelled for v in y.tolist()], dtype=bool)
    if isinstance(unlabelled, str):
        return np.zeros(y.shape, dtype=bool)
    return np.asarray(y == unlabelled, dtype=bool)


def encode_labels(y: Any, unlabelled: Any) -> tuple[Array, Array]:
    """Return labels as class numbers (int32, -1 for unlabelled) and the sorted classes.

    Examples
    --------
    >>> codes, classes = encode_labels(["cat", "?", "dog"], unlabelled="?")
    >>> codes.tolist(), classes.tolist()
    ([0, -1, 1], ['cat', 'dog'])
    """
    y = column_or_1d(y, warn=True)
    labelled = ~_is_unlabelled(y, unlabelled)
    if not labelled.any():
        raise ValueError(
            f"y holds no labels at all, only the marker {unlabelled!r}: label at least one row of each class, or use "
            "PoissonMixture to learn without labels"
        )
    given = y[labelled]
    if given.dtype.kind == "O":
        given = np.array(given.tolist())
    check_classification_targets(given)
    classes, codes = np.unique(given, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"all labels are of one class ({classes[0]!r}): a classifier needs labels of at least two classes; check "
            f"that unlabelled={unlabelled!r} is the marker used in y"
        )
    out = np.full(y.shape, -1, np.int32)
    out[labelled] = codes
    return out, classes
