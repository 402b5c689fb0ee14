"""Clusters of the points, found without any label."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from tnesi.layers.classes import Classes

Array = npt.NDArray[Any]

RESTARTS = 3
BATCH = 25
_HOT, _HOT_PASSES = 100.0, 20
_COLD, _COOLING_PASSES = 5.0, 10
_CLEAR = 0.6
_FAINT = 1e-3
_REFINING_PASSES, _CLEARER = 10, 0.8


@dataclass(frozen=True)
class Clusters:
    """A partition of the points.

    Attributes
    ----------
    layer : Classes
        A second layer whose classes are the clusters.
    place : (N,) array of int32
        The cluster of each point.
    agreement : float
        The share of points on which the two best of several runs agree: how far the data are made of clusters.
    """

    layer: Classes
    place: Array
    agreement: float


def find_clusters(
    activities: sparse.csr_array, weight: Array | None, n_clusters: int, seed: int, n_threads: int
) -> Clusters:
    """Let a second layer find its classes by itself: the best of a few runs from random starts.

    Every field begins in a random class. The published rule with a high rate, which acts as a temperature, makes
    classes grow together until the borders between them are short and run where few points are; then it cools.
    """

    def run(number: int) -> tuple[float, int, Classes, Array]:
        rng = np.random.default_rng((seed, number))
        layer = _random_layer(activities.shape[1], n_clusters, rng)
        rates = [_HOT] * _HOT_PASSES + list(np.geomspace(_HOT, _COLD, _COOLING_PASSES))
        nobody = np.full(activities.shape[0], -1, np.int32)
        sharpen(layer, activities, nobody, weight, rng, rates, _CLEAR)
        t = layer.posterior(activities)
        two = np.partition(t, -2, axis=1)[:, -2:]
        return float(np.average(two[:, 1] - two[:, 0], weights=weight)), number, layer, t.argmax(axis=1)

    with ThreadPoolExecutor(n_threads) as pool:
        runs = sorted(pool.map(run, range(RESTARTS)), key=lambda one: (-one[0], one[1]))
    (_, _, layer, place), (_, _, _, other) = runs[:2]
    return Clusters(layer, place.astype(np.int32), agreement(place, other, n_clusters, weight))


def agreement(one: Array, other: Array, n_clusters: int, weight: Array | None = None) -> float:
    """Return the share of points on which two partitions agree, whatever the clusters are called."""
    both = np.zeros((n_clusters, n_clusters))
    np.add.at(both, (one, other), 1.0 if weight is None else weight)
    return float(both[linear_sum_assignment(-both)].sum() / both.sum())


def refine(
    place: Array, activities: sparse.csr_array, label: Array, weight: Array | None, n_classes: int, seed: int
) -> Classes:
    """Return the layer of a partition whose parts have got their names, after the labels have had their say."""
    given = label >= 0
    rng = np.random.default_rng(seed)
    layer = Classes.average(activities, np.where(given, label, place), weight, n_classes, sized=True)
    sharpen(layer, activities, label, weight, rng, [_COLD] * _REFINING_PASSES, _CLEARER)
    t = layer.posterior(activities)
    two = np.partition(t, -2, axis=1)[:, -2:]
    clear = np.where(two[:, 1] - two[:, 0] > _CLEAR, t.argmax(axis=1), -1)
    return Classes.average(activities, np.where(given, label, clear), weight, n_classes, sized=True)


def sharpen(
    layer: Classes,
    activities: sparse.csr_array,
    label: Array,
    weight: Array | None,
    rng: np.random.Generator,
    rates: list[float],
    threshold: float,
) -> None:
    """Passes of self-labelling over all points; a layer that knows the sizes of its classes keeps track of them."""
    n = label.size
    total = float(n if weight is None else weight.sum(dtype=np.float64))
    for rate in rates:
        taught = layer.learn_epoch(
            activities,
            label,
            weight,
            rng.permutation(n),
            batch_size=BATCH,
            rate=float(rate) * layer.n_classes / total,
            threshold=threshold,
            self_label=True,
        )
        if layer.sizes is not None:
            layer.measure_sizes(taught, weight)


def _random_layer(n_fields: int, n_classes: int, rng: np.random.Generator) -> Classes:
    weights = np.full((n_classes, n_fields), _FAINT / n_fields)
    weights[rng.integers(n_classes, size=n_fields), np.arange(n_fields)] = n_classes / n_fields
    return Classes.from_weights(weights)
