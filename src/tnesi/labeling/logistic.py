"""The plain supervised classifier: logistic regression on the labeled rows, in several forms.

Its features are the shares or their square roots. Square roots make the distance between rows that of Hellinger, the
natural one for proportions: large shares do not outweigh all others. Either are scaled to a given variance in total.
With the penalty |V|^2 / 2 this is the strength of regularization: a small variance is for labels that say little about
each row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from tnesi.model.linear_classes import LinearClasses, Transform
from tnesi.model.rows import Matrix
from tnesi.types import Array

_MAX_ITER, _SLOPE = 100, 1e-4
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Form:
    """A form of logistic regression.

    Attributes
    ----------
    transform : {"roots", "shares"}
        The features.
    variance : float
        Their variance in total.
    """

    transform: Transform
    variance: float


FORMS = (Form("roots", 10.0), Form("roots", 1.0), Form("shares", 10.0), Form("shares", 1.0))


def total_variance(features: Matrix, weight: Array | None) -> float:
    """Return the sum of the variances of all features, or 0 if it is not more than rounding errors."""
    w = np.full(features.shape[0], 1 / features.shape[0]) if weight is None else weight / weight.sum(dtype=np.float64)
    squares: Array
    if sparse.issparse(features):
        squares = sparse.csr_array((features.data.astype(np.float64) ** 2, features.indices, features.indptr),
                                   shape=features.shape).sum(axis=1)  # fmt: skip
    else:
        squares = np.einsum("nd,nd->n", features, features, dtype=np.float64)
    mean = np.asarray(features.T @ w, dtype=np.float64)
    square = float(np.asarray(squares).ravel() @ w)
    variance = square - float(mean @ mean)
    return variance if variance > _ROUNDING * square else 0.0


def learn_logistic(
    features: Matrix, transform: Transform, label: Array, weight: Array | None, n_classes: int, scale: float
) -> LinearClasses:
    """Learn from the :func:`transformed` labeled rows, multiplied by `scale`.

    The loss is that of scikit-learn's LogisticRegression with its default penalty. That class warns about few labels
    and few iterations, and warnings can only be silenced for all threads of a process.
    """
    n_features = features.shape[1]
    present = np.unique(features.indices) if sparse.issparse(features) else np.arange(n_features)
    some = features[:, present] if present.size < n_features else features  # other weights stay 0
    x = some.astype(np.float64) * scale
    w = np.ones(label.size) if weight is None else weight.astype(np.float64)
    w /= (total := w.sum())
    penalty = (2 if n_classes == 2 else 1) / total  # two classes share what one has there
    place = np.arange(label.size), label

    def loss(flat: Array) -> tuple[float, Array]:
        v = flat.reshape(-1, n_classes)
        log_t = log_softmax(x @ v[:-1] + v[-1], axis=1)
        error = np.exp(log_t)
        error[place] -= 1
        error *= w[:, None]
        slope = np.vstack([x.T @ error + penalty * v[:-1], error.sum(axis=0)])
        return float(penalty / 2 * np.sum(v[:-1] ** 2) - w @ log_t[place]), slope.ravel()

    begin = np.zeros((x.shape[1] + 1) * n_classes)
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": _MAX_ITER, "gtol": _SLOPE})
    v = found.x.reshape(-1, n_classes)
    weights = np.zeros((n_features, n_classes), np.float32)
    weights[present] = scale * v[:-1]
    return LinearClasses(transform, weights, v[-1].astype(np.float32))
