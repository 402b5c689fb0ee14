"""Self-labeling: classes learn on stored activities, or together with the fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.model.activities import Activities
from tnesi.model.classes import FieldClasses
from tnesi.model.fields import Prior
from tnesi.types import Array

_COOL_FROM, _COOL_TO = 0.7, 0.25
"""Before exact averages, the rate decreases to a quarter over the last 30 % of the passes, with the threshold halfway
between its value and 1."""
_EPOCHS_PER_ITERATION = 5
"""Passes of the second layer of a recurrent network per iteration of the first (EM)."""


@dataclass
class ClassLearner:
    """Learns the classes of the fields from labels and self-labels.

    Attributes
    ----------
    label : (N,) array of int32
        Classes of the training rows, -1 for unlabeled.
    recurrent : bool
        Whether the layer is a prior of the first one: log R_lc for rows with label l, and log sum_k R_kc for other
        rows.
    inferred_feedback : bool
        Whether an inferred label takes part in that prior like a given one (not published).
    exact : bool
        Whether R ends as the exact mean of the activities (EM), or as the result of the online rule.
    taught : (N,) array of int32
        The labels used last, given or inferred; -1 for none.
    """

    label: Array
    weight: Array | None
    n_classes: int
    self_label: bool
    threshold: float
    recurrent: bool
    learning_rate: float
    max_iter: int
    batch_size: int
    exact: bool
    n_threads: int
    rng: np.random.Generator
    inferred_feedback: bool = False
    classes: FieldClasses = field(init=False)
    taught: Array = field(init=False)
    interrupted: bool = field(init=False, default=False)

    def begin(self, n_fields: int) -> None:
        """Initialize all classes evenly over the fields."""
        self.classes = FieldClasses.even(n_fields, self.n_classes)
        self.taught = self.label.copy()

    @cached_property
    def rate(self) -> float:
        """eps_R: the rate times K / N, or K / L for L labels without self-labeling, at most 1."""
        counts = np.ones(self.label.size) if self.weight is None else self.weight.astype(np.float64)
        if self.self_label:
            return self.learning_rate * self.n_classes / float(counts.sum())
        return min(self.learning_rate * self.n_classes / float(counts[self.label >= 0].sum()), 1.0)

    def epoch(self, activities: sparse.csr_array, progress: float = 0.0) -> None:
        """Make a pass over all rows in random order; `progress` is the share of passes completed."""
        rate, threshold = self.rate, self.threshold
        if self.exact and progress >= _COOL_FROM:
            rate *= _COOL_TO ** ((progress - _COOL_FROM) / (1 - _COOL_FROM))
            threshold = (threshold + 1) / 2
        self._learn(activities, slice(None), self.rng.permutation(self.label.size), rate, threshold)

    def learn_batch(self, activities: Activities, points: Array) -> None:
        """Learn from the given rows as one mini-batch."""
        self.learn_batches(activities.to_csr(len(self.classes)), points)

    def learn_batches(self, activities: sparse.csr_array, points: Array) -> None:
        """Learn from the given rows in order, in mini-batches."""
        self._learn(activities, points, np.arange(points.size), self.rate, self.threshold)

    def learn_iteration(self, activities: Activities) -> None:
        """Make a few passes, for one iteration of the first layer."""
        stored = activities.to_csr(len(self.classes))
        for _ in range(_EPOCHS_PER_ITERATION):
            self.epoch(stored)

    def learn(self, activities: sparse.csr_array) -> None:
        """Learn from stored activities; Ctrl-C ends learning after the last complete pass."""
        try:
            if not self.exact or (self.self_label and (self.label < 0).any()):
                for i in range(self.max_iter):
                    self.epoch(activities, i / self.max_iter)
        except KeyboardInterrupt:
            self.interrupted = True
        if self.exact:
            self.classes = FieldClasses.average(activities, self.taught, self.weight, self.n_classes)

    def prior(self, points: Array | None = None, *, inferred: bool = True) -> Prior | None:
        """Return the prior of the fields for some rows (None: all rows); None in a feed-forward network."""
        if not self.recurrent:
            return None
        label = self.taught if inferred and self.inferred_feedback else self.label
        return self.classes.prior(label if points is None else label[points])

    def _learn(self, activities: sparse.csr_array, at: Any, order: Array, rate: float, threshold: float) -> None:
        self.taught[at] = self.classes.learn_epoch(
            activities,
            self.label[at],
            None if self.weight is None else self.weight[at],
            order,
            batch_size=self.batch_size,
            rate=rate,
            threshold=threshold,
            self_label=self.self_label,
            n_threads=self.n_threads,
        )
