"""The first layer: C fields W, each with D weights (a template, a cluster center) that sum to A."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tnesi import kernels
from tnesi.kernels.blas import product
from tnesi.model.activities import Activities
from tnesi.model.rows import Rows
from tnesi.types import Array

_MINI_BATCH = 64
_FAINT = 1e-7
"""Fields with a smaller share of the mass are renormalized, since rounding to units changes their sum."""


@dataclass(frozen=True)
class Prior:
    """Log prior of the fields from the second layer of a recurrent network, added to the inputs I_c.

    Attributes
    ----------
    table : (B, C) array of float32
        Row 0 for rows without a label, row 1 + l for rows of class l.
    row : (N,) array of int32 or None
        The row of the table for each data row; None means row 0 for all.
    """

    table: Array
    row: Array | None = None

    def take(self, place: Any) -> Prior:
        return Prior(self.table, None if self.row is None else self.row[place])


@dataclass(frozen=True)
class Shrinkage:
    """A gamma prior on W, equivalent to adding rows at the mean of the data to every field.

    Without it a field with few rows fits these rows too closely and explains new rows badly.

    Attributes
    ----------
    above : (D,) array of float32
        Mean of the normalized rows, minus the 1 that normalization adds.
    rows : float
        Number of added rows.
    """

    above: Array
    rows: float

    @classmethod
    def towards(cls, above: Array, strength: float) -> Shrinkage | None:
        """Return the prior with a mean of 1 + `above`, or None if `strength` is 0."""
        return cls(above.astype(np.float32), float(strength)) if strength > 0 else None

    def log_density(self, fields: Fields) -> float:
        """Return the log of the prior density of all fields, up to a constant."""
        each = fields.log_w[:, : self.above.size] @ self.above + fields.log_w_sum - fields.w_sum
        return self.rows * float(each.sum(dtype=np.float64))


class Units(NamedTuple):
    """Powers of two to whose multiples partial sums are rounded, which makes adding them exact in any order."""

    sums: float
    mass: float

    @classmethod
    def for_rows(cls, total: float, above: float) -> Units:
        """Return the units for rows of total weight `total` whose normalized values are below 1 + `above`."""
        return cls(*(2.0 ** (np.ceil(np.log2(most)) - 50) for most in (total * above, total)))


@dataclass
class Statistics:
    """Sufficient statistics of the fields.

    Attributes
    ----------
    sums : (C, D) array
        sum_n s_nc (y_n - 1)
    mass : (C,) array
        sum_n s_nc
    """

    sums: Array
    mass: Array
    units: Units

    @classmethod
    def zeros(cls, n_fields: int, n_features: int, units: Units) -> Statistics:
        sums = np.full((n_fields, n_features), 0.0)  # unlike np.zeros, uses large pages
        return cls(sums, np.zeros(n_fields), units)

    def clear(self) -> None:
        self.sums[:], self.mass[:] = 0, 0

    def add(self, rows: Rows, weight: Array | None, activities: Activities, n_threads: int) -> None:
        """Add the statistics of some rows."""
        kernels.add_statistics(
            rows.arrays, rows.scale, weight, activities.ids, activities.s, *self.units, self.sums, self.mass, n_threads
        )


@dataclass(frozen=True)
class Fields:
    """Weights of the first layer, with their logarithms and sums.

    Attributes
    ----------
    w : (C, D) array of float32
    log_w : (C, Dp) array of float32
        log W, padded with zeros for the kernels.
    log_w_sum, w_sum : (C,) arrays of float32
        Row sums of log W and of W.
    """

    w: Array
    log_w: Array
    log_w_sum: Array
    w_sum: Array

    @classmethod
    def from_weights(cls, w: Array) -> Fields:
        w = np.array(w, dtype=np.float32, order="C")
        log_w = np.zeros((w.shape[0], kernels.padded(w.shape[1])), np.float32)
        w_sum = w.sum(axis=1, dtype=np.float64).astype(np.float32)
        fields = cls(w, log_w, np.empty_like(w_sum), w_sum)
        fields.take_logarithms()
        return fields

    def take_logarithms(self) -> None:
        """Recompute log W from W, in place.

        The logarithm of the learning kernels may differ in the last bit. Model files only store W, so a fitted model
        must have the logarithms that a loaded one computes.
        """
        np.log(self.w, out=self.log_w[:, : self.w.shape[1]])
        self.log_w_sum[:] = self.log_w.sum(axis=1, dtype=np.float64)

    def __len__(self) -> int:
        return int(self.w.shape[0])

    def take(self, index: Array) -> Fields:
        return Fields(self.w[index], self.log_w[index], self.log_w_sum[index], self.w_sum[index])

    def as_rows(self) -> Rows:
        """Return the fields as data: y = W."""
        return Rows(self.w - np.float32(1), np.ones(len(self), np.float32), float(self.w_sum.mean()))

    def inputs(self, rows: Rows, n_threads: int) -> Array:
        """Return x . log W for all fields.

        Dense rows are multiplied by BLAS, except for mini-batches, for which BLAS would copy all of log W.
        """
        if len(rows) > _MINI_BATCH and not rows.is_sparse:
            return product(rows.raw(), self.log_w[:, : rows.n_features], n_threads)
        out = np.empty((len(rows), len(self)), np.float32)
        kernels.products(rows.arrays, self.log_w, out, n_threads)
        return out

    def base(self, prior: Prior | None) -> Array:
        """Return the part of I_c that does not depend on x: the sums of log W, plus the prior's table."""
        if prior is None:
            return self.log_w_sum[None]
        return np.ascontiguousarray(self.log_w_sum[None] + prior.table)

    def m_step(
        self,
        rows: Rows,
        weight: Array | None,
        activities: Activities,
        n_threads: int,
        spare: Fields | None = None,
        shrinkage: Shrinkage | None = None,
        units: Units | None = None,
    ) -> tuple[Fields, Array]:
        """Return the fields W_c = sum_n s_nc y_n / sum_n s_nc (with optional shrinkage) and the masses sum_n s_nc.

        `spare` fields of the same shape are overwritten, since allocation would take as long as the step.
        """
        new = spare or self._empty_like()
        mass = np.empty(len(self))
        kernels.m_step(
            rows.arrays,
            rows.scale,
            weight,
            activities.ids,
            activities.s,
            *(units or (0.0, 0.0)),
            self.w,
            *_kernel_prior(shrinkage),
            new.w,
            new.log_w,
            new.log_w_sum,
            mass,
            n_threads,
        )
        new.set_sums(self, mass, rows.row_sum, shrinkage)
        return new, mass

    def from_statistics(
        self, statistics: Statistics, row_sum: float, n_threads: int, spare: Fields | None, shrinkage: Shrinkage | None
    ) -> Fields:
        """Return the fields of an M-step whose statistics have been accumulated."""
        new = spare or self._empty_like()
        kernels.finish_m_step(
            statistics.sums,
            statistics.mass,
            self.w,
            *_kernel_prior(shrinkage),
            new.w,
            new.log_w,
            new.log_w_sum,
            n_threads,
        )
        new.set_sums(self, statistics.mass, row_sum, shrinkage)
        return new

    def _empty_like(self) -> Fields:
        return Fields(
            np.empty_like(self.w), np.zeros_like(self.log_w), np.empty_like(self.log_w_sum), np.empty_like(self.w_sum)
        )

    def set_sums(self, before: Fields, mass: Array, row_sum: float, shrinkage: Shrinkage | None) -> None:
        seen = mass + shrinkage.rows if shrinkage is not None else mass
        self.w_sum[:] = np.where(seen > 0, np.float32(row_sum), before.w_sum)
        faint = np.flatnonzero((seen > 0) & (seen < _FAINT * mass.sum()))
        if faint.size:
            self._renormalize(faint, before, row_sum)

    def _renormalize(self, faint: Array, before: Fields, row_sum: float) -> None:
        """Renormalize some fields to the sum A; a field whose statistics are rounded to 0 keeps its weights."""
        above = self.w[faint].astype(np.float64) - 1
        total = above.sum(axis=1)
        lost, kept = faint[total <= 0], faint[total > 0]
        self.w[lost], self.w_sum[lost] = before.w[lost], before.w_sum[lost]
        above = above[total > 0] * ((row_sum - above.shape[1]) / total[total > 0])[:, None]
        self.w[kept] = 1 + above
        self.log_w[faint, : above.shape[1]] = np.log(self.w[faint])
        self.log_w_sum[faint] = self.log_w[faint].sum(axis=1, dtype=np.float64)

    def hebbian_step(
        self, rows: Rows, weight: Array | None, activities: Activities, rate: float, n_threads: int
    ) -> None:
        """W_c += rate * sum_n s_nc (y_n - W_c) (eq. 9), in place."""
        kernels.hebbian_step(
            rows.arrays,
            rows.scale,
            weight,
            activities.ids,
            activities.s,
            rate,
            self.w,
            self.log_w,
            self.log_w_sum,
            self.w_sum,
            n_threads,
        )


