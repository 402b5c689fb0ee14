"""The generative model of a network (eqs. 1 to 3): a class at random, a field of the class, Poisson counts around it.

p(k) = 1 / K, p(l | k) = delta_lk, p(c | k) = R_kc, p(y | c) = prod_d Pois(y_d; W_cd).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.utils import check_random_state

from tnesi.errors import InvalidDataError
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.labeling.labels import encode_labels
from tnesi.model.rows import normalize
from tnesi.types import Array

__all__ = ["joint_log_likelihood", "sample_labeled"]

_BLOCK = 512
"""Rows whose inputs are in memory at a time."""


def sample_labeled(
    network: NeuralSimpletron, n_samples: int, random_state: int | np.random.RandomState | None = None
) -> tuple[Array, Array, Array]:
    """Draw labeled rows from a network.

    Parameters
    ----------
    network : NeuralSimpletron
        Fitted, with labels.
    n_samples : int
        Number of rows.
    random_state : int, RandomState instance or None
        Seeds the draws.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Counts y; they include the 1 that normalization adds to every feature.
    y : ndarray of shape (n_samples,)
        The class of each row.
    fields : ndarray of shape (n_samples,)
        The field of each row.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tnesi.paper import OnlineRule, presets
    >>> from tnesi.paper.generative import sample_labeled
    >>> X, y = load_digits(return_X_y=True)
    >>> network = presets.t_nesi(n_components=80, row_sum=180, rule=OnlineRule(max_iter=5), random_state=0).fit(X, y)
    >>> rows, labels, fields = sample_labeled(network, 3, random_state=0)
    >>> rows.shape, labels.shape
    ((3, 64), (3,))
    """
    random = check_random_state(random_state)
    R = _weights(network)
    k = random.randint(len(R), size=n_samples)
    at = random.random_sample(n_samples)
    fields = np.empty(n_samples, int)
    for one, end in enumerate(np.cumsum(R, axis=1)):
        fields[k == one] = np.minimum(np.searchsorted(end, at[k == one]), R.shape[1] - 1)
    return random.poisson(network.mixture_.means_[fields]).astype(np.float64), network.classes_[k], fields


def joint_log_likelihood(network: NeuralSimpletron, X: Any, y: Any) -> Array:
    """Return log p(y, l) of labeled rows, and log p(y) of unlabeled ones, in nats.

    Parameters
    ----------
    network : NeuralSimpletron
        Fitted, with labels.
    X : array-like of shape (n_samples, n_features)
        Rows, which are normalized as in `fit`.
    y : array-like of shape (n_samples,)
        Labels; unlabeled rows have the marker `network.unlabeled`.

    Returns
    -------
    log_likelihood : ndarray of shape (n_samples,)
    """
    R, model = _weights(network), network.mixture_.model_
    rows = normalize(np.asarray(X), model.row_sum)
    label, names = encode_labels(y, network.unlabeled, none_is_fine=True, one_is_fine=True)
    place = np.searchsorted(network.classes_, names)
    known = np.minimum(place, len(network.classes_) - 1)
    if not np.array_equal(network.classes_[known], names):
        raise InvalidDataError("y has a class that the network has not learned", advice="pass its classes only")
    own = np.where(label < 0, -1, known[label] if names.size else -1)
    w = model.fields.w.astype(np.float64)
    with np.errstate(divide="ignore"):
        log_prior = np.log(np.vstack([R, R.sum(axis=0)]) / len(R))  # the last row is of unlabeled rows
    out = np.empty(len(rows))
    for part, block in rows.blocks(_BLOCK):
        counts = block.y().astype(np.float64)
        each = counts @ np.log(w).T - w.sum(axis=1) + log_prior[own[part]]
        out[part] = logsumexp(each, axis=1) - gammaln(counts + 1).sum(axis=1)
    return out


def _weights(network: NeuralSimpletron) -> Array:
    """Return R, whose rows sum to 1."""
    R = network.class_weights_.astype(np.float64)
    return np.asarray(R / R.sum(axis=1, keepdims=True))
