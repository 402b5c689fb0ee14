"""What a classifier learns from: the rows that count, with their labels."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from tnesi._parameters import check_rows, check_weights, present_rows
from tnesi.layers.input import Matrix
from tnesi.layers.labels import encode_labels

Array = npt.NDArray[Any]


class TrainingRows(NamedTuple):
    """Rows of positive weight.

    Attributes
    ----------
    label : (N,) array of int32
        Places in `classes`, -1 for unlabelled.
    classes : (K,) array
        There are none if no row has a label.
    present : array of bool or None
        Which of the rows given these are; None: all.
    """

    X: Matrix
    label: Array
    classes: Array
    weight: Array | None
    present: Array | None

    @classmethod
    def of(cls, estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any) -> Self:
        """Check what was given to the `fit` of an estimator, and leave out what has no weight."""
        X = check_rows(estimator, X, reset=True)
        check_consistent_length(X, y)
        label, classes = encode_labels(y, estimator.unlabelled, none_is_fine=not estimator.recurrent)
        given = check_weights(sample_weight, X)
        X, weight, number = present_rows(X, given)
        present = None if given is None or number is None else given > 0
        if present is not None:
            label, classes = present_labels(label, classes, present)
        return cls(X, label, classes, weight, present)

    @property
    def number(self) -> Array | None:
        """What the user calls the rows; None: all are here."""
        return None if self.present is None else np.flatnonzero(self.present)


def present_labels(label: Array, classes: Array, present: Array) -> tuple[Array, Array]:
    """Return labels of the rows that are present; classes all of whose labels are of absent rows are absent."""
    label = label[present]
    used = np.unique(label[label >= 0])
    if classes.size and used.size < 2:
        raise ValueError("fewer than two classes have labels with a weight: give weight to labels of two classes")
    renumber = np.full(classes.size + 1, -1, np.int32)
    renumber[used] = np.arange(used.size)
    return renumber[label], classes[used]
