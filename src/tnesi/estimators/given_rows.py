"""What an estimator learns from: rows that have been checked, wherever they are."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from tnesi.estimators.blocks import check_block, checked_blocks, is_out_of_core, shape_of, unwrapped
from tnesi.estimators.parameters import check_rows, check_weights, present_rows
from tnesi.execution.dask.cluster import Cluster
from tnesi.execution.local import LocalEngine
from tnesi.execution.part import Part
from tnesi.execution.spool import check_file, mapped_file, spool
from tnesi.execution.store import ArrayStore, Store
from tnesi.model.rows import usable_rows
from tnesi.training.em import Engine

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
    n_zero : int
        Number of rows that are all zero.
    cluster : Cluster or None
        Where to learn from them; None: in this process.
    """

    store: Store
    sums: Array
    weight: Array | None
    present: Array | None
    n_zero: int = 0
    cluster: Cluster | None = None

    @classmethod
    def of(
        cls,
        estimator: BaseEstimator,
        X: Any,
        sample_weight: Any,
        cluster: Cluster | None = None,
        *,
        reset: bool = True,
        batch: bool = False,
    ) -> Self:
        """Check what was given to the `fit` of an estimator, and leave out what has no weight.

        Without `reset` the rows have to be like those that it knows. The weights of a `batch` stay as they are: they
        mean the same in all batches.
        """
        X = unwrapped(X)
        if cluster is not None and type(X).__module__.startswith("dask.array"):
            return cls._on_cluster(estimator, X, sample_weight, cluster)
        if is_out_of_core(X):
            return cls._out_of_core(estimator, X, sample_weight, cluster, reset=reset, batch=batch)
        X = check_rows(estimator, X, reset=reset)
        if cluster is not None and issparse(X):
            raise ValueError("sparse rows are learned from in one process: pass engine='local'")
        weight = check_weights(sample_weight, X, rescale=not batch)
        present = None if weight is None or (weight > 0).all() else weight > 0
        X, weight, number = present_rows(X, weight)
        usable = usable_rows(X, estimator.zero_rows, number)
        return cls(ArrayStore(usable.x), usable.sums, weight, present, usable.zero.size, cluster)

    @classmethod
    def _out_of_core(
        cls, estimator: BaseEstimator, X: Any, sample_weight: Any, cluster: Cluster | None, *, reset: bool, batch: bool
    ) -> Self:
        weight = check_weights(sample_weight, X, rescale=not batch)
        if weight is not None and not (weight > 0).all():
            raise ValueError("rows of weight 0 can only be left out of data in memory: leave them out before")
        mapped = mapped_file(X)
        if mapped is None:
            blocks = checked_blocks(estimator, X, reset=reset)
            store, sums, n_zero = spool(blocks, shape_of(X), np.dtype(X.dtype), estimator.zero_rows)
            return cls(store, sums, weight, None, n_zero, cluster)

        def check(x: Array, start: int) -> None:
            check_block(estimator, x, start, reset=reset and start == 0)

        checked, sums, n_zero = check_file(mapped, check, estimator.zero_rows)
        return cls(checked, sums, weight, None, n_zero, cluster)

    @classmethod
    def _on_cluster(cls, estimator: BaseEstimator, X: Any, sample_weight: Any, cluster: Cluster) -> Self:
        """Check a dask array, which stays where it is."""
        from tnesi.execution.dask.rows import stored

        if np.isnan(X.shape).any():
            raise ValueError("the number of rows of X is not known: call X.compute_chunk_sizes() first")
        check_rows(estimator, cluster.client.compute(X[:1]).result(), reset=True)
        weight = check_weights(sample_weight, X)
        present = None if weight is None or (weight > 0).all() else weight > 0
        X, weight, number = present_rows(X, weight)
        refuse = partial(check_rows, estimator, reset=False)
        store, sums, n_zero = stored(cluster, X, weight, estimator.zero_rows, number, refuse)
        return cls(store, sums, weight, present, n_zero, cluster)

    def engine(self, settings: Any, n_threads: int) -> Engine:
        """Return an engine that has not learned anything yet; `settings` is the estimator that says which."""
        if self.cluster is not None:
            return self.cluster.engine(self.store, self.sums, self.weight, n_threads)
        return LocalEngine(Part(self.store, self.sums, self.weight, n_threads))

    def mention_zero_rows(self, before: int = 0) -> None:
        """Warn about rows that are all zero, unless there were some `before`."""
        if self.n_zero and not before:
            warnings.warn(
                f"{self.n_zero:,} of {self.n_rows:,} rows are all zero and count as evenly spread; drop them if they "
                "are not data, or pass zero_rows='error' to refuse them",
                stacklevel=3,
            )

    @property
    def n_rows(self) -> int:
        return self.store.n_rows

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.n_rows if self.weight is None else self.weight.sum(dtype=np.float64))
