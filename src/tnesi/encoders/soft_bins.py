"""Soft bins: a number as weights of the two knots that it lies between (linear B-splines).

knots : (n_knots,) of increasing numbers, in the type of the column; the outer ones are the ends of the scale
position : where a value lies, in units of knots: 1.25 is a quarter of the way from the second knot to the third

Differences are taken between integers where the column holds integers or time stamps, so that neighbors among
numbers beyond 2^53 stay apart.
"""

from __future__ import annotations

import numpy as np

from tnesi.types import Array


def quantile_knots(values: Array, n_knots: int) -> Array:
    """Return at most `n_knots` distinct values that split the others into parts of about equal size.

    A value that would fill more than one part by itself (the zeros of a column that is mostly zero) gets one knot, and
    the quantiles of the other values get those that are left.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite, at least one.

    Examples
    --------
    >>> quantile_knots(np.arange(101), 5)
    array([  0,  25,  50,  75, 100])
    >>> quantile_knots(np.array([0] * 95 + [1, 2, 3, 4, 5]), 5)
    array([0, 1, 2, 4, 5])
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= n_knots:
        return np.asarray(distinct)
    frequent = np.flatnonzero(counts * (n_knots - 1) > counts.sum())
    rest = np.repeat(np.delete(distinct, frequent), np.delete(counts, frequent))
    at = np.round(np.linspace(0, len(rest) - 1, max(2, n_knots - len(frequent)))).astype(np.intp)
    return np.unique(np.concatenate([distinct[frequent], rest[at], distinct[[0, -1]]]))


def positions(values: Array, knots: Array) -> Array:
    """Return where finite or infinite `values` lie among `knots`, as float64; what lies outside is at the end."""
    inside = np.clip(values, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, max(0, len(knots) - 2))
    if len(knots) == 1:
        return np.zeros(len(values))
    gaps = _difference(knots[1:], knots[:-1])[left]
    part = np.divide(_difference(inside, knots[left]), gaps, out=np.zeros(len(values)), where=gaps > 0)
    return np.asarray(left + part)  # half the smallest float is 0


def _difference(larger: Array, smaller: Array) -> Array:
    """Return the differences as float64, exact before they are rounded: those of int64 can need 64 bits."""
    if larger.dtype.kind in "iu":
        unsigned = np.uint64
        return (larger.astype(unsigned) - smaller.astype(unsigned)).astype(np.float64)
    # halved, so that the difference of the largest floats is finite
    return (larger / 2 - smaller / 2).astype(np.float64)


def soft_bins(position: Array, n_knots: int) -> Array:
    """Return the weights of the knots, (n_rows, n_knots) of float32; each row sums to 1.

    Examples
    --------
    >>> soft_bins(np.array([0.0, 1.25]), 3)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.75, 0.25]], dtype=float32)
    """
    left = np.minimum(position.astype(np.intp), max(0, n_knots - 2))
    right_weight = position - left
    weights = np.zeros((len(position), n_knots), np.float32)
    rows = np.arange(len(position))
    weights[rows, left] = 1 - right_weight
    if n_knots > 1:
        weights[rows, left + 1] = right_weight
    return weights
