"""Learning the second layer from few labels, by naming clusters or by spreading labels."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.labeling.calibration import sharpness_for
from tnesi.labeling.clusters import REFINE, SETTLE_AGAIN, Clusters, find_clusters, refine
from tnesi.labeling.features import Features
from tnesi.labeling.graph import FieldGraph
from tnesi.labeling.left_out import LeftOut
from tnesi.labeling.naming import evidence, name_clusters, shares_of, surroundings
from tnesi.model.classes import FieldClasses, normalized, sharpened
from tnesi.types import Array

_NEARBY, _FAR, FAR_IN_TESTS = (10, 30), 300, 100
"""Numbers of steps by which labels spread (fewer in tests, for speed). Each result is averaged with that of the second
number."""
_FIRM_FROM = 10
"""Labels per class from which a labeled row always keeps its label."""
TRUST = 0.955
"""Prior accuracy of spreading; that of clusters is the agreement of their runs."""
_CLEAN = 0.9
"""Minimum accuracy on held-out labels for self-labeling, which would not improve the result otherwise."""
_SURE, _MORE = 1.5, 0.4
"""Held-out labels override a default if they favor the alternative by this many standard errors plus this many labels
per class: they are few, and often not a representative sample."""
_SAMPLE = 5000
_LEAST = 1e-30
"""Size of a class that no label has reached."""


@dataclass
class Labeler:
    """Stored activities, with clusters and graphs that are computed on demand, and the labeling methods.

    Attributes
    ----------
    activities : csr_array of shape (N, C)
    n_fields : list of int
        Number of fields of each mixture.
    weight : (N,) array or None
    seed : int
        Seeds the initialization of the clusters.
    features : Features or None
        The rows themselves, if they are available.
    """

    activities: sparse.csr_array
    n_fields: Sequence[int]
    weight: Array | None
    seed: int
    n_threads: int = 1
    features: Features | None = None
    _clusters: dict[int, Clusters] = field(default_factory=dict)
    _shares: dict[int, Array] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out rows in a file or on a cluster, which other processes may not be able to read."""
        readable = self.features is None or self.features.store.in_memory
        return vars(self) if readable else vars(self) | {"features": None}

    @cached_property
    def graphs(self) -> list[FieldGraph]:
        """The graph of each mixture."""
        return [FieldGraph.of(own, self.weight) for own in self._of_mixtures(self.activities)]

    @cached_property
    def mass(self) -> Array:
        return np.concatenate([graph.mass for graph in self.graphs]) / len(self.graphs)

    @cached_property
    def sample(self) -> tuple[Array, sparse.csr_array]:
        """A sample of the rows and their activities, to estimate certainty and class sizes."""
        rows = np.sort(np.random.default_rng(self.seed).permutation(self.activities.shape[0])[:_SAMPLE])
        return rows, self.activities[rows]

    def clusters(self, n: int) -> Clusters:
        """Return a partition of the rows into `n` clusters."""
        if n not in self._clusters:
            self._clusters[n] = find_clusters(self.activities, self.weight, n, self.seed, self.n_threads)
        return self._clusters[n]

    def _around(self, points: Array, n: int) -> Array:
        """Return the shares of the `n` clusters around the given rows."""
        if n not in self._shares:
            self._shares[n] = shares_of(self.activities, self.clusters(n).place, n)
        return surroundings(self.activities[points], self._shares[n])

    def learn(self, label: Array, n_classes: int, method: str, n_unknown: int = 0) -> tuple[FieldClasses, str]:
        """Learn a second layer from labels (-1 for none); return it and the method used.

        `method` is "clusters", "spreading", or "auto" for the better one.
        """
        if method == "clusters" or n_unknown:
            return self.name(label, n_classes, n_unknown), "clusters"
        test = LeftOut.of(label, n_classes, self.seed)
        if method == "auto" and not test.rounds() and self._trusts_clusters(test, np.zeros(test.points.size)):
            return self.name(label, n_classes), "clusters"
        layers, held = self._try_spreading(test)
        best = _best_steps(_right(held, test)[:, :, 0], n_classes)
        if method == "auto" and test.rounds() and self._trusts_clusters(test, _right(held, test)[:, best, 0]):
            return self.name(label, n_classes), "clusters"
        return self._spread(test, layers, held)[0], "spreading"

    def spread(self, test: LeftOut) -> tuple[FieldClasses, Array]:
        """Return the layer that spreading learns, and the probabilities of held-out labels (L x K)."""
        return self._spread(test, *self._try_spreading(test))

    def _spread(self, test: LeftOut, layers: list[list[FieldClasses]], held: Array) -> tuple[FieldClasses, Array]:
        right = _right(held, test)
        best = _best_steps(right[:, :, 0], test.n_classes)
        sized = self._has_sizes(layers[best], test, right[:, best])
        layer, held = layers[best][sized], held[:, best, int(sized)]
        sharpness = self._calibrate(layer, test, right[:, best, 0])
        refined = self._refined(layer, test, right[:, best, 0], sized=sized)
        if refined is None:
            refined = layer.sharpened(sharpness)
        return refined, sharpened(held, sharpness)

    def name(self, label: Array, n_classes: int, n_unknown: int = 0) -> FieldClasses:
        """Return the layer of clusters that are named by the labels and then refined with them.

        With `n_unknown` there are more clusters than classes; the remaining clusters form the last, unknown class.
        """
        total = n_classes + (n_unknown > 0)
        place = self._named(label, n_classes, n_unknown)
        many = np.count_nonzero(label >= 0) >= _FIRM_FROM * n_classes
        passes = SETTLE_AGAIN if many and not n_unknown else REFINE  # an unknown class would lose its rows
        return refine(place, self.activities, label, self.weight, total, self.seed, self.n_threads, passes=passes)

    def _named(self, label: Array, n_classes: int, n_unknown: int = 0) -> Array:
        """Return the class of each row, according to the named clusters."""
        points, n = np.flatnonzero(label >= 0), n_classes + n_unknown
        class_of = np.full(n, n_classes)
        class_of[name_clusters(evidence(self._around(points, n), label[points], n_classes))] = np.arange(n_classes)
        place: Array = class_of[self.clusters(n).place]
        return place

    def _has_sizes(self, layers: Sequence[FieldClasses], test: LeftOut, right: Array) -> bool:
        """Return whether classes have the sizes that spreading estimates, or equal sizes.

        The default is equal sizes, unless held-out labels (`right` says which of them each layer predicts) favor the
        other layer. Since labels may be balanced while the data are not, labels are weighted by the estimated sizes of
        their classes.
        """
        if (right[:, 0] == right[:, 1]).all():
            return False
        _, sample = self.sample
        guess = np.concatenate([one.posterior(sample).argmax(axis=1) for one in layers])
        gain = (right[:, 1] - right[:, 0]) * test.worth(class_shares(guess, test.n_classes))
        return bool(_beyond_chance(gain, test.n_classes))

    def _refined(self, layer: FieldClasses, test: LeftOut, right: Array, *, sized: bool) -> FieldClasses | None:
        """Return the layer refined by a few passes of self-labeling, which sharpens the borders, or None.

        None is returned if labels are too few or rarely predicted, or if the passes change many rows: self-labeling
        then finds clusters of equal size instead of the classes.
        """
        if test.label.size < _FIRM_FROM * test.n_classes or test.expected(right, 0.0) < _CLEAN:
            return None
        place = layer.posterior(self.activities).argmax(axis=1)
        given = (self.activities, test.all, self.weight, test.n_classes, self.seed, self.n_threads)
        refined = refine(place, *given, passes=SETTLE_AGAIN, sized=sized)
        same = refined.posterior(self.activities).argmax(axis=1) == place
        return refined if np.average(same, weights=self.weight) > TRUST else None

    def spread_layers(
        self, points: Array, label: Array, n_classes: int, far: int, n_threads: int
    ) -> list[list[FieldClasses]]:
        """Return layers after 10, 30 and `far` steps: each with equal class sizes, and with estimated ones.

        Each layer is averaged with that of 30 steps and estimated sizes, which is more accurate near labels: many steps
        blur overlapping classes.
        """
        near = self.activities[points]
        if self.weight is not None:
            near = sparse.csr_array(sparse.diags_array(np.sqrt(self.weight[points])) @ near)
        clamp, steps = min(1.0, (points.size / n_classes / _FIRM_FROM) ** 2), (*_NEARBY, far)
        shares = [
            graph.spread(own, label, n_classes, clamp=clamp, steps=steps, n_threads=n_threads)
            for graph, own in zip(self.graphs, self._of_mixtures(near), strict=True)
        ]
        of_steps = [normalized(np.concatenate(of_mixtures)) for of_mixtures in zip(*shares, strict=True)]
        of_one_size = [normalized(q / np.maximum(self.mass @ q, _LEAST)) for q in of_steps]
        ways = zip(of_one_size, of_steps, strict=True)
        return [[FieldClasses.from_shares(q + of_steps[1], self.mass) for q in both] for both in ways]

    def _try_spreading(self, test: LeftOut) -> tuple[list[list[FieldClasses]], Array]:
        """Spread all labels, and the remaining labels of each round of cross-validation.

        Returns the layers of all labels (see `spread_layers`), and the probabilities of held-out labels in each
        (L x 3 x 2 x K).
        """
        held = np.zeros((test.points.size, len(_NEARBY) + 1, 2, test.n_classes), np.float32)
        tasks = [(np.ones(test.points.size, bool), _FAR), *((rest, FAR_IN_TESTS) for _, rest in test.rounds())]
        each = max(1, self.n_threads // len(tasks))

        def spread(task: tuple[Array, int]) -> list[list[FieldClasses]]:
            used, far = task
            return self.spread_layers(test.points[used], test.label[used], test.n_classes, far, each)

        _ = self.graphs  # computed once for all tasks
        with ThreadPoolExecutor(min(self.n_threads, len(tasks))) as pool:
            layers, *of_rounds = pool.map(spread, tasks)
        for (out, _), found in zip(test.rounds(), of_rounds, strict=True):
            tested = self.activities[test.points[out]]
            for i, j in np.ndindex(held.shape[1:3]):
                held[out, i, j] = found[i][j].posterior(tested)
        return layers, held

    def _trusts_clusters(self, test: LeftOut, right: Array) -> bool:
        """Return whether naming clusters is better than spreading, which predicts the labels that are `right`."""
        return test.prefers(*self._test_clusters(test), right, TRUST)

    def _test_clusters(self, test: LeftOut) -> tuple[Array, float]:
        """Return which held-out labels are predicted by naming clusters, and its prior accuracy."""
        right = (self.name_left_out(test) == test.label) & (test.part >= 0)
        return right.astype(np.float64), self.clusters(test.n_classes).agreement

    def name_left_out(self, test: LeftOut) -> Array:
        """Return the class of each held-out label according to clusters named by the others (0 if never held out)."""
        place, n_classes = self.clusters(test.n_classes).place[test.points], test.n_classes
        around = self._around(test.points, n_classes)
        found = np.zeros(test.points.size, np.int64)
        for out, rest in test.rounds():
            cluster_of = name_clusters(evidence(around[rest], test.label[rest], n_classes))
            found[out] = np.argsort(cluster_of)[place[out]]
        return found

    def _calibrate(self, layer: FieldClasses, test: LeftOut, right: Array) -> float:
        """Return the sharpness at which the certainty of spreading equals its expected accuracy.

        The accuracy is estimated on held-out labels, weighted by the sizes of their classes. With few labels, its prior
        is the share of rows on which naming clusters agrees.
        """
        rows, sample = self.sample
        posterior = layer.posterior(sample)
        best = posterior.argmax(axis=1)
        right = right * test.worth(class_shares(best, test.n_classes))
        agreed = float(right[test.part >= 0].mean()) if test.rounds() else 0.0
        if test.label.size < _FIRM_FROM * test.n_classes:
            agreed = float(np.mean(self._named(test.all, test.n_classes)[rows] == best))
        return sharpness_for(posterior, min(test.expected(right, agreed), 1.0))

    def _of_mixtures(self, activities: sparse.csr_array) -> list[sparse.csr_array]:
        """Return the activities of each mixture; every row sums to 1."""
        if len(self.n_fields) == 1:
            return [activities]
        ends = np.cumsum(self.n_fields)
        return [activities[:, end - n : end] * len(ends) for n, end in zip(self.n_fields, ends, strict=True)]


def class_shares(best: Array, n_classes: int) -> Array:
    """Return the shares of the classes in a sample; a class without rows counts as one row."""
    return np.asarray(np.maximum(np.bincount(best, minlength=n_classes), 1) / best.size)


def _right(held: Array, test: LeftOut) -> Array:
    """Return which held-out labels are the most probable class (L x 3 x 2)."""
    right = held.argmax(axis=-1) == test.label[:, None, None]
    return np.asarray(right & (test.part >= 0)[:, None, None], dtype=np.float64)


def _best_steps(right: Array, n_classes: int) -> int:
    """Return the index of the number of steps: the last, unless another is significantly better."""
    gain = right - right[:, -1:]
    better = np.where(_beyond_chance(gain, n_classes), gain.sum(axis=0), 0)
    return int(better.argmax()) if better.any() else right.shape[1] - 1


def _beyond_chance(gain: Array, n_classes: int) -> Array:
    """Return whether the gain in predicted labels (L, or L x alternatives) is significant."""
    out: Array = gain.sum(axis=0) > _SURE * np.sqrt(np.sum(gain**2, axis=0)) + _MORE * n_classes
    return out
