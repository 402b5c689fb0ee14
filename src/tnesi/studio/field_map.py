"""A place on a grid for each field, with similar fields near each other.

The fields are put on the grid in the order of their two main directions. Then, in a few rounds, the grid is blurred,
less in each round, and all fields are reassigned to the most similar places (linear assignment sorting). Similarity
depends on the main directions of the fields and on the clusters of their rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter
from scipy.optimize import linear_sum_assignment

from tnesi.labeling.naming import shares_of
from tnesi.studio.first_layer import N_CLUSTERS, FirstLayer
from tnesi.types import Array

MOST_CELLS = 1200
_WIDE = 4 / 3
"""Columns per row of the grid."""
_DIRECTIONS = 16
_PROJECTED = 256
_RADII = (8, 6, 4, 3, 2, 1)
_CLUSTER_SAYS = 0.7
"""How much clusters count beside the looks of the fields."""


@dataclass(frozen=True)
class FieldMap:
    """Which fields are shown, and where.

    Attributes
    ----------
    columns, rows : int
    fields, x, y : (n,) arrays
    mass : (n,) array
        How many rows each of them stands for; fields that are not shown count for the nearest in their order.
    """

    columns: int
    rows: int
    fields: Array
    x: Array
    y: Array
    mass: Array


def make_map(layer: FirstLayer) -> FieldMap:
    """Lay out the fields, or a choice of them that stands for the data where there are many."""
    fields, mass = _chosen(layer.mass)
    n = fields.size
    columns = max(1, int(np.ceil(np.sqrt(n * _WIDE))))
    rows = -(-n // columns)
    features = _features(layer, fields)
    place = _sorted_on_grid(features, columns, rows)
    order = np.argsort(place, kind="stable")
    return FieldMap(columns, rows, fields[order], place[order] % columns, place[order] // columns, mass[order])


def _chosen(mass: Array) -> tuple[Array, Array]:
    """Return at most `MOST_CELLS` fields, evenly by mass: neighbors in the order of the fields are alike."""
    used = np.flatnonzero(mass > 0)
    if used.size == 0:
        used = np.arange(mass.size)
    if used.size <= MOST_CELLS:
        return used, mass[used]
    total = np.cumsum(mass[used])
    part = np.minimum((total - mass[used] / 2) / total[-1] * MOST_CELLS, MOST_CELLS - 1).astype(int)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    ends = np.append(starts[1:], used.size)
    chosen = [start + int(np.argmax(mass[used[start:end]])) for start, end in zip(starts, ends, strict=True)]
    return used[chosen], np.add.reduceat(mass[used], starts)


def _features(layer: FirstLayer, fields: Array) -> Array:
    """Return coordinates of the fields: main directions and shares of clusters."""
    w = np.sqrt(np.maximum(layer.fields(fields), 0))
    if w.shape[1] > 4 * _PROJECTED:
        w = w @ np.random.default_rng(0).standard_normal((w.shape[1], _PROJECTED)).astype(w.dtype)
    w = w - w.mean(axis=0)
    _, vectors = np.linalg.eigh((w.T @ w).astype(np.float64))
    looks = w @ vectors[:, ::-1][:, :_DIRECTIONS]
    looks = looks / max(np.sqrt((looks**2).sum(axis=1).mean()), 1e-12)
    shares = shares_of(layer.activities, layer.parts(), N_CLUSTERS)[fields]
    return np.hstack([looks, _CLUSTER_SAYS * np.sqrt(2) * shares]).astype(np.float32)


def _sorted_on_grid(features: Array, columns: int, rows: int) -> Array:
    """Return a place (row * columns + column) for each field."""
    n = len(features)
    place = np.empty(n, int)
    by_first = np.argsort(features[:, 0], kind="stable")
    free = [[row * columns + column for row in range(rows) if row * columns + column < n] for column in range(columns)]
    at = 0
    for cells in free:
        own = by_first[at : at + len(cells)]
        at += len(cells)
        place[own[np.argsort(features[own, 1], kind="stable")]] = cells
    there = np.zeros((rows, columns, 1), np.float32)
    there.reshape(-1)[:n] = 1
    for radius in _RADII:
        if 2 * radius >= max(rows, columns):
            continue
        grid = np.zeros((rows * columns, features.shape[1]), np.float32)
        grid[place] = features
        size = (2 * radius + 1, 2 * radius + 1, 1)
        blurred: Array = uniform_filter(grid.reshape(rows, columns, -1), size, mode="constant")
        blurred = (blurred / uniform_filter(there, size, mode="constant")).reshape(rows * columns, -1)[:n]
        cost = (features**2).sum(axis=1)[:, None] - 2 * features @ blurred.T + (blurred**2).sum(axis=1)
        place = linear_sum_assignment(cost)[1]
    return place
