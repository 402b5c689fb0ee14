"""The survey: statistics of all rows before learning, for the initialization and automatic parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tnesi.model.rows import row_hashes
from tnesi.types import Array

_CHUNK = 4096


@dataclass(frozen=True)
class Survey:
    """Statistics of rows before normalization.

    Attributes
    ----------
    hashes : (N,) array of uint64
        Hashes of the proportions in each row.
    count : (D,) array
        Total weight of the rows in which a feature is not zero.
    share : (D,) array
        Weighted sum over the rows of the share of a feature, x / sum(x).
    total : float
        Total weight of the rows.
    """

    hashes: Array
    count: Array
    share: Array
    total: float

    @classmethod
    def of(cls, x: Any, sums: Array, weight: Array | None, seed: int, n_threads: int) -> Survey:
        """Return the survey of some rows with the given sums."""
        hashes = row_hashes(x, seed, n_threads)
        count, share = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        w = np.ones(len(sums), np.float32) if weight is None else weight
        for start in range(0, len(sums), _CHUNK):
            at = slice(start, start + _CHUNK)
            count += w[at] @ (x[at] > 0)
            share += (w[at] / sums[at]).astype(np.float32) @ x[at].astype(np.float32, copy=False)
        return cls(hashes, count, share, float(w.sum(dtype=np.float64)))

    @classmethod
    def joined(cls, grains: Iterable[Survey]) -> Survey:
        """Return the survey of consecutive grains."""
        hashes, count, share, total = [], np.zeros(1), np.zeros(1), 0.0
        for one in grains:
            hashes.append(one.hashes)
            count, share, total = count + one.count, share + one.share, total + one.total
        return cls(np.concatenate(hashes), count, share, total)

    def mean_above(self, row_sum: float) -> Array:
        """Return the mean of the rows normalized to `row_sum`, minus the 1 that normalization adds."""
        out: Array = (row_sum - self.share.size) * self.share / self.total
        return out
