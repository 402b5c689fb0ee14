"""Clusters of the rows, found without labels."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from tnesi.model.classes import FieldClasses, margins
from tnesi.types import Array

RESTARTS = 4
BATCH = 25
CLEAR = 0.6
"""Minimum margin between the two best classes for a row to be self-labeled."""
_HOT, _WARM, _COLD = 100.0, 20.0, 5.0
_SETTLE = [_HOT] * 12 + list(np.geomspace(_HOT, _WARM, 6))
_POLISH = [_WARM] * 10 + list(np.geomspace(_WARM, _COLD, 6))
"""Rates of the passes, as factors of K / N: of every restart, then of the best one."""
_CLEARER = 0.8
REFINE = [(_COLD, _CLEARER)] * 5
"""Rates and thresholds of the passes that refine named clusters, whose borders hardly change."""
SETTLE_AGAIN = [(_WARM, CLEAR)] * 4 + [(float(rate), _CLEARER) for rate in np.geomspace(_WARM, _COLD, 3)[1:]]
"""The same with many labels: a few passes of the published rule."""
_ORDERS = 2
"""Number of random orders of the rows whose results are averaged, which halves the variance."""
_FAINT = 1e-3


@dataclass(frozen=True)
class Clusters:
    """A partition of the rows.

    Attributes
    ----------
    place : (N,) array of int32
        The cluster of each row.
    agreement : float
        The share of rows on which the two best of several runs agree, a measure of how clustered the data are.
    """

    place: Array
    agreement: float


def find_clusters(
    activities: sparse.csr_array, weight: Array | None, n_clusters: int, seed: int, n_threads: int
) -> Clusters:
    """Learn a second layer without labels: the best of a few runs with random initializations.

    Every field is initialized in a random class. The published rule with a high rate, which acts as a temperature,
    merges regions until the borders between classes are short and lie where there are few rows; then the rate
    decreases.
    """
    unlabeled = np.full(activities.shape[0], -1, np.int32)

    def run(number: int) -> tuple[float, int, FieldClasses, Array]:
        rng = np.random.default_rng((seed, number))
        layer = _random_layer(activities.shape[1], n_clusters, rng)
        self_label(layer, activities, unlabeled, weight, rng, _SETTLE, CLEAR)
        t = layer.posterior(activities)
        return float(np.average(margins(t), weights=weight)), number, layer, t.argmax(axis=1)

    with ThreadPoolExecutor(n_threads) as pool:
        runs = sorted(pool.map(run, range(RESTARTS)), key=lambda one: (-one[0], one[1]))
    (_, _, layer, place), (_, _, _, other) = runs[:2]
    agree = agreement(place, other, n_clusters, weight)
    rng = np.random.default_rng((seed, RESTARTS))
    self_label(layer, activities, unlabeled, weight, rng, _POLISH, CLEAR, n_threads)
    return Clusters(layer.posterior(activities).argmax(axis=1).astype(np.int32), agree)


def agreement(one: Array, other: Array, n_clusters: int, weight: Array | None = None) -> float:
    """Return the share of rows on which two partitions agree under the best matching of their clusters."""
    both = np.zeros((n_clusters, n_clusters))
    np.add.at(both, (one, other), 1.0 if weight is None else weight)
    return float(both[linear_sum_assignment(-both)].sum() / both.sum())


def refine(
    place: Array,
    activities: sparse.csr_array,
    label: Array,
    weight: Array | None,
    n_classes: int,
    seed: int,
    n_threads: int,
    *,
    passes: Sequence[tuple[float, float]] = REFINE,
    sized: bool = True,
) -> FieldClasses:
    """Return the layer of a partition into classes, refined with the labels."""
    given = label >= 0
    initial = FieldClasses.average(activities, np.where(given, label, place), weight, n_classes, sized=sized)

    def run(number: int) -> Array:
        layer, rng = copy.deepcopy(initial), np.random.default_rng((seed, number))
        for rate, threshold in passes:
            self_label(layer, activities, label, weight, rng, [rate], threshold, max(1, n_threads // _ORDERS))
        return layer.posterior(activities)

    with ThreadPoolExecutor(min(n_threads, _ORDERS)) as pool:
        t: Array = np.mean(list(pool.map(run, range(_ORDERS))), axis=0)
    clear = np.where(margins(t) > CLEAR, t.argmax(axis=1), -1)
    return FieldClasses.average(activities, np.where(given, label, clear), weight, n_classes, sized=sized)


def self_label(
    layer: FieldClasses,
    activities: sparse.csr_array,
    label: Array,
    weight: Array | None,
    rng: np.random.Generator,
    rates: Sequence[float],
    threshold: float,
    n_threads: int = 1,
) -> None:
    """Make passes of self-labeling over all rows; a layer with class sizes updates them."""
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
            n_threads=n_threads,
        )
        if layer.sizes is not None:
            layer.measure_sizes(taught, weight)


def _random_layer(n_fields: int, n_classes: int, rng: np.random.Generator) -> FieldClasses:
    weights = np.full((n_classes, n_fields), _FAINT / n_fields)
    weights[rng.integers(n_classes, size=n_fields), np.arange(n_fields)] = n_classes / n_fields
    return FieldClasses.from_weights(weights)
