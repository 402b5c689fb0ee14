"""Assignment of clusters to classes, and its confidence."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from tnesi.model.classes import sums_by_class
from tnesi.types import Array

_DOUBT = 1e-3
"""Approximate probability that a label lies outside its cluster."""


def shares_of(activities: sparse.csr_array, place: Array, n_clusters: int) -> Array:
    """Return the shares of the clusters among the rows for which a field is active (C x M)."""
    count = sums_by_class(activities, None, place, n_clusters)
    out: Array = count / np.maximum(count.sum(axis=1, keepdims=True), 1)
    return out


def surroundings(activities: sparse.csr_array, shares: Array) -> Array:
    """Return the shares of the clusters around rows with the given activities: the means over their fields (L x M).

    Fields have equal weight regardless of their activity, so that the wider neighborhood counts for outliers, which
    have their own field.
    """
    near = sparse.csr_array((np.ones(activities.nnz), activities.indices, activities.indptr), shape=activities.shape)
    out: Array = (near @ shares) / np.maximum(near.sum(axis=1), 1)[:, None]
    return out


def evidence(around: Array, label: Array, n_classes: int) -> Array:
    """Return how well each class fits each cluster, in nats (K x M), from the surroundings of the labels."""
    fit = np.zeros((n_classes, around.shape[1]))
    np.add.at(fit, label, np.log(around + _DOUBT))
    return fit


def name_clusters(fit: Array) -> Array:
    """Return the cluster of each class: the best one-to-one assignment."""
    return np.asarray(linear_sum_assignment(-fit)[1])


def doubts(fit: Array, cluster_of: Array) -> Array:
    """Return the probability that two classes should exchange their clusters, for each pair (K x K)."""
    named = fit[:, cluster_of]
    own = np.diag(named)
    loss = own[:, None] + own[None, :] - named - named.T
    out: Array = 1 / (1 + np.exp(np.clip(loss, -50, 50)))
    np.fill_diagonal(out, 0)
    return out


def confidence(activities: sparse.csr_array, place: Array, label: Array, n_classes: int) -> tuple[Array, Array]:
    """Return the probability that the rows of each class are named correctly, and the class it may be confused with."""
    points = np.flatnonzero(label >= 0)
    shares = shares_of(activities, place, max(int(place.max(initial=0)) + 1, n_classes))
    around = surroundings(activities[points], shares)[:, :n_classes]
    doubt = doubts(evidence(around, label[points], n_classes), np.arange(n_classes))
    np.fill_diagonal(doubt, -1)
    return 1 - doubt.max(axis=1), doubt.argmax(axis=1)
