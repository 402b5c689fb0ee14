"""The plain supervised classifier: logistic regression on the labeled rows.

Its features are the square roots of the shares, scaled to a variance of ten in total. They make the distance between
rows that of Hellinger, the natural one for proportions: large shares do not outweigh all others, and documents of
different lengths are comparable.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from tnesi.model.linear_classes import LinearClasses
from tnesi.model.rows import Matrix
from tnesi.types import Array

_VARIANCE = 10.0
_MAX_ITER = 100


def variance_scale(roots: Matrix, weight: Array | None) -> float:
    """Return the factor by which square roots of shares have a total variance of ten."""
    w = np.full(roots.shape[0], 1 / roots.shape[0]) if weight is None else weight / weight.sum(dtype=np.float64)
    squares = roots.multiply(roots).sum(axis=1) if sparse.issparse(roots) else np.einsum("nd,nd->n", roots, roots)
    mean = np.asarray(roots.T @ w, dtype=np.float64)
    variance = float(np.asarray(squares, dtype=np.float64).ravel() @ w - mean @ mean)
    return float(np.sqrt(_VARIANCE / variance)) if variance > 1e-12 else 1.0


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore what scikit-learn says about few iterations and few labels: close to the optimum is enough.

    Filters belong to the whole process: enter this before starting threads, not in each of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        yield


def learn_logistic(roots: Matrix, label: Array, weight: Array | None, n_classes: int, scale: float) -> LinearClasses:
    """Learn from the square roots of the shares of labeled rows; every class has a label.

    Call it within :func:`without_warnings`.
    """
    model = LogisticRegression(max_iter=_MAX_ITER).fit(roots.astype(np.float64) * scale, label, weight)
    coefficients, intercept = model.coef_, model.intercept_
    if n_classes == 2:
        coefficients = np.vstack([np.zeros_like(coefficients), coefficients])
        intercept = np.array([0.0, intercept[0]])
    weights = np.ascontiguousarray(scale * coefficients.T, dtype=np.float32)
    return LinearClasses("roots", weights, intercept.astype(np.float32))
