"""The features of the stored rows, from which linear classes are learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tnesi.labeling.leading import Leading
from tnesi.labeling.logistic import Form, learn_logistic, total_variance
from tnesi.model.linear_classes import LinearClasses, Transform, transformed
from tnesi.model.rows import RowStore
from tnesi.types import Array

_SAMPLE_VALUES = 2**20
_FEWEST_ROWS, _MOST_ROWS = 2_000, 20_000
"""Labels that lead learn from a sample of rows with about this many stored values, besides the labeled rows."""
_MOST_LABELS = 10_000
"""Labeled rows that are used, a random subset of more, and at least one of each class."""


@dataclass
class Features:
    """Rows, and what is known of them without labels.

    Attributes
    ----------
    store : RowStore
    weight : (N,) array or None
        Weights of the rows.
    seed : int
        Of the sample.
    """

    store: RowStore
    weight: Array | None
    seed: int
    _critical: dict[int, float] = field(default_factory=dict)
    _variances: dict[Transform, float] = field(default_factory=dict)

    @cached_property
    def sample(self) -> Array:
        """Numbers of the rows in the sample, in ascending order."""
        most = int(np.clip(_SAMPLE_VALUES / max(self.store.row_values, 1), _FEWEST_ROWS, _MOST_ROWS))
        random = np.random.default_rng(self.seed)
        return np.sort(random.permutation(self.store.n_rows)[:most])

    @cached_property
    def _sampled(self) -> Leading:
        return Leading.of(transformed(self.store.take(self.sample), "shares"), self._weight_at(self.sample))

    def scale(self, form: Form) -> float:
        """Return the factor by which features have the variance of a form."""
        if form.transform not in self._variances:
            rows = transformed(self.store.take(self.sample), form.transform)
            self._variances[form.transform] = total_variance(rows, self._weight_at(self.sample))
        variance = self._variances[form.transform]
        return float(np.sqrt(form.variance / variance)) if variance > 0 else 1.0

    def lead(self, points: Array, label: Array, n_classes: int) -> LinearClasses:
        """Learn classes from the top: see :mod:`tnesi.labeling.leading`; `points` are the labeled rows."""
        points, label = self._some(points, label)
        if n_classes not in self._critical:
            self._critical[n_classes] = self._sampled.critical(n_classes)
        rows = np.union1d(self.sample, points)
        place = np.full(rows.size, -1, np.int32)
        place[np.searchsorted(rows, points)] = label
        shares = transformed(self.store.take(rows), "shares")
        return Leading.of(shares, self._weight_at(rows)).learn(place, n_classes, self._critical[n_classes])

    def regress(self, points: Array, label: Array, n_classes: int, form: Form) -> LinearClasses:
        """Learn logistic regression from the labeled rows only."""
        points, label = self._some(points, label)
        rows = transformed(self.store.take(points), form.transform)
        scale = self.scale(form)
        return learn_logistic(rows, form.transform, label, self._weight_at(points), n_classes, scale)

    def _some(self, points: Array, label: Array) -> tuple[Array, Array]:
        if points.size <= _MOST_LABELS:
            return points, label
        order = np.random.default_rng(self.seed).permutation(points.size)
        of_each = order[np.unique(label[order], return_index=True)[1]]
        kept = np.union1d(of_each, order[:_MOST_LABELS])
        return points[kept], label[kept]

    def _weight_at(self, rows: Array) -> Array | None:
        return None if self.weight is None else self.weight[rows]
