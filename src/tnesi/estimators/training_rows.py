"""What a classifier learns from: the rows that count, with their labels."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from tnesi.estimators.given_rows import GivenRows
from tnesi.execution.dask.cluster import Cluster
from tnesi.labeling.labels import encode_labels

Array = npt.NDArray[Any]


class TrainingRows(NamedTuple):
    """Rows of positive weight with their labels.

    Attributes
    ----------
    given : GivenRows
    label : (N,) array of int32
        Places in `classes`, -1 for unlabeled.
    classes : (K,) array
        There are none if no row has a label.
    """

    given: GivenRows
    label: Array
    classes: Array

    @classmethod
    def of(cls, estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, cluster: Cluster | None = None) -> Self:
        """Check what was given to the `fit` of an estimator, and leave out what has no weight."""
        given = GivenRows.of(estimator, X, sample_weight, cluster)
        check_consistent_length(X, y)
        label, classes = encode_labels(y, estimator.unlabeled, none_is_fine=not estimator.recurrent)
        if given.present is not None:
            label, classes = present_labels(label, classes, given.present)
        return cls(given, label, classes)


def present_labels(label: Array, classes: Array, present: Array) -> tuple[Array, Array]:
    """Return labels of the rows that are present; classes all of whose labels are of absent rows are absent."""
    label = label[present]
    used = np.unique(label[label >= 0])
    if classes.size and used.size < 2:
        raise ValueError("fewer than two classes have labels with a weight: give weight to labels of two classes")
    renumber = np.full(classes.size + 1, -1, np.int32)
    renumber[used] = np.arange(used.size)
    return renumber[label], classes[used]
