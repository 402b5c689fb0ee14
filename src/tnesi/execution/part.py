"""A part: consecutive training rows with their activities. A local engine has one part, workers have several.

Rows are processed in grains (see :func:`tnesi.execution.store.even_grain`), so results do not depend on how the rows
are divided into parts, as long as each part begins with a grain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tnesi.execution.store import ArrayStore, even_grain, parts
from tnesi.execution.survey import Survey
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, Statistics
from tnesi.model.rows import Rows, RowStore
from tnesi.search import Search
from tnesi.types import Array


@dataclass(frozen=True)
class Summary:
    """The result of a pass over the rows of a part.

    Attributes
    ----------
    energy : (n_grains,) array
        Weighted sums over each grain of the log-sums over K^(n) minus the constants of the likelihood.
    changed : int
        Number of rows whose best field changed.
    """

    energy: Array
    changed: int


@dataclass
class Part:
    """Rows with their activities.

    Attributes
    ----------
    store : RowStore
    sums : (N,) array of float64
        Sums of the stored rows.
    weight : (N,) array of float32 or None
    row_sum : float
        A, after `normalize`.
    grain : int
        Number of rows in each grain but the last, the same for all parts of the data. 0 chooses it from the rows.
    activities : Activities
        The result of the last pass.
    constant : (N,) array of float64
        sum_d log y_d! of each row.
    """

    store: RowStore
    sums: Array
    weight: Array | None
    n_threads: int
    row_sum: float = 0.0
    grain: int = 0
    activities: Activities = field(init=False)
    constant: Array = field(init=False)
    _scale: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.grain = self.grain or even_grain(self.store)

    @classmethod
    def of_rows(cls, rows: Rows, weight: Array | None, n_threads: int) -> Part:
        """Return normalized rows as a part."""
        part = cls(ArrayStore(rows.x), (rows.row_sum - rows.n_features) / rows.scale, weight, n_threads)
        part.row_sum, part._scale = rows.row_sum, rows.scale
        return part

    def normalize(self, row_sum: float) -> None:
        """Set the sum to which all rows are normalized."""
        self.row_sum = row_sum
        self._scale = ((row_sum - self.store.n_features) / self.sums).astype(np.float32)

    def rows(self) -> Rows:
        """Return all rows, which must be in memory."""
        return Rows(self.store.read(slice(None)), self._scale, self.row_sum)

    def surveys(self, seed: int) -> Iterator[Survey]:
        """Survey all rows, grain by grain."""
        for place, x in parts(self.store, self.grain):
            yield Survey.of(x, self.sums[place], self._weight_at(place), seed, self.n_threads)

    def find(self, fields: Fields, search: Search, prior: Prior | None) -> None:
        """Find the fields of all rows for the first time."""
        self.activities = Activities.large(self.store.n_rows, search.truncation)
        self.constant = np.empty(self.store.n_rows)
        for place, rows in self._grains():
            self.constant[place] = rows.log_factorials(self.n_threads)
            self.activities.put(place, search.find(fields, rows, _at(prior, place)))

    def find_constants(self) -> None:
        """Compute the constants of the likelihood."""
        self.constant = np.empty(self.store.n_rows)
        for place, rows in self._grains():
            self.constant[place] = rows.log_factorials(self.n_threads)

    def improve(
        self, fields: Fields, search: Search, prior: Prior | None, statistics: Statistics | None = None
    ) -> Summary:
        """Improve the fields of each row, and add up the statistics."""
        energy, changed = [], 0
        for place, rows in self._grains():
            own = self.activities.at(place)
            before = own.best
            search.improve(fields, rows, _at(prior, place), own)
            changed += int(np.count_nonzero(own.ids[:, 0] != before))
            energy.append(self._learn(place, rows, statistics))
        return Summary(np.array(energy), changed)

    def learn(self, statistics: Statistics | None) -> Summary:
        """Add up the statistics of the current activities."""
        return Summary(np.array([self._learn(place, rows, statistics) for place, rows in self._grains()]), 0)

    def resume(self, activities: Activities, statistics: Statistics | None) -> None:
        """Set activities of an earlier run, and add up their statistics."""
        self.activities = activities
        self.find_constants()
        self.learn(statistics)

    def _learn(self, place: slice, rows: Rows, statistics: Statistics | None) -> float:
        """Add the statistics of a grain; return its part of the free energy."""
        own = self.activities.at(place)
        if statistics is not None:
            statistics.add(rows, self._weight_at(place), own, self.n_threads)
        each = own.log_sum.astype(np.float64) - self.constant[place]
        return float(np.sum(each if self.weight is None else self.weight[place] * each))

    def _grains(self) -> Iterator[tuple[slice, Rows]]:
        for place, x in parts(self.store, self.grain):
            yield place, Rows(x, self._scale[place], self.row_sum)

    def _weight_at(self, place: slice) -> Array | None:
        return None if self.weight is None else self.weight[place]


def _at(prior: Prior | None, place: slice) -> Prior | None:
    return None if prior is None else prior.take(place)
