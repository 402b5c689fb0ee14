"""Classes whose log odds are linear in the features of a row, beside the classes of the fields.

With the shares p_d = x_d / sum(x) of a row, the input of class k is

    I_k = b_k + sum_d V_dk f(p_d),        f(p) = p or sqrt(p),

and softmax(I) its posterior. A mixture of one Poisson field per class has this form (f(p) = p, V = n_eff log W^T, see
:mod:`tnesi.labeling.leading`), and so does logistic regression.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax

from tnesi import kernels
from tnesi.model.rows import Matrix, arrays_of, row_sums
from tnesi.types import Array

Transform = Literal["shares", "roots"]
TRANSFORMS: tuple[Transform, ...] = ("shares", "roots")
_BLOCK = 4096
_NEVER = -1e4
"""Input of a class that is never predicted."""


@dataclass(frozen=True, eq=False)
class LinearClasses:
    """Classes that are linear in the features.

    Attributes
    ----------
    transform : {"shares", "roots"}
        f.
    weights : (D, K) array of float32
        V.
    intercept : (K,) array of float32
        b.
    """

    transform: Transform
    weights: Array
    intercept: Array

    @property
    def n_classes(self) -> int:
        return int(self.intercept.size)

    def posterior(self, X: Matrix) -> Array:
        """Return the probabilities of the classes for checked rows, N x K.

        All-zero rows, which have no shares, count as rows of ones.
        """
        out = np.empty((X.shape[0], self.n_classes))
        for start in range(0, X.shape[0], _BLOCK):
            place = slice(start, start + _BLOCK)
            out[place] = self.posterior_of(transformed(X[place], self.transform))
        zero = row_sums(X) == 0
        if zero.any():
            out[zero] = self.posterior(np.ones((1, X.shape[1]), np.float32))
        return out

    def posterior_of(self, features: Matrix) -> Array:
        """Return the probabilities of the classes for :func:`transformed` rows, N x K."""
        return np.asarray(softmax(_products(features, self.weights).astype(np.float64) + self.intercept, axis=1))

    def sharpened(self, power: float) -> Self:
        """Return classes whose probabilities are those of these, raised to a power and renormalized."""
        factor = np.float32(power)
        return replace(self, weights=factor * self.weights, intercept=factor * self.intercept)

    def at(self, place: Array, n_classes: int) -> Self:
        """Return the same classes at the given places among `n_classes`; the others are never predicted."""
        weights = np.zeros((len(self.weights), n_classes), np.float32)
        intercept = np.full(n_classes, _NEVER, np.float32)
        weights[:, place], intercept[place] = self.weights, self.intercept
        return replace(self, weights=weights, intercept=intercept)


def _products(features: Matrix, weights: Array) -> Array:
    """Return features @ weights; the bits of a row do not depend on the other rows, as they would with BLAS."""
    if sparse.issparse(features):
        return np.asarray(features @ weights)
    of_classes = np.zeros((weights.shape[1], kernels.padded(len(weights))), np.float32)
    of_classes[:, : len(weights)] = weights.T
    out = np.empty((len(features), weights.shape[1]), np.float32)
    kernels.products(arrays_of(features), of_classes, out, 1)
    return out


def transformed(X: Matrix, transform: Transform) -> Matrix:
    """Return f(p) of rows, as float32; all-zero rows stay zero.

    Examples
    --------
    >>> transformed(np.array([[1, 3], [0, 0]], np.float32), "shares").tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    sums = row_sums(X)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0).astype(np.float32)
    if sparse.issparse(X):
        data = X.data * np.repeat(scale, np.diff(X.indptr))
        data = np.sqrt(data) if transform == "roots" else data
        return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
    shares = np.multiply(X, scale[:, None], dtype=np.float32)
    return np.sqrt(shares, out=shares) if transform == "roots" else shares
