"""One look at all rows before learning: what the start and the choice of parameters need to know."""

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
    """What is known of rows before they are normalized.

    Attributes
    ----------
    hashes : (N,) array of uint64
        Of the rows' proportions; equal ones have equal hashes.
    count : (D,) array
        Weight of the rows in which a feature is not zero.
    share : (D,) array
        A feature's share of a row, x / sum(x), summed over the rows with their weights.
    total : float
        Weight of all rows.
    """

    hashes: Array
    count: Array
    share: Array
    total: float

    @classmethod
    def of(cls, x: Any, sums: Array, weight: Array | None, seed: int, n_threads: int) -> Survey:
        """Look at some rows, of which the sums are known."""
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
        """Return the mean of the rows normalized to `row_sum`, less the 1 that normalization adds."""
        out: Array = (row_sum - self.share.size) * self.share / self.total
        return out
