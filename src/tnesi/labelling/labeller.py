"""Learning the second layer from few labels: one rule spreads them, one names clusters, and the data tell which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tnesi.labelling.clusters import Clusters, find_clusters, refine
from tnesi.labelling.graph import FieldGraph
from tnesi.labelling.naming import doubts, evidence, name_clusters, surroundings
from tnesi.layers.classes import Classes

Array = npt.NDArray[Any]
Method = Literal["cluster", "soft"]

STEPS = (10, 30, 100, 300)
"""How far labels may spread."""
_FIRM_FROM = 10
"""Labels per class from which a labelled point keeps its label for good."""
_TRUST = 0.9
"""The accuracy expected of spreading before a label has tested it; of clusters it is what their runs agree on."""
_FOLDS = 3


@dataclass(frozen=True)
class Labelled:
    """What has been learned from a set of labels.

    Attributes
    ----------
    layer : Classes
    method : {"cluster", "soft"}
    expected : dict of str to float
        Accuracy that each method may reach, from labels left out in turn and from what is known without labels.
    """

    layer: Classes
    method: Method
    expected: dict[str, float]


@dataclass
class Labeller:
    """Stored activities, what is known of them without labels (found when first needed), and the methods."""

    activities: sparse.csr_array
    weight: Array | None
    seed: int
    n_threads: int
    _clusters: dict[int, Clusters] = field(default_factory=dict)

    @cached_property
    def graph(self) -> FieldGraph:
        return FieldGraph.of(self.activities, self.weight)

    def clusters(self, n: int) -> Clusters:
        """Return the points in `n` clusters."""
        if n not in self._clusters:
            self._clusters[n] = find_clusters(self.activities, self.weight, n, self.seed, self.n_threads)
        return self._clusters[n]

    def learn(self, label: Array, n_classes: int, method: Literal["auto", "cluster", "soft"]) -> Labelled:
        """Learn a second layer from labels (-1 for none) by the given method, or by the more promising one."""
        test = _Test(self, label, n_classes)
        expected: dict[str, float] = {}
        if method != "cluster":
            expected["soft"] = test.soft
        if method != "soft":
            expected["cluster"] = test.cluster
        best: Method = "cluster" if expected.get("cluster", -1.0) > expected.get("soft", -1.0) else "soft"
        if best == "cluster":
            return Labelled(self.name(label, n_classes), best, expected)
        return Labelled(test.spread_layer(), best, expected)

    def spread_shares(self, points: Array, label: Array, n_classes: int, steps: Sequence[int]) -> list[Array]:
        """Return the shares of the classes in each field after several numbers of steps."""
        activities = self.activities[points]
        if self.weight is not None:
            activities = sparse.csr_array(sparse.diags_array(np.sqrt(self.weight[points])) @ activities)
        clamp = min(1.0, (points.size / n_classes / _FIRM_FROM) ** 2)
        spread = self.graph.spread(
            activities, label, n_classes, clamp=clamp, steps=steps, n_threads=self.n_threads
        )
        return list(spread)

    def name(self, label: Array, n_classes: int, n_unknown: int = 0) -> Classes:
        """Return the layer of clusters that got the names of the classes, the labels having their say.

        With `n_unknown` there are more clusters than classes; those left over are the last class, the unknown.
        """
        clusters = self.clusters(n_classes + n_unknown)
        points = np.flatnonzero(label >= 0)
        around = surroundings(self.activities, clusters.place, points, n_classes + n_unknown)
        cluster_of = name_clusters(evidence(around, label[points], n_classes))
        class_of = np.full(n_classes + n_unknown, n_classes)
        class_of[cluster_of] = np.arange(n_classes)
        total = n_classes + (n_unknown > 0)
        return refine(class_of[clusters.place], self.activities, label, self.weight, total, self.seed)


@dataclass
class _Test:
    """Labels left out in turn: how well the others predict them."""

    labeller: Labeller
    label: Array
    n_classes: int

    def __post_init__(self) -> None:
        self.points = np.flatnonzero(self.label >= 0)
        self.given = self.label[self.points]
        self.fold = _folds(self.given, self.n_classes, self.labeller.seed)

    @cached_property
    def _right(self) -> Array:
        """Which labels spreading predicts, by each of `STEPS`, with classes of one size and of their own (L x 4 x 2).

        Nothing for those never left out.
        """
        right = np.zeros((self.points.size, len(STEPS), 2))
        for out, rest in self._rounds():
            tested = self.labeller.activities[self.points[out]]
            for i, pair in enumerate(self._layers(rest, STEPS)):
                for j, layer in enumerate(pair):
                    right[out, i, j] = layer.posterior(tested).argmax(axis=1) == self.given[out]
        return right

    def _layers(self, use: Array, steps: Sequence[int]) -> list[list[Classes]]:
        shares = self.labeller.spread_shares(self.points[use], self.given[use], self.n_classes, steps)
        mass = self.labeller.graph.mass
        return [[Classes.from_shares(q, mass, sized=sized) for sized in (False, True)] for q in shares]

    @cached_property
    def _best(self) -> int:
        """Which of `STEPS`: the most, unless fewer are better by more than the chance of the labels."""
        right = self._right[:, :, 0]
        gain = right.sum(axis=0) - right[:, -1].sum()
        chance = np.sqrt(np.sum(right != right[:, -1:], axis=0)) + self.n_classes / 5
        better = np.where(gain > chance, gain, 0)
        return int(better.argmax()) if better.any() else len(STEPS) - 1

    @property
    def soft(self) -> float:
        """Expected accuracy of spreading."""
        return self._blend(float(self._right[:, self._best, 0].sum()), _TRUST)

    def spread_layer(self) -> Classes:
        """Return what spreading learns from all labels.

        Its classes are of one size, unless the labels left out say otherwise. As there may be equally many of every
        class among the labels but not among the data, they count by the sizes that the classes seem to have.
        """
        ((equal, sized),) = self._layers(np.full(self.points.size, True), [STEPS[self._best]])
        guess = np.concatenate([one.posterior(self.labeller.activities).argmax(axis=1) for one in (equal, sized)])
        share = np.bincount(guess, minlength=self.n_classes) / guess.size
        count = np.bincount(self.given, minlength=self.n_classes)
        gain = self._right[:, self._best, 1] - self._right[:, self._best, 0]
        gain *= (share / count)[self.given] * self.given.size
        return sized if gain.sum() > np.sqrt(np.sum(gain**2)) else equal

    @cached_property
    def cluster(self) -> float:
        """Expected accuracy of naming clusters."""
        clusters = self.labeller.clusters(self.n_classes)
        around = surroundings(self.labeller.activities, clusters.place, self.points, self.n_classes)
        right = 0.0
        for out, rest in self._rounds():
            cluster_of = name_clusters(evidence(around[rest], self.given[rest], self.n_classes))
            right += float(np.sum(clusters.place[self.points[out]] == cluster_of[self.given[out]]))
        fit = evidence(around, self.given, self.n_classes)
        doubt = doubts(fit, name_clusters(fit))
        swapped = np.triu(doubt).sum() * 2 / self.n_classes  # a share of the data, if classes are of one size
        return self._blend(right, clusters.agreement - swapped)

    def _rounds(self) -> list[tuple[Array, Array]]:
        return [(self.fold == f, self.fold != f) for f in range(self.fold.max() + 1)]

    def _blend(self, right: float, before: float) -> float:
        """Weigh the labels left out with what was believed before, which counts like one label per class."""
        return (right + self.n_classes * before) / (np.sum(self.fold >= 0) + self.n_classes)


def _folds(label: Array, n_classes: int, seed: int) -> Array:
    """Return in which round a label is left out; -1 is never: the only label of its class."""
    count = np.bincount(label, minlength=n_classes)
    n_folds = int(min(_FOLDS, count[count > 1].min(initial=_FOLDS)))
    fold = np.full(label.size, -1)
    rng = np.random.default_rng(seed)
    for k in np.flatnonzero(count > 1):
        mine = np.flatnonzero(label == k)
        fold[mine] = rng.permutation(mine.size) % n_folds
    return fold
