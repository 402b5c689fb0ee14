"""What training learns from: rows that have been checked, wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tnesi.execution.engine import Engine
from tnesi.execution.local import LocalEngine
from tnesi.execution.part import Part
from tnesi.execution.store import Store
from tnesi.types import Array

if TYPE_CHECKING:
    from tnesi.execution.dask.cluster import Cluster


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

    def engine(self, n_threads: int) -> Engine:
        """Return an engine that has not learned anything yet."""
        if self.cluster is not None:
            return self.cluster.engine(self.store, self.sums, self.weight, n_threads)
        return LocalEngine(Part(self.store, self.sums, self.weight, n_threads))

    @property
    def n_rows(self) -> int:
        return self.store.n_rows

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.n_rows if self.weight is None else self.weight.sum(dtype=np.float64))