def _kernel_prior(shrinkage: Shrinkage | None) -> tuple[Array | None, float]:
    """Return the prior as arguments of the kernels."""
    return (shrinkage.above, shrinkage.rows) if shrinkage else (None, 0.0)


def draw_distinct(hashes: Array, weight: Array | None) -> Array:
    """Return one index of each distinct row, in random order.

    Rows of larger weight tend to come first. The order depends on the contents of the rows (through `hashes`, which
    depend on the seed) and not on their order, and a row of weight 3 is equivalent to three equal rows.
    """
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    total = np.bincount(which, weights=weight)
    u = (hashes[first] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    arrival = -np.log1p(-u) / total  # sorting exponential variables is weighted sampling without replacement
    order: Array = first[np.argsort(arrival, kind="stable")]
    return order


def start_from_rows(rows: Rows, weight: Array | None, chosen: Array) -> Fields:
    """Return the initialization of EM: the average of each chosen row and the mean."""
    return start_around(rows.moments(weight)[0], rows.take(chosen))


def start_around(mean: Array, chosen: Rows) -> Fields:
    """Return the initialization of EM for a known mean."""
    w = chosen.y()
    w *= np.float32(0.5)
    w += 0.5 * mean.astype(np.float32)
    return Fields.from_weights(w)


def start_hebbian(rows: Rows, weight: Array | None, n_fields: int, rng: np.random.Generator) -> Fields:
    """Return the published initialization: mean + 2 std * Uniform[0, 1) for each feature.

    The fields are not normalized and sum to more than A. Fields that win shrink toward A, which favors the others;
    otherwise most fields would never win.
    """
    mean, std = rows.moments(weight)
    w = rng.random((n_fields, rows.n_features))
    w *= 2 * std
    w += mean
    return Fields.from_weights(w)
