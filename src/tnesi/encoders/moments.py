"""Means and covariances of vectors, added up block by block.

Blocks are centered before their squares are summed, and merged by the rule of Chan, Golub and LeVeque, so that a large
mean does not cost precision.
"""

from __future__ import annotations

import numpy as np

from tnesi.types import Array


class Moments:
    """The number, the mean and the scatter of vectors.

    Parameters
    ----------
    n_dimensions : int
    covariances : bool
        Whether to add up the scatter, a matrix of n_dimensions x n_dimensions.

    Examples
    --------
    >>> moments = Moments(2, covariances=True)
    >>> moments.add(np.array([[1.0, 0.0], [3.0, 0.0]]))
    >>> moments.add(np.array([[2.0, 3.0]]))
    >>> moments.n, moments.mean.tolist()
    (3, [2.0, 1.0])
    """

    def __init__(self, n_dimensions: int, *, covariances: bool) -> None:
        self.n = 0
        self.mean = np.zeros(n_dimensions)
        self.scatter = np.zeros((n_dimensions, n_dimensions)) if covariances else None

    def add(self, vectors: Array) -> None:
        n = len(vectors)
        if n == 0:
            return
        mean = vectors.mean(axis=0)
        total, shift = self.n + n, mean - self.mean
        if self.scatter is not None:
            centered = vectors - mean
            with np.errstate(over="ignore", invalid="ignore"):
                self.scatter += centered.T @ centered + np.outer(shift, shift) * (self.n * n / total)
        self.mean = self.mean + shift * (n / total)
        self.n = total

    def principal_directions(self, center: Array) -> tuple[Array, Array]:
        """Return the variances around `center`, largest first, and their directions as rows.

        The sign of a direction is that of its largest entry, so it does not depend on the linear algebra library.
        """
        assert self.scatter is not None
        shift = self.mean - center
        covariances = self.scatter / self.n + np.outer(shift, shift)
        if not np.isfinite(covariances).all():
            raise ValueError("The vectors hold numbers whose squares are too large: divide them by a constant.")
        variances, columns = np.linalg.eigh(covariances)
        order = np.argsort(variances)[::-1]
        directions = columns.T[order]
        largest = np.abs(directions).argmax(axis=1)
        signs = np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)
        return np.maximum(variances[order], 0), directions * signs[:, None]
