"""The plain supervised classifier: logistic regression on the labeled rows.

Its features are the square roots of the shares, scaled to a variance of ten in total. They make the distance between
rows that of Hellinger, the natural one for proportions: large shares do not outweigh all others, and documents of
different lengths are comparable.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from tnesi.model.linear_classes import LinearClasses
from tnesi.model.rows import Matrix
from tnesi.types import Array

_VARIANCE = 10.0
_MAX_ITER, _SLOPE = 100, 1e-4


def variance_scale(roots: Matrix, weight: Array | None) -> float:
    """Return the factor by which square roots of shares have a total variance of ten."""
    w = np.full(roots.shape[0], 1 / roots.shape[0]) if weight is None else weight / weight.sum(dtype=np.float64)
    squares = roots.multiply(roots).sum(axis=1) if sparse.issparse(roots) else np.einsum("nd,nd->n", roots, roots)
    mean = np.asarray(roots.T @ w, dtype=np.float64)
    variance = float(np.asarray(squares, dtype=np.float64).ravel() @ w - mean @ mean)
    return float(np.sqrt(_VARIANCE / variance)) if variance > 1e-12 else 1.0


def learn_logistic(roots: Matrix, label: Array, weight: Array | None, n_classes: int, scale: float) -> LinearClasses:
    """Learn from the square roots of the shares of labeled rows.

    The loss is that of scikit-learn's LogisticRegression with its default penalty. That class warns about few labels
    and few iterations, and warnings can only be silenced for all threads of a process.
    """
    n_features = roots.shape[1]
    present = np.unique(roots.indices) if sparse.issparse(roots) else np.arange(n_features)
    x = (roots[:, present] if present.size < n_features else roots).astype(np.float64) * scale  # other weights stay 0
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
    return LinearClasses("roots", weights, v[-1].astype(np.float32))
