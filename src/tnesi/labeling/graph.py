"""The graph of the fields, over which labels spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy import sparse

from tnesi import kernels
from tnesi.types import Array

_WEAKEST_LINK = 1e-3
"""Weaker links are dropped: they are numerous, and connect different classes most often."""

_LEAST_LEAVING = 0.01
"""Minimum probability of leaving a field in a step; bridges are added where it is lower."""
_BRIDGES, _BUSIEST = 3, 0.1
"""Number of bridges of an island, and maximum probability of leaving a field through all bridges that end in it."""
_ISLANDS = 1000
"""Islands whose bridges are computed at a time, which limits memory."""
_FLAT = 0.1
"""Activities are raised to this power, which makes the fields of a row nearly equal in weight."""

_CLOSE = 1e-4
_DENSE, _BLOCK = 0.1, 1000


@dataclass(frozen=True)
class FieldGraph:
    """Fields, linked by the rows that they explain together.

    A label spreads from a row to its fields, on to the other rows of these fields, and so on: with the activities S and
    the masses m_c = sum_n s_nc of the fields, q <- S^T S q / m. The graph stores S^T S, scaled by 1 / sqrt(m) on both
    sides, which makes it symmetric; sqrt(m) is its stationary vector.

    Rows in sparse regions of the data often have a field that is hardly active elsewhere. Labels would neither leave
    nor reach such an island, so it gets bridges to the next fields of its rows, even if their activities are tiny.

    Attributes
    ----------
    mass : (C,) array of float64
        m, the masses of the fields.
    links : csr_array of float32, C x C
    pace : float
        Length of a step relative to a graph without bridges.
    """

    mass: Array
    links: sparse.csr_array
    pace: float = 1.0

    @classmethod
    def of(cls, activities: sparse.csr_array, weight: Array | None) -> FieldGraph:
        """Return the graph of stored activities, with optional row weights."""
        length = np.diff(activities.indptr)
        each = np.ones(activities.nnz) if weight is None else np.repeat(weight.astype(np.float64), length)
        mass = np.bincount(activities.indices, activities.data * each, activities.shape[1])
        root = np.sqrt(mass)
        scaled = activities.data * np.sqrt(each) * _inverse(root)[activities.indices]
        near = sparse.csr_array((scaled, activities.indices, activities.indptr), shape=activities.shape)
        links = _products(near, near)
        links.data[links.data < _WEAKEST_LINK] = 0
        links.eliminate_zeros()
        leaving = (links @ root) * _inverse(root) - links.diagonal()
        bridges = _bridges(activities, weight, mass, leaving)
        pace = 1 / (1 + 2 * float((bridges @ root * _inverse(root)).max()))  # keeps eigenvalues nonnegative
        links = sparse.csr_array((links + bridges) * pace)
        kept = sparse.diags_array((root - links @ root) * _inverse(root))  # self-links replace dropped links
        return cls(mass, sparse.csr_array(links + kept).astype(np.float32), pace)

    def spread(
        self,
        activities: sparse.csr_array,
        label: Array,
        n_classes: int,
        *,
        clamp: float,
        steps: Sequence[int],
        n_threads: int,
    ) -> list[Array]:
        """Spread the labels of the given rows; return the shares of the classes in each field (C x K).

        Initially, all classes have equal shares in every field. The contribution of the labels after n steps is a sum
        of powers of the links up to n - 1, which is approximated by a polynomial of far lower degree (see
        :func:`_series`).

        Parameters
        ----------
        activities : csr_array
            Activities of the labeled rows, scaled by the square roots of their weights if given.
        label : array of int
            Their classes.
        clamp : float
            Weight of a labeled row's label against its fields; 1 means that the label never changes.
        steps : sequence of int
            Numbers of steps for which to return the shares.
        """
        clamp *= self.pace
        inverse = _inverse(np.sqrt(self.mass))
        near = sparse.csr_array(activities.astype(np.float64) @ sparse.diags_array(inverse))
        links = _none_below_zero(sparse.csr_array(self.links - clamp * (near.T @ near)), np.sqrt(self.mass))
        links = links.astype(np.float32)
        root_weight = activities.sum(axis=1, dtype=np.float64)[:, None]  # since activities sum to 1
        source = np.zeros((self.mass.size, kernels.padded(n_classes)), np.float32)
        source[:, :n_classes] = clamp * (near.T @ (root_weight * (np.eye(n_classes)[label] - 1 / n_classes)))
        out = np.empty((len(steps), *source.shape), np.float32)
        indptr, indices = links.indptr.astype(np.int64), links.indices.astype(np.int32)
        kernels.spread(indptr, indices, links.data, source, _series(tuple(steps)), out, n_threads)
        known = (self.mass > 0)[:, None] / n_classes
        return [np.maximum(known + added[:, :n_classes] * inverse[:, None], 0) for added in out]


@cache
def _series(steps: tuple[int, ...]) -> Array:
    """Return 1 + x + ... + x^(n - 1) for each n of `steps`, as coefficients of Chebyshev polynomials of 2 x - 1.

    The eigenvalues of the links are in [0, 1], where the coefficients decay like a Gaussian of width sqrt(n). Terms
    that contribute less than `_CLOSE` in total are dropped (57 are left for 300 steps).
    """
    rows = []
    for n in steps:
        nodes = chebpts1(n)
        exact = chebvander(nodes, n - 1).T @ (((1 + nodes) / 2)[:, None] ** np.arange(n)).sum(axis=1) * 2 / n
        exact[0] /= 2
        rows.append(exact[: 1 + np.count_nonzero(np.cumsum(np.abs(exact[:0:-1]))[::-1] > _CLOSE)])
    out = np.zeros((len(rows), max(row.size for row in rows)), np.float32)
    for i, row in enumerate(rows):
        out[i, : row.size] = row
    return out


def _none_below_zero(links: sparse.csr_array, root: Array) -> sparse.csr_array:
    """Return nonnegative links with the same product with `root`.

    Clamping subtracts the contribution of the labeled rows from all links between their fields, including weak ones
    that were dropped. Negative links are moved to the diagonal, where the weak links went; otherwise the shares of
    fields with nearly no mass, whose links are all weak, would leave [0, 1].
    """
    below = links.minimum(0)
    if not below.nnz:
        return links
    return sparse.csr_array(links - below + sparse.diags_array((below @ root) * _inverse(root)))


def nearness(activities: sparse.csr_array) -> sparse.csr_array:
    """Return the flattened activities of the rows, a measure of nearness to the fields (rows sum to 1).

    The activities themselves are too sharp: an outlier with its own field would be near to no other.
    """
    near = sparse.csr_array((activities.data**_FLAT, activities.indices, activities.indptr), shape=activities.shape)
    return sparse.csr_array(sparse.diags_array(1 / near.sum(axis=1)) @ near)


def _bridges(activities: sparse.csr_array, weight: Array | None, mass: Array, leaving: Array) -> sparse.csr_array:
    """Return links for islands, which labels leave too rarely (C x C, scaled like the others)."""
    missing = np.where(mass > 0, np.maximum(_LEAST_LEAVING - leaving, 0), 0)
    islands = np.flatnonzero(missing)
    if not islands.size:
        return sparse.csr_array((mass.size, mass.size))
    near = nearness(activities).astype(np.float64)
    found = [
        _next_fields(near, weight, mass, islands[start : start + _ISLANDS])
        for start in range(0, islands.size, _ISLANDS)
    ]
    island, other, value = (np.concatenate(each) for each in zip(*found, strict=True))
    share = value / np.bincount(island, value, mass.size)[island]
    flow = share * missing[island] * np.minimum(mass[island], mass[other])
    at_other = np.bincount(other, flow, mass.size) * _inverse(mass)
    flow *= np.minimum(1, _BUSIEST * _inverse(at_other))[other]
    ends = np.concatenate([island, other]), np.concatenate([other, island])
    root = np.sqrt(mass)
    return sparse.csr_array((np.tile(flow, 2) / (root[ends[0]] * root[ends[1]]), ends), shape=(mass.size,) * 2)


def _next_fields(near: sparse.csr_array, weight: Array | None, mass: Array, islands: Array) -> tuple[Array, ...]:
    """Return the next fields of the rows of each island: island, field, and its nearness.

    Fields with less mass than the island count less, since they can carry less.
    """
    of_islands = near[:, islands]
    if weight is not None:
        of_islands = sparse.csr_array(sparse.diags_array(weight.astype(np.float64)) @ of_islands)
    common = _products(of_islands, near)
    common.sort_indices()
    row, other = np.repeat(np.arange(islands.size), np.diff(common.indptr)), common.indices
    value = common.data * np.minimum(1, mass[other] / mass[islands[row]])
    value = value.astype(np.float32).astype(np.float64)  # makes ties independent of the order of summation
    value[other == islands[row]] = 0
    begins = np.flatnonzero(np.diff(row, prepend=-1))
    found = []
    for _ in range(_BRIDGES):
        best = np.maximum.reduceat(value, begins)
        places = np.flatnonzero(value == np.repeat(best, np.diff(begins, append=row.size)))
        places = places[np.unique(row[places], return_index=True)[1]]
        places = places[value[places] > 0]
        found.append((islands[row[places]], other[places], value[places]))
        value[places] = 0
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))


def _products(one: sparse.csr_array, other: sparse.csr_array) -> sparse.csr_array:
    """Return A^T B. Without truncation most fields are active for most rows, and dense blocks are far faster."""
    n, n_fields = other.shape
    if other.nnz < _DENSE * n * n_fields:
        return sparse.csr_array(one.T @ other)
    total = np.zeros((one.shape[1], n_fields))
    for start in range(0, n, _BLOCK):
        block = slice(start, start + _BLOCK)
        total += one[block].toarray().T @ other[block].toarray()
    return sparse.csr_array(total)


def _inverse(x: Array) -> Array:
    out: Array = np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)
    return out
