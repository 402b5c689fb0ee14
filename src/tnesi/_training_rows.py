"""What a classifier learns from: the rows that count, with their labels."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from tnesi._parameters import check_rows, check_weights, present_rows
from tnesi.layers.labels import encode_labels

Array = npt.NDArray[Any]


class TrainingRows(NamedTuple):
    """Rows of positive weight.

    Attributes
    ----------
    label : (N,) array of int32
        Places in `classes`, -1 for unlabelled.
    number : (N,) array or None
        What the user calls the rows; None: all are here.
    """

    X: Array
    label: Array
    classes: Array
    weight: Array | None
    number: Array | None

    @classmethod
    def of(cls, estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any) -> Self:
        """Check what was given to the `fit` of an estimator, and leave out what has no weight."""
        X = check_rows(estimator, X, reset=True)
        check_consistent_length(X, y)
        label, classes = encode_labels(y, estimator.unlabelled)
        X, weight, number = present_rows(X, check_weights(sample_weight, X))
        if number is not None:
            label, classes = _without_absent_classes(label[number], classes)
        return cls(X, label, classes, weight, number)


def _without_absent_classes(label: Array, classes: Array) -> tuple[Array, Array]:
    """Classes all of whose labels have weight 0 are absent."""
    used = np.unique(label[label >= 0])
    if used.size < 2:
        raise ValueError("fewer than two classes have labels with a weight: give weight to labels of two classes")
    renumber = np.full(classes.size + 1, -1, np.int32)
    renumber[used] = np.arange(used.size)
    return renumber[label], classes[used]
