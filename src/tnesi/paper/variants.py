"""Harder variants of data sets: unbalanced classes, composite classes, wrong labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tnesi.data.source import ArraySource, Data
from tnesi.model.rows import dense
from tnesi.types import Array

RATIO = 20
"""Ratio of the largest to the smallest class in unbalanced data."""


def vary(data: Data, variant: str) -> Data:
    """Return a variant of a data set, training and test part alike: "unbalanced", "odd-even", or "" for the data."""
    if not variant:
        return data
    make = {"unbalanced": _unbalanced, "odd-even": _odd_even}[variant]
    test = None if data.test is None else make(data.test)
    return replace(make(data), test=test, name=f"{data.name}, {variant}")


def unbalanced_rows(y: Array, ratio: float = RATIO) -> Array:
    """Return sorted rows such that class sizes fall geometrically, down to 1 / `ratio` of the largest class.

    The random order of the classes depends only on their number. As many rows as possible are kept.

    Examples
    --------
    >>> y = np.repeat([0, 1, 2], 100)
    >>> sorted(np.bincount(y[unbalanced_rows(y, 4)]).tolist())
    [25, 50, 100]
    """
    classes, sizes = np.unique(y, return_counts=True)
    rng = np.random.default_rng(0)
    share = ratio ** -(rng.permutation(classes.size) / max(classes.size - 1, 1))
    wanted = np.floor(share * (sizes / share).min() + 1e-6).astype(int)
    rows = [rng.choice(np.flatnonzero(y == k), n, replace=False) for k, n in zip(classes, wanted, strict=True)]
    return np.sort(np.concatenate(rows))


def mislabel(y: Array, share: float, rng: np.random.Generator) -> Array:
    """Replace a share of the labels (rounded) by another class; None stays None.

    Examples
    --------
    >>> mislabel(np.array(["a", None, "b"], object), 1, np.random.default_rng(0))
    array(['b', None, 'a'], dtype=object)
    """
    given = np.array([row for row, label in enumerate(y.tolist()) if label is not None])
    names = np.unique(y[given])
    wrong = y.copy()
    for row in rng.choice(given, round(share * given.size), replace=False):
        wrong[row] = rng.choice(names[names != y[row]])
    return wrong


def _unbalanced(data: Data) -> Data:
    rows = unbalanced_rows(data.y)
    return replace(data, rows=ArraySource(dense(data.X[rows]), data.rows.image_shape), labels=data.y[rows])


def _odd_even(data: Data) -> Data:
    return replace(data, labels=np.where(data.y % 2, "odd", "even"))
