"""Exact search: every row is compared with every field.

For dense rows one matrix product (BLAS), then the best C' of each row; for sparse rows one kernel does both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tnesi import kernels
from tnesi.kernels.blas import product
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, Shrinkage
from tnesi.model.rows import Rows
from tnesi.search.base import Search
from tnesi.types import Array

_BLOCK_VALUES = 8_000_000
"""Inputs in memory at a time: 32 MB."""
NEGLIGIBLE = 1e-6
"""Activities below this are not stored for the non-truncated mixture (its EM steps use them)."""
INVISIBLE = 1e-9
"""Activities below this do not change float32 weights under the online rule."""


def blocks_for(fields: Fields, rows: Rows) -> Iterator[tuple[slice, Rows]]:
    """Yield blocks of rows with their places; large ones if sparse, since each block packs the weights again."""
    at_once = max(16, _BLOCK_VALUES // len(fields))
    return rows.blocks(at_once if rows.is_sparse else min(at_once, 1024))


def best_of_all(fields: Fields, rows: Rows, prior: Prior | None, truncation: int, n_threads: int) -> Activities:
    """Return the best C' fields of sparse rows and their activities; bits do not depend on the other rows."""
    out = Activities.empty(len(rows), truncation)
    kernels.search_all(
        rows.arrays,
        rows.scale,
        fields.log_w,
        fields.base(prior),
        None if prior is None else prior.row,
        out.ids,
        out.s,
        out.log_sum,
        n_threads,
    )
    return out


@dataclass
class ExactSearch(Search):
    """Compare every row with all fields; keep the best `truncation` = C'."""

    name = "exact"
    uses_blas = True

    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        """Return the best C' fields of each row and their activities."""
        if rows.is_sparse:
            return best_of_all(fields, rows, prior, self.truncation, self.n_threads)
        out = Activities.empty(len(rows), self.truncation)
        base = fields.base(prior)
        for place, block in blocks_for(fields, rows):
            kernels.select_top(
                fields.inputs(block, self.n_threads),
                block.scale,
                base,
                None if prior is None else prior.take(place).row,
                out.ids[place],
                out.s[place],
                out.log_sum[place],
                self.n_threads,
            )
        return out


def full_posterior(
    fields: Fields, rows: Rows, base: Array, base_row: Array | None, n_threads: int
) -> tuple[Array, Array]:
    """Return s over all C fields (dense) and the log-sum, for a block of rows."""
    inputs = fields.inputs(rows, n_threads)
    inputs *= rows.scale[:, None]
    inputs += base[0] if base_row is None else base[base_row]
    top = inputs.max(axis=1, keepdims=True)
    inputs -= top
    np.exp(inputs, out=inputs)
    total = inputs.sum(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
    inputs /= total
    return inputs, (top + np.log(total))[:, 0]


def log_likelihood(fields: Fields, rows: Rows, n_threads: int) -> Array:
    """Return log sum_c exp(I_c - sum_d W_cd + A) over all fields for each row, for `FreeEnergy`."""
    out = np.empty(len(rows), np.float32)
    base = fields.base(None) - (fields.w_sum - np.float32(rows.row_sum))  # nonzero only under the Hebbian rule
    for place, block in blocks_for(fields, rows):
        _, out[place] = full_posterior(fields, block, base, None, n_threads)
    return out


@dataclass
class FullSearch(Search):
    """The non-truncated mixture, C' = C: every field is active for every row.

    Activities below `least` are not stored; the others are renormalized.
    """

    least: float = NEGLIGIBLE
    name = "full"
    uses_blas = True
    truncated = False

    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        """Return the activities that are not negligible, in descending order."""
        base = fields.base(prior)
        found: list[Activities] = []
        for place, block in blocks_for(fields, rows):
            base_row = None if prior is None else prior.take(place).row
            s, log_sum = full_posterior(fields, block, base, base_row, self.n_threads)
            width = max(int((s >= self.least).sum(axis=1).max()), 1)
            ids = np.argpartition(-s, width - 1, axis=1)[:, :width] if width < s.shape[1] else None
            kept = s if ids is None else np.take_along_axis(s, ids, axis=1)
            order = np.argsort(-kept, axis=1, kind="stable")
            kept = np.take_along_axis(kept, order, axis=1)
            ids = (order if ids is None else np.take_along_axis(ids, order, axis=1)).astype(np.int32)
            small = kept < self.least
            small[:, 0] = False
            kept[small], ids[small] = 0, -1
            kept /= kept.sum(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
            found.append(Activities(ids, kept, log_sum))
        return Activities.stacked(found, max(part.ids.shape[1] for part in found))


def full_step(
    fields: Fields,
    rows: Rows,
    weight: Array | None,
    prior: Prior | None,
    n_threads: int,
    shrinkage: Shrinkage | None = None,
) -> tuple[Fields, Array, Array]:
    """E-step and M-step of the non-truncated mixture in one pass, without storing activities.

    Returns
    -------
    fields : the new fields
    log_sum : (N,) array, of the old fields
    best : (N,) array, the best of the old fields for each row
    """
    sums, mass = np.zeros(fields.w.shape), np.zeros(len(fields))
    log_sum, best = np.empty(len(rows), np.float32), np.empty(len(rows), np.int32)
    base = fields.base(prior)
    for place, block in blocks_for(fields, rows):
        base_row = None if prior is None else prior.take(place).row
        s, log_sum[place] = full_posterior(fields, block, base, base_row, n_threads)
        best[place] = s.argmax(axis=1)
        if weight is not None:
            s *= weight[place, None]
        if rows.is_sparse:
            every = np.tile(np.arange(len(fields), dtype=np.int32), (len(block), 1))
            kernels.add_statistics(block.arrays, block.scale, None, every, s, 0.0, 0.0, sums, mass, n_threads)
            continue
        mass += s.sum(axis=0, dtype=np.float64)
        s *= block.scale[:, None]
        sums += product(s.T, block.raw().T, n_threads)
    if shrinkage:
        sums += shrinkage.rows * shrinkage.above
        mass += shrinkage.rows
    alive = mass > 1e-30
    w = fields.w.copy()
    w[alive] = sums[alive] / mass[alive, None] + 1
    return Fields.from_weights(w), log_sum, best
