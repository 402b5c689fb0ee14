"""The input layer: rows of non-negative numbers, normalised to a constant sum (eq. 5).

y = (A - D) x / sum(x) + 1, so that every row of y sums to A and no y is below 1. The data stay as they are (uint8
images are not copied to floats); a factor per row, ``scale`` = (A - D) / sum(x), does the rest inside the kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tnesi import kernels

Array = npt.NDArray[Any]
ZeroRows = Literal["error", "uniform"]

_SAFE = 1e30
"""Row sums outside [1 / _SAFE, _SAFE] are scaled in double precision before they become float32."""


@dataclass(frozen=True)
class Rows:
    """Normalised rows: ``y = scale[:, None] * x + 1``.

    Attributes
    ----------
    x : (N, D) array of uint8 or float32, C-contiguous
    scale : (N,) array of float32
    norm : float
        A, the sum of each row of y.
    """

    x: Array
    scale: Array
    norm: float

    def __len__(self) -> int:
        return int(self.x.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.x.shape[1])

    def take(self, index: Any) -> Rows:
        return Rows(self.x[index], self.scale[index], self.norm)

    def blocks(self, size: int) -> Iterator[tuple[slice, Rows]]:
        for start in range(0, len(self), size):
            place = slice(start, min(start + size, len(self)))
            yield place, self.take(place)

    def raw(self) -> Array:
        """Return x as float32, for BLAS."""
        return self.x.astype(np.float32, copy=False)

    def y(self) -> Array:
        """Return y itself, as float32."""
        return self.raw() * self.scale[:, None] + np.float32(1)

    def moments(self, weight: Array | None) -> tuple[Array, Array]:
        """Return the mean and the standard deviation of each feature of y."""
        total, square, mass = np.zeros(self.n_features), np.zeros(self.n_features), 0.0
        for place, block in self.blocks(4096):
            w = np.ones(len(block), np.float32) if weight is None else weight[place]
            above = block.raw() * block.scale[:, None]
            total += w @ above
            square += w @ np.square(above)
            mass += float(w.sum(dtype=np.float64))
        mean = total / mass
        return 1 + mean, np.sqrt(np.maximum(square / mass - mean**2, 0))

    def log_factorials(self, n_threads: int) -> Array:
        """Return sum_d log(y_d!) of each row, the constant of its likelihood."""
        out = np.empty(len(self))
        kernels.log_factorials(self.x, self.scale, out, n_threads)
        return out


def row_hashes(X: Array, seed: int, n_threads: int) -> Array:
    """Return a 64-bit hash of each row of uint8 or float32 values; equal rows have equal hashes."""
    out = np.empty(len(X), np.uint64)
    kernels.row_hashes(X, seed, out, n_threads)
    return out


def check_sums(
    sums: Array, zero_rows: ZeroRows, dtype: np.dtype[Any], n_features: int, number: Array | None = None
) -> bool:
    """Refuse rows that cannot be normalised; return whether sums are so extreme that rows have to be scaled first.

    `number` is what the user calls the rows, where it is not their place.
    """
    zero = np.flatnonzero(sums == 0)
    if zero.size and zero_rows == "error":
        first = zero[0] if number is None else number[zero[0]]
        more = f" (and {zero.size - 1} more)" if zero.size > 1 else ""
        raise ValueError(
            f"row {first}{more} is all zero and cannot be normalised: drop such rows, or pass "
            "zero_rows='uniform' to treat them as evenly spread"
        )
    sums = np.where(sums == 0, n_features, sums)
    extreme = bool(dtype != np.uint8 and (sums.max() > _SAFE or sums.min() < 1 / _SAFE))
    if extreme and not np.isfinite(sums.max()):
        raise ValueError("the sum of a row overflows: scale the data down (only the proportions in a row matter)")
    return extreme


def usable_rows(
    X: Array, zero_rows: ZeroRows, number: Array | None = None, *, extreme: bool | None = None
) -> tuple[Array, Array]:
    """Return `X` as uint8 or float32 and its row sums; an all-zero row is an error, or becomes an even one.

    `extreme` is what :func:`check_sums` says of all rows, where these are some of them.
    """
    with np.errstate(over="ignore"):
        sums = X.sum(axis=1, dtype=np.float64)
    if extreme is None:
        extreme = check_sums(sums, zero_rows, X.dtype, X.shape[1], number)
    zero = np.flatnonzero(sums == 0)
    if zero.size:
        X = X.copy()
        X[zero] = 1
        sums[zero] = X.shape[1]
    if extreme:
        X = X / sums[:, None]
        sums = X.sum(axis=1, dtype=np.float64)
    if X.dtype != np.uint8:
        X = X.astype(np.float32, copy=False)
    return np.ascontiguousarray(X), sums


def normalise(X: Array, norm: float, zero_rows: ZeroRows = "error") -> Rows:
    """Normalise non-negative rows to the sum `norm` (A).

    Examples
    --------
    >>> import numpy as np
    >>> rows = normalise(np.array([[1.0, 3.0], [0.0, 5.0]]), norm=10)
    >>> rows.y()
    array([[3., 7.],
           [1., 9.]], dtype=float32)
    """
    X, sums = usable_rows(X, zero_rows)
    check_norm(norm, X.shape[1])
    return Rows(X, ((norm - X.shape[1]) / sums).astype(np.float32), float(norm))


def check_norm(norm: float, n_features: int) -> None:
    """Refuse a sum that leaves nothing to share out."""
    if norm <= n_features:
        raise ValueError(
            f"norm={norm:g} must be larger than the number of features ({n_features}): every feature gets 1 and the "
            f"rest is shared out. Pass norm='auto', or for images of this size try norm={n_features + 116}"
        )
