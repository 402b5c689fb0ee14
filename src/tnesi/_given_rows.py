"""What an estimator learns from: rows that have been checked, wherever they are."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from tnesi._parameters import check_rows, check_weights, present_rows
from tnesi.engine.local import LocalEngine
from tnesi.engine.part import Part
from tnesi.engine.store import ArrayStore, Store
from tnesi.layers.input import usable_rows

Array = npt.NDArray[Any]


class GivenRows(NamedTuple):
    """Rows of positive weight.

    Attributes
    ----------
    store : Store
    sums : (N,) array of float64
        Of the rows.
    weight : (N,) array of float32 or None
    present : array of bool or None
        Which of the rows given these are; None: all.
    """

    store: Store
    sums: Array
    weight: Array | None
    present: Array | None

    @classmethod
    def of(cls, estimator: BaseEstimator, X: Any, sample_weight: Any, *, reset: bool = True) -> Self:
        """Check what was given to the `fit` of an estimator, and leave out what has no weight.

        Without `reset` the rows have to be like those that it knows.
        """
        X = check_rows(estimator, X, reset=reset)
        weight = check_weights(sample_weight, X)
        present = None if weight is None or (weight > 0).all() else weight > 0
        X, weight, number = present_rows(X, weight)
        X, sums = usable_rows(X, estimator.zero_rows, number)
        return cls(ArrayStore(X), sums, weight, present)

    def engine(self, settings: Any, n_threads: int) -> LocalEngine:
        """Return an engine that has not learned anything yet; `settings` is the estimator that says which."""
        return LocalEngine(Part(self.store, self.sums, self.weight, n_threads))

    @property
    def n_rows(self) -> int:
        return self.store.n_rows

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.n_rows if self.weight is None else self.weight.sum(dtype=np.float64))
