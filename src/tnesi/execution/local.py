"""The engine of one process: all rows in one part, in memory or in a file, with threads inside the kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tnesi.execution.part import Part, Summary
from tnesi.execution.survey import Survey
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, Shrinkage, Statistics, Units
from tnesi.model.rows import Rows
from tnesi.search import Search
from tnesi.types import Array


class LocalEngine:
    """Passes over the training rows in this process.

    Attributes
    ----------
    part : Part
        All rows.
    n_rows : int
    total : float
        Total weight of the rows.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self.n_rows = part.store.n_rows
        self.total = float(self.n_rows if part.weight is None else part.weight.sum(dtype=np.float64))
        self._statistics: Statistics | None = None

    @classmethod
    def of(cls, rows: Rows, weight: Array | None, n_threads: int) -> LocalEngine:
        """Return the engine of normalized rows in memory."""
        return cls(Part.of_rows(rows, weight, n_threads))

    @property
    def row_sum(self) -> float:
        return self.part.row_sum

    @property
    def n_features(self) -> int:
        return self.part.store.n_features

    @property
    def activities(self) -> Activities:
        """Activities of all rows after the last pass."""
        return self.part.activities

    def survey(self, seed: int) -> Survey:
        return Survey.joined(self.part.surveys(seed))

    def take(self, index: Array) -> Any:
        """Return the rows with the given indices."""
        return self.part.store.take(index)

    def normalize(self, row_sum: float) -> None:
        self.part.normalize(row_sum)

    def begin(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Find the fields of all rows for the first time."""
        search.begin(fields)
        self.part.find(fields, search, prior)
        self._statistics = self._new_statistics(fields)
        if not search.searches_twice:
            return replace(self.part.learn(self._statistics), changed=self.n_rows)
        search.build_lists(self.sample(len(fields)).ids, len(fields))
        summary = self.part.improve(fields, search, prior, self._statistics)  # lists are more accurate than cells
        search.build_lists(self.sample(len(fields)).ids, len(fields))
        return replace(summary, changed=self.n_rows)

    def resume(self, fields: Fields, search: Search, activities: Activities) -> None:
        """Resume from activities that an earlier run has found for the same rows."""
        self._statistics = self._new_statistics(fields)
        self.part.resume(activities, self._statistics)

    def step(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Improve the fields of all rows after the weights changed."""
        self._statistics = self._new_statistics(fields)
        summary = self.part.improve(fields, search, prior, self._statistics)
        if search.needs_lists():
            search.build_lists(self.sample(len(fields)).ids, len(fields))
        return summary

    def m_step(self, fields: Fields, shrinkage: Shrinkage | None, spare: Fields | None) -> Fields:
        """Return the fields learned from the last pass; see :meth:`Fields.m_step`."""
        if self._statistics is not None:
            return fields.from_statistics(self._statistics, self.row_sum, self.part.n_threads, spare, shrinkage)
        part, units = self.part, self._units()
        new, _ = fields.m_step(part.rows(), part.weight, part.activities, part.n_threads, spare, shrinkage, units)
        return new

    def sample(self, n_fields: int) -> Activities:
        """Return the activities of evenly spaced rows, enough to find the neighbors of each field."""
        return self.activities.at(slice(None, None, sample_step(self.n_rows, n_fields)))

    def sample_constant(self, n_fields: int) -> Array:
        """Return the constants sum_d log y_d! of the same rows."""
        return self.part.constant[:: sample_step(self.n_rows, n_fields)]

    def _units(self) -> Units:
        return Units.for_rows(self.total, self.row_sum - self.n_features)

    def _new_statistics(self, fields: Fields) -> Statistics | None:
        """Return empty statistics, or None for a single grain in memory, which needs no accumulation."""
        if self.part.store.in_memory and self.n_rows <= self.part.grain:
            return None
        if self._statistics is None:
            return Statistics.zeros(len(fields), self.n_features, self._units())
        self._statistics.clear()
        return self._statistics


_SAMPLE_ROWS, _SAMPLE_PER_FIELD = 2**16, 8


def sample_rows(n_fields: int) -> int:
    """Return the number of rows that is enough to find the neighbors of each field."""
    return max(_SAMPLE_ROWS, _SAMPLE_PER_FIELD * n_fields)


def sample_step(n_rows: int, n_fields: int) -> int:
    """Return the distance of the sampled rows from which neighbor lists are built.

    Examples
    --------
    >>> sample_step(60_000, 10_000), sample_step(5_000_000, 10_000)
    (1, 62)
    """
    return max(1, n_rows // sample_rows(n_fields))
