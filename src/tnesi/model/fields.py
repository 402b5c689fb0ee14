"""The first layer: C fields W, each a row of D weights (a template, a cluster center) that sums to A."""

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
"""Fields with a smaller share of the mass than this are rounded too coarsely to sum to A by themselves."""


@dataclass(frozen=True)
class Prior:
    """What the second layer says of the fields in a recurrent network: added to the inputs I_c.

    Attributes
    ----------
    table : (B, C) array of float32
        Row 0 for points without a label, row 1 + l for points of class l.
    row : (N,) array of int32 or None
        Which row counts for a point; None is row 0 for all.
    """

    table: Array
    row: Array | None = None

    def take(self, place: Any) -> Prior:
        return Prior(self.table, None if self.row is None else self.row[place])


@dataclass(frozen=True)
class Shrinkage:
    """A gamma prior on W: every field has seen so many rows at the mean of the data before it sees any.

    Without it a field of a few points is nearly those points: it explains them too well, and new ones badly.

    Attributes
    ----------
    above : (D,) array of float32
        Mean of the normalized rows, less the 1 that normalization adds.
    rows : float
    """

    above: Array
    rows: float

    @classmethod
    def towards(cls, above: Array, strength: float) -> Shrinkage | None:
        """Return the prior of the mean of the rows, less 1, or none for no strength."""
        return cls(above.astype(np.float32), float(strength)) if strength > 0 else None

    def log_density(self, fields: Fields) -> float:
        """Return the log of the prior of all fields, up to a constant."""
        each = fields.log_w[:, : self.above.size] @ self.above + fields.log_w_sum - fields.w_sum
        return self.rows * float(each.sum(dtype=np.float64))


class Units(NamedTuple):
    """Powers of two of which sums over parts of the rows are multiples: adding them up is exact, in any order."""

    sums: float
    mass: float

    @classmethod
    def for_rows(cls, total: float, above: float) -> Units:
        """Return the units for rows of weight `total` in all, whose normalized values are below 1 + `above`."""
        return cls(*(2.0 ** (np.ceil(np.log2(most)) - 50) for most in (total * above, total)))


@dataclass
class Statistics:
    """What the rows teach the fields.

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
        sums = np.full((n_fields, n_features), 0.0)  # large pages, unlike zeros: they are all written to anyway
        return cls(sums, np.zeros(n_fields), units)

    def clear(self) -> None:
        self.sums[:], self.mass[:] = 0, 0

    def add(self, rows: Rows, weight: Array | None, activities: Activities, n_threads: int) -> None:
        """Add what some rows teach."""
        kernels.add_statistics(
            rows.arrays, rows.scale, weight, activities.ids, activities.s, *self.units, self.sums, self.mass, n_threads
        )


@dataclass(frozen=True)
class Fields:
    """Weights of the first layer with what follows from them.

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
        """Compute log W anew from W, in place.

        The kernels that learn have a logarithm of their own, which may differ in the last bit. A model file holds
        W alone: a fitted model has to have the logarithms that a loaded one will have.
        """
        np.log(self.w, out=self.log_w[:, : self.w.shape[1]])
        self.log_w_sum[:] = self.log_w.sum(axis=1, dtype=np.float64)

    def __len__(self) -> int:
        return int(self.w.shape[0])

    def take(self, index: Array) -> Fields:
        return Fields(self.w[index], self.log_w[index], self.log_w_sum[index], self.w_sum[index])

    def as_rows(self) -> Rows:
        """Return the fields as if they were data: y = W."""
        return Rows(self.w - np.float32(1), np.ones(len(self), np.float32), float(self.w_sum.mean()))

    def inputs(self, rows: Rows, n_threads: int) -> Array:
        """Return x . log W for all fields.

        Dense rows are multiplied by BLAS, but for a mini-batch, for which it would copy all of log W.
        """
        if len(rows) > _MINI_BATCH and not rows.is_sparse:
            return product(rows.raw(), self.log_w[:, : rows.n_features], n_threads)
        out = np.empty((len(rows), len(self)), np.float32)
        kernels.products(rows.arrays, self.log_w, out, n_threads)
        return out

    def base(self, prior: Prior | None) -> Array:
        """Return what I_c holds besides x: the sums of log W, and the prior's table."""
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
        """Return the fields W_c = sum_n s_nc y_n / sum_n s_nc (shrunk, if asked for), and the masses sum_n s_nc.

        `spare` fields of the same shape are overwritten: new memory for each step would cost as much as the step.
        """
        new = spare or self._like()
        mass = np.empty(len(self))
        kernels.m_step(
            rows.arrays,
            rows.scale,
            weight,
            activities.ids,
            activities.s,
            *(units or (0.0, 0.0)),
            self.w,
            *_before_any(shrinkage),
            new.w,
            new.log_w,
            new.log_w_sum,
            mass,
            n_threads,
        )
        new.set_sums(self, mass, rows.row_sum, shrinkage)
        return new, mass

    def learned(
        self, statistics: Statistics, row_sum: float, n_threads: int, spare: Fields | None, shrinkage: Shrinkage | None
    ) -> Fields:
        """Return the same fields, from what rows have taught part by part."""
        new = spare or self._like()
        kernels.finish_m_step(
            statistics.sums,
            statistics.mass,
            self.w,
            *_before_any(shrinkage),
            new.w,
            new.log_w,
            new.log_w_sum,
            n_threads,
        )
        new.set_sums(self, statistics.mass, row_sum, shrinkage)
        return new

    def _like(self) -> Fields:
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
        """Let some fields sum to A exactly; a field of which rounding has left nothing keeps its weights."""
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


def _before_any(shrinkage: Shrinkage | None) -> tuple[Array | None, float]:
    """Return what the kernels take for rows that every field has seen before any."""
    return (shrinkage.above, shrinkage.rows) if shrinkage else (None, 0.0)


def draw_distinct(hashes: Array, weight: Array | None) -> Array:
    """Return one index of each distinct row, in random order.

    Early places are drawn with a probability that follows the weight. The draw depends on the rows' contents
    (through `hashes`, which hold the seed) and not on their order, and a row of weight 3 is as good as three
    equal rows.
    """
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    total = np.bincount(which, weights=weight)
    u = (hashes[first] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    race = -np.log1p(-u) / total  # exponential clocks: the order in which they ring is a weighted draw
    order: Array = first[np.argsort(race, kind="stable")]
    return order


def start_from_rows(rows: Rows, weight: Array | None, chosen: Array) -> Fields:
    """Start for EM: the chosen rows mixed half and half with the mean."""
    return start_around(rows.moments(weight)[0], rows.take(chosen))


def start_around(mean: Array, chosen: Rows) -> Fields:
    """The same with a mean that is known."""
    w = chosen.y()
    w *= np.float32(0.5)
    w += 0.5 * mean.astype(np.float32)
    return Fields.from_weights(w)


def start_hebbian(rows: Rows, weight: Array | None, n_fields: int, rng: np.random.Generator) -> Fields:
    """Start as published: mean + 2 std * Uniform[0, 1) for each feature.

    It is not normalized, on purpose: the rows sum to more than A, a field that wins shrinks towards A, so fields
    that have not won yet are favored. Without it most fields never win.
    """
    mean, std = rows.moments(weight)
    w = rng.random((n_fields, rows.n_features))
    w *= 2 * std
    w += mean
    return Fields.from_weights(w)
