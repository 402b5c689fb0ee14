"""Activities with a known structure, like those of a first layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import sparse

Planted = Callable[..., tuple[sparse.csr_array, Any]]

_ACTIVE = 4


@pytest.fixture(scope="session")
def planted() -> Planted:
    """Return activities of points in clusters of the given sizes, and the clusters.

    Every cluster has fields of its own, in proportion to its size. A point has a few of them, any ones, or in a `ring`
    neighboring ones: a cluster is round, or long and thin. With the probability `leak` one field is of any cluster.
    """

    def make(
        sizes: Sequence[int], *, leak: float = 0.1, per_field: int = 8, ring: bool = False, seed: int = 0
    ) -> tuple[sparse.csr_array, Any]:
        rng = np.random.default_rng(seed)
        truth = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
        own = np.maximum(np.array(sizes) // per_field, _ACTIVE + 1)
        first = np.cumsum(own) - own
        if ring:
            fields = (rng.integers(own[truth])[:, None] + np.arange(_ACTIVE)) % own[truth][:, None]
        else:
            fields = np.array([rng.permutation(n)[:_ACTIVE] for n in own[truth]])
        fields += first[truth][:, None]
        astray = rng.random(truth.size) < leak
        fields[astray, -1] = rng.integers(own.sum(), size=astray.sum())
        s = rng.dirichlet(np.ones(_ACTIVE), truth.size).astype(np.float32)
        rows = np.repeat(np.arange(truth.size), _ACTIVE)
        return sparse.csr_array((s.ravel(), (rows, fields.ravel())), shape=(truth.size, own.sum())), truth

    return make


@pytest.fixture(scope="session")
def some_labels() -> Callable[..., Any]:
    """Return the labels of `n` points of each class, -1 for the others."""

    def draw(truth: Any, n: int, seed: int = 0) -> Any:
        label, rng = np.full(truth.size, -1, np.int32), np.random.default_rng(seed)
        for k in np.unique(truth):
            label[rng.permutation(np.flatnonzero(truth == k))[:n]] = k
        return label

    return draw
