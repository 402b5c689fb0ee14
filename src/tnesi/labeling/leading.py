"""Labels that lead: the hierarchical model learned from its top, with one field per class.

Each class owns a field, which starts at its labeled rows; EM over all rows, with the labels clamped, moves it. With
p = x / sum(x), the mean m of all rows and the posterior t over the classes (one-hot for labeled rows):

    M_k = (sum_n t_nk p_n + beta m) / (sum_n t_nk + beta)
    I_nk = n_eff sum_d p_nd log(M_kd / m_d),        t_n = softmax(I_n)

With n_eff = A - D this is the first layer of the paper with labels at its top, learned by EM (the recurrent network).
With n_eff equal to the number of words of a document it is naive-Bayes EM (Nigam et al. 2000). Both are far too sure:
the features of a row are not independent, and a posterior that is one-hot after the first step never leaves its
neighborhood. n_eff is therefore a temperature of its own, which is found without labels.

**The critical temperature.** For small n_eff, log(M / m) is linear and EM is a power iteration with n_eff Z^T Z, where
Z_nd = (p_nd - m_d) / sqrt(N m_d) is the matrix of correspondence analysis. Its largest eigenvalues belong to the
contrasts that divide the rows best. If n_eff lambda < 1 a contrast decays to what the labels hold up (labels diffuse);
if n_eff lambda > 1 it grows by itself (the rows fall into clusters). All K - 1 contrasts between the classes can exist
from n_eff = 1 / lambda_(K-1) on. EM starts there and anneals to three times this value, so that coarse structure
settles before details do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, svds
from scipy.special import softmax

from tnesi.model.linear_classes import LinearClasses
from tnesi.model.rows import Matrix
from tnesi.types import Array

_COLDEST = 3.0
"""Final n_eff, as a multiple of the critical one."""
_STEPS, _HELD = 14, 6
"""Iterations in which n_eff increases, and after that."""
_PRIOR_ROWS = 1.0
"""beta: the weight of the mean of the data, in rows."""
_FEWEST_CONTRASTS, _MOST_CONTRASTS = 2, 60
_LEAST_EIGENVALUE = 1e-6


@dataclass(frozen=True, eq=False)
class Leading:
    """Rows from which leading classes are learned, with what does not depend on labels.

    Attributes
    ----------
    shares : (N, D) array of float32, or csr_array
        p.
    weight : (N,) array of float64
        Weights of the rows.
    mean : (D,) array of float64
        m, the weighted mean of p.
    """

    shares: Matrix
    weight: Array
    mean: Array

    @classmethod
    def of(cls, shares: Matrix, weight: Array | None) -> Leading:
        w = np.ones(shares.shape[0]) if weight is None else weight.astype(np.float64)
        return cls(shares, w, _sums(shares, w[:, None])[0] / w.sum())

    def critical(self, n_classes: int) -> float:
        """Return the n_eff from which on all contrasts between the classes can exist."""
        eigenvalues = self._eigenvalues(min(max(n_classes - 1, _FEWEST_CONTRASTS), _MOST_CONTRASTS))
        found = eigenvalues[min(n_classes - 1, eigenvalues.size) - 1] if eigenvalues.size else 1.0
        return float(1 / max(found, _LEAST_EIGENVALUE))

    def learn(self, label: Array, n_classes: int, critical: float) -> LinearClasses:
        """Learn the classes from labels (-1 for none); EM starts from the labeled rows only."""
        given = label >= 0
        of_label = np.eye(n_classes, dtype=np.float32)[label[given]]
        t = np.zeros((label.size, n_classes), np.float32)
        t[given] = of_label
        n_eff = critical * _COLDEST ** (np.minimum(np.arange(_STEPS + _HELD), _STEPS) / _STEPS)
        weights = self._weights(t)
        for value in n_eff:
            t = softmax(np.asarray(self.shares @ (np.float32(value) * weights)), axis=1)
            t[given] = of_label
            weights = self._weights(t)
        return LinearClasses("shares", np.float32(n_eff[-1]) * weights, np.zeros(n_classes, np.float32))

    def _weights(self, t: Array) -> Array:
        """Return log(M / m), D x K."""
        w = t * self.weight[:, None].astype(np.float32)
        sums = _sums(self.shares, w)
        mass = w.sum(axis=0, dtype=np.float64)[:, None]
        seen = self.mean > 0
        ratio = np.divide(sums, self.mean, out=np.ones_like(sums), where=seen)
        ratio[:, ~seen] = mass
        return np.ascontiguousarray(np.log((ratio + _PRIOR_ROWS) / (mass + _PRIOR_ROWS)).T, dtype=np.float32)

    def _eigenvalues(self, n: int) -> Array:
        """Return the largest eigenvalues of Z^T Z in descending order, without the trivial one."""
        n = min(n, *(size - 2 for size in self.shares.shape))
        if n < 1:
            return np.empty(0)
        seen = self.mean > 0
        scale = np.divide(1, np.sqrt(self.mean), out=np.zeros_like(self.mean), where=seen).astype(np.float32)
        of_rows = np.sqrt(self.weight / self.weight.sum()).astype(np.float32)
        root = np.sqrt(self.mean).astype(np.float32)

        def forward(v: Array) -> Array:
            v = v.ravel().astype(np.float32)
            return np.asarray(of_rows * (self.shares @ (scale * v) - root @ v), dtype=np.float64)

        def backward(u: Array) -> Array:
            u = of_rows * u.ravel().astype(np.float32)
            return np.asarray(scale * (self.shares.T @ u) - root * u.sum(), dtype=np.float64)

        z = LinearOperator(self.shares.shape, matvec=forward, rmatvec=backward, dtype=np.float64)
        begin = np.random.default_rng(0).normal(size=min(self.shares.shape))
        try:
            values = svds(z, k=n, v0=begin, tol=1e-3, return_singular_vectors=False)
        except ArpackError:  # all rows are alike
            return np.empty(0)
        return np.sort(values)[::-1] ** 2


def _sums(shares: Matrix, w: Array) -> Array:
    """Return w^T p as float64, K x D."""
    if sparse.issparse(shares):
        return np.asarray((shares.T @ w).T, dtype=np.float64)
    return np.asarray(w.T.astype(np.float32) @ shares, dtype=np.float64)
