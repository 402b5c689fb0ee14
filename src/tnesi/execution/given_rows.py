"""The input of training: checked rows in memory, in a file, or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tnesi.execution.device_engine import DeviceEngine
from tnesi.execution.engine import Engine
from tnesi.execution.local import LocalEngine
from tnesi.execution.part import Part
from tnesi.model.rows import RowStore
from tnesi.system.devices import Device
from tnesi.types import Array

if TYPE_CHECKING:
    from tnesi.execution.dask.cluster import Cluster


class GivenRows(NamedTuple):
    """Rows of positive weight.

    Attributes
    ----------
    store : RowStore
    sums : (N,) array of float64
        Row sums.
    weight : (N,) array of float32 or None
    present : array of bool or None
        Mask of these rows among all rows given to `fit`; None means that these are all.
    n_zero : int
        Number of rows that are all zero.
    cluster : Cluster or None
        The cluster to learn on; None means this process.
    device : Device or None
        The device of PyTorch to learn on; None means the processor.
    """

    store: RowStore
    sums: Array
    weight: Array | None
    present: Array | None
    n_zero: int = 0
    cluster: Cluster | None = None
    device: Device | None = None

    def engine(self, n_threads: int) -> Engine:
        """Return a new engine for these rows."""
        if self.cluster is not None:
            return self.cluster.engine(self.store, self.sums, self.weight, n_threads)
        if self.device is not None:
            return DeviceEngine(self.store, self.sums, self.weight, self.device, n_threads)
        return LocalEngine(Part(self.store, self.sums, self.weight, n_threads))

    @property
    def n_rows(self) -> int:
        return self.store.n_rows

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.n_rows if self.weight is None else self.weight.sum(dtype=np.float64))
