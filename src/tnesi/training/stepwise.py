"""Stepwise EM: fields learn from a stream in batches of rows, each seen once.

The running statistics S_c = sum_n s_nc (y_n - 1) and m_c = sum_n s_nc are those of EM (eq. 14), except that earlier
rows are discounted with each batch of weight b:

    S <- k S + S(batch),  m <- k m + m(batch),  k = min((n / (n + b))^eta, 2^(-b / half_life))

n is the weight of all earlier rows. W follows from S and m by the M-step of EM with its prior. With eta = 0 all rows
have equal weight, which is best while fields have seen few rows. Later, the rows that fields saw before they converged
slow learning down: eta increases to 2 with the number of rows per field. The half-life is a parameter, for streams that
change over time.

An M-step of all fields and the lists and cells of the search take time that grows with C, so they are only recomputed
once every few C rows; a batch changes only the fields of its rows. The cost per row is therefore nearly independent of
C.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from tnesi.execution.local import sample_rows
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Shrinkage, Statistics, Units
from tnesi.model.rows import Rows
from tnesi.search import Search
from tnesi.types import Array

_YOUNG, _ETA = 30.0, 2.0
"""Number of rows per field at which eta is 1, and the maximum of eta."""
_RENEWAL = 4
"""Rows per field after which all fields, the lists and the cells are recomputed."""
_FAINT = 1e-3
"""Scale of the statistics below which they are multiplied by it."""
_UNUSED, _WORST = 0.1, 0.04
"""A field with less than this share of the mean mass is reinitialized with a row whose free energy is in this lowest
quantile of the recent rows."""


class BatchResult(NamedTuple):
    """Measurements on a batch before learning from it.

    Attributes
    ----------
    activities : Activities
    free_energy : float
        Mean over the rows.
    kept : float
        The factor by which earlier rows were discounted.
    """

    activities: Activities
    free_energy: float
    kept: float


@dataclass
class Recent:
    """The fields of recent rows, if the search needs them, and how well they explain these rows."""

    ids: Array
    quality: Array
    n: int = 0

    @classmethod
    def empty(cls, n_fields: int, truncation: int) -> Self:
        size = sample_rows(n_fields)
        return cls(np.empty((size, truncation), np.int32), np.empty(size))

    def add(self, ids: Array, quality: Array) -> None:
        size = self.quality.size
        place = (self.n + np.arange(quality.size)[-size:]) % size
        self.ids[place], self.quality[place] = ids[-size:, : self.ids.shape[1]], quality[-size:]
        self.n += quality.size


@dataclass
class Stepwise:
    """Fields with their running statistics.

    Attributes
    ----------
    fields : Fields
        Changed in place.
    search : Search
    row_sum : float
        A.
    strength : float
        Strength of the prior, in rows.
    statistics : Statistics
        Divided by `_scale`, which makes discounting cheap.
    above : (D,) array
        Running mean of the normalized rows, minus 1.
    weight_seen : float
        n, the weight of all rows so far.
    recent : Recent
    """

    fields: Fields
    search: Search
    row_sum: float
    strength: float
    statistics: Statistics
    above: Array
    weight_seen: float
    recent: Recent
    _scale: float = 1.0
    _since: float = 0.0
    _unused: Array = field(default_factory=lambda: np.empty(0, np.intp))
    _worst_below: float = -np.inf

    @classmethod
    def of(cls, fields: Fields, search: Search, row_sum: float, mass: Array, strength: float) -> Self:
        """Continue from given fields and masses, from which the statistics follow by the M-step."""
        above_w, rows = fields.w.astype(np.float64) - 1, mass[:, None] + strength
        above = (rows * above_w).sum(axis=0) / max(float(rows.sum()), 1e-300)
        sums = np.maximum(rows * above_w - strength * above, 0)
        total = sums.sum(axis=1, keepdims=True)
        sums *= np.divide(mass[:, None] * (row_sum - above.size), total, out=np.zeros_like(total), where=total > 0)
        own = Fields(*(array.copy() for array in (fields.w, fields.log_w, fields.log_w_sum, fields.w_sum)))
        statistics = Statistics(sums, mass.astype(np.float64), Units(0.0, 0.0))
        recent = Recent.empty(len(fields), search.truncation if search.learns_from_rows else 0)
        return cls(own, replace(search), row_sum, strength, statistics, above, float(mass.sum()), recent)

    def learn(self, rows: Rows, weight: Array | None, half_life: float | None, n_threads: int) -> BatchResult:
        """Learn from a batch."""
        self.search.n_threads = n_threads
        activities = self.search.find(self.fields, rows)
        quality = activities.log_sum - rows.log_factorials(n_threads)
        w = np.ones(len(rows), np.float32) if weight is None else weight
        kept = self._discount(float(w.sum(dtype=np.float64)), half_life)
        self.statistics.add(rows, (w / self._scale).astype(np.float32), activities, n_threads)
        changed = np.union1d(activities.ids[activities.s > 0], self._reinitialize(rows, w, quality))
        self._update(changed, n_threads)
        self.recent.add(activities.ids, quality)
        if self._since >= _RENEWAL * len(self.fields):
            self._update_all(n_threads)
        energy = float(np.average(quality, weights=weight)) - float(np.log(len(self.fields))) - self.row_sum
        return BatchResult(activities, energy, kept)

    def _discount(self, total: float, half_life: float | None) -> float:
        """Discount the statistics before a batch of the given weight; return the factor."""
        eta = min(_ETA, self.weight_seen / len(self.fields) / _YOUNG)
        kept = (self.weight_seen / (self.weight_seen + total)) ** eta
        if half_life is not None:
            kept = min(kept, 2.0 ** (-total / half_life))
        self.weight_seen += total
        self._since += total
        self._scale *= kept
        if self._scale < _FAINT:
            self._rescale()
        return float(kept)

    def _rescale(self) -> None:
        self.statistics.sums *= self._scale
        self.statistics.mass *= self._scale
        self._scale = 1.0

    def _update(self, changed: Array, n_threads: int) -> None:
        """Make an M-step of some fields."""
        sums, mass = (self._scale * array[changed] for array in (self.statistics.sums, self.statistics.mass))
        shrinkage = Shrinkage.towards(self.above, self.strength)
        before, statistics = self.fields.take(changed), Statistics(sums, mass, self.statistics.units)
        new = before.from_statistics(statistics, self.row_sum, n_threads, None, shrinkage)
        own = self.fields
        own.w[changed], own.log_w[changed], own.log_w_sum[changed] = new.w, new.log_w, new.log_w_sum
        own.w_sum[changed] = new.w_sum

    def _update_all(self, n_threads: int) -> None:
        """Make an M-step of all fields, then recompute lists and cells."""
        self._since = 0.0
        self._rescale()
        statistics = self.statistics
        self.above = statistics.sums.sum(axis=0) / statistics.mass.sum()
        self._update(np.arange(len(self.fields)), n_threads)
        self._unused = np.flatnonzero(statistics.mass < _UNUSED * statistics.mass.mean())
        ids, quality = self.recent.ids[: self.recent.n], self.recent.quality[: self.recent.n]
        self._worst_below = float(np.quantile(quality, _WORST))
        if self.search.learns_from_rows:
            self.search.prepare(self.fields, ids, quality)

    def _reinitialize(self, rows: Rows, weight: Array, quality: Array) -> Array:
        """Reinitialize unused fields, each with a badly explained row; return these fields.

        With the mass of one row and the default prior, this is the initialization of EM: half the row, half the mean.
        """
        n = min(self._unused.size, int(np.sum(quality < self._worst_below)))
        worst = np.argsort(quality, kind="stable")[:n]
        mine, self._unused = self._unused[: worst.size], self._unused[worst.size :]
        mass = weight[worst].astype(np.float64) / self._scale
        self.statistics.sums[mine] = mass[:, None] * (rows.take(worst).y() - 1)
        self.statistics.mass[mine] = mass
        return mine
