"""The input layer: rows of non-negative numbers, normalized to a constant sum (eq. 5).

y = (A - D) x / sum(x) + 1, so that every row of y sums to A and no y is below 1. The data are not converted (uint8
images stay uint8, sparse rows stay sparse): the kernels multiply each row by ``scale`` = (A - D) / sum(x). y - 1 is as
sparse as x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from tnesi import kernels
from tnesi.errors import InvalidDataError, InvalidParameterError
from tnesi.model.tensor_rows import log_factorials, moments, usable_tensor
from tnesi.system.devices import is_tensor
from tnesi.types import Array

Matrix = Array | sparse.csr_array

_MOMENT_ROWS = 512
_EVEN_BYTES = 2**30
"""Maximum memory for the all-zero rows of a sparse matrix, which become dense."""
_SAFE = 1e30
"""Row sums outside [1 / _SAFE, _SAFE] are scaled in double precision before they become float32."""


class RowStore(Protocol):
    """Rows that can be read repeatedly.

    Attributes
    ----------
    n_rows, n_features : int
    row_values : float
        Mean number of stored values per row.
    in_memory : bool
        Whether the rows are in memory.
    """

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def row_values(self) -> float: ...
    @property
    def in_memory(self) -> bool: ...

    def read(self, place: slice) -> Any:
        """Return consecutive rows."""

    def take(self, index: Array) -> Any:
        """Return the rows with the given indices."""


@dataclass(frozen=True)
class Rows:
    """Normalized rows: ``y = scale[:, None] * x + 1``.

    Attributes
    ----------
    x : (N, D) array of uint8 or float32, C-contiguous, or csr_array of float32 in canonical form, without zeros; or a
        tensor, for a search on its device
    scale : (N,) array of float32
    row_sum : float
        A, the sum of each row of y.
    """

    x: Matrix
    scale: Array
    row_sum: float

    def __len__(self) -> int:
        return int(self.x.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.x)

    @cached_property
    def arrays(self) -> kernels.Given:
        """X as the kernels take it."""
        return arrays_of(self.x)

    def take(self, index: Any) -> Rows:
        return Rows(self.x[index], self.scale[index], self.row_sum)

    def blocks(self, size: int) -> Iterator[tuple[slice, Rows]]:
        for start in range(0, len(self), size):
            place = slice(start, min(start + size, len(self)))
            yield place, self.take(place)

    def raw(self) -> Array:
        """Return x as a dense array of float32, for BLAS."""
        return dense(self.x).astype(np.float32, copy=False)

    def above(self) -> Matrix:
        """Return y - 1."""
        if not sparse.issparse(self.x):
            return self.raw() * self.scale[:, None]
        return _with_data(self.x, self.x.data * _of_rows(self.x, self.scale))

    def y(self) -> Array:
        """Return y as a dense array of float32."""
        y = dense(self.above())
        y += np.float32(1)
        return y

    def moments(self, weight: Array | None) -> tuple[Array, Array]:
        """Return the mean and the standard deviation of each feature of y.

        A second pass sums the squared deviations from the mean. For nearly constant features, the difference of the raw
        moments would be mostly rounding error.
        """
        if is_tensor(self.x):
            return moments(self.x, self.scale, weight)
        w = np.ones(len(self)) if weight is None else weight.astype(np.float64)
        mass, total, square = w.sum(), np.zeros(self.n_features), np.zeros(self.n_features)
        for place, block in self.blocks(_MOMENT_ROWS):
            total += _column_sums(block.above().astype(np.float64), w[place])
        mean = total / mass
        for place, block in self.blocks(_MOMENT_ROWS):
            above = block.above().astype(np.float64)
            if not sparse.issparse(above):
                square += _column_sums((above - mean) ** 2, w[place])
            else:
                square += _column_sums(_with_data(above, (above.data - mean[above.indices]) ** 2), w[place])
        if sparse.issparse(self.x):
            present = _column_sums(_with_data(self.x, np.ones(self.x.nnz)), w)
            sometimes_zero = np.bincount(self.x.indices, minlength=self.n_features) < len(self)
            square += np.where(sometimes_zero, np.maximum(mass - present, 0), 0) * mean**2
        return 1 + mean, np.sqrt(square / mass)

    def log_factorials(self, n_threads: int) -> Array:
        """Return sum_d log(y_d!) of each row, the constant of its likelihood."""
        if is_tensor(self.x):
            return log_factorials(self.x, self.scale)
        out = np.empty(len(self))
        kernels.log_factorials(self.arrays, self.scale, out, n_threads)
        return out


def dense(X: Matrix) -> Array:
    return X.toarray() if sparse.issparse(X) else X


def arrays_of(X: Matrix) -> kernels.Given:
    """Return `X` as the kernels take it: the array itself, or the parts of a sparse one."""
    if not sparse.issparse(X):
        return X
    return X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False), X.data


def row_hashes(X: Matrix, seed: int, n_threads: int) -> Array:
    """Return a 64-bit hash of each row of uint8 or float32 values; equal rows have equal hashes."""
    out = np.empty(X.shape[0], np.uint64)
    kernels.row_hashes(arrays_of(X), seed, out, n_threads)
    return out


@np.errstate(over="ignore")
def row_sums(X: Matrix) -> Array:
    """Return the sum of each row, in float64; sums that overflow are infinite."""
    if not sparse.issparse(X):
        return np.asarray(X.sum(axis=1, dtype=np.float64))
    sums = np.zeros(X.shape[0])  # SciPy would sum in float32
    filled = np.flatnonzero(np.diff(X.indptr))
    if filled.size:
        sums[filled] = np.add.reduceat(X.data, X.indptr[filled], dtype=np.float64)
    return sums


def _column_sums(x: Matrix, w: Array) -> Array:
    """Return w @ x, summed row by row for any number of threads."""
    return np.asarray(x.T @ w) if sparse.issparse(x) else np.einsum("n,nd->d", w, x)


def _of_rows(X: sparse.csr_array, values: Array) -> Array:
    """Return the value of its row for each entry of `X`."""
    return np.repeat(values, np.diff(X.indptr))


def _with_data(X: sparse.csr_array, data: Array) -> sparse.csr_array:
    return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)


def _with_even_rows(X: Matrix, zero: Array) -> Matrix:
    """Return `X` with the all-zero rows `zero` set to ones."""
    if not sparse.issparse(X):
        X = X.copy()
        X[zero] = 1
        return X
    n_bytes = len(zero) * X.shape[1] * (X.data.itemsize + X.indices.itemsize)
    if n_bytes > _EVEN_BYTES:
        raise InvalidDataError(
            f"{len(zero):,} rows are all zero, and treating them as evenly spread over {X.shape[1]:,} features "
            f"would take {n_bytes / 1e9:.1f} GB of memory",
            advice="drop them, or use fewer features",
        )
    count = np.diff(X.indptr)
    count[zero] = X.shape[1]
    new = np.repeat(np.isin(np.arange(len(count)), zero), count)
    data, indices = np.ones(len(new), X.dtype), np.empty(len(new), X.indices.dtype)
    data[~new], indices[~new] = X.data, X.indices
    indices[new] = np.tile(np.arange(X.shape[1]), len(zero))
    indptr = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    return sparse.csr_array((data, indices, indptr), shape=X.shape)


def check_sums(sums: Array) -> None:
    """Raise an error if a row sum overflows."""
    if not np.isfinite(sums.max()):
        raise InvalidDataError(
            "the sum of a row overflows", advice="scale the data down (only the proportions in a row matter)"
        )


class UsableRows(NamedTuple):
    """Rows that can be normalized.

    Attributes
    ----------
    x : (N, D) array of uint8 or float32, or csr_array of float32
    sums : (N,) array of float64
        Row sums of `x`, all positive.
    zero : array of int
        Indices of all-zero rows, which are set to ones in `x`.
    """

    x: Matrix
    sums: Array
    zero: Array


def usable_rows(X: Matrix) -> UsableRows:
    """Return `X` as uint8 or float32 and its row sums; all-zero rows are set to ones.

    A sparse `X` is in canonical form and becomes float32.
    """
    if is_tensor(X):
        return UsableRows(*usable_tensor(X, _SAFE))
    sums = row_sums(X)
    check_sums(sums)
    zero = np.flatnonzero(sums == 0)
    if zero.size:
        X = _with_even_rows(X, zero)
        sums[zero] = X.shape[1]
    extreme = np.flatnonzero((sums > _SAFE) | (sums < 1 / _SAFE))
    if extreme.size:
        divisor = np.ones(len(sums))
        divisor[extreme] = sums[extreme]
        X = _with_data(X, X.data / _of_rows(X, divisor)) if sparse.issparse(X) else X / divisor[:, None]
        sums[extreme] = row_sums(X[extreme])
    if sparse.issparse(X):
        return UsableRows(X.astype(np.float32, copy=False), sums, zero)
    if X.dtype != np.uint8:
        X = X.astype(np.float32, copy=False)
    return UsableRows(np.ascontiguousarray(X), sums, zero)


def normalize(X: Matrix, row_sum: float) -> Rows:
    """Normalize non-negative rows to the sum `row_sum` (A).

    Examples
    --------
    >>> import numpy as np
    >>> rows = normalize(np.array([[1.0, 3.0], [0.0, 5.0]]), row_sum=10)
    >>> rows.y()
    array([[3., 7.],
           [1., 9.]], dtype=float32)
    """
    X, sums, _ = usable_rows(X)
    check_row_sum(row_sum, X.shape[1])
    return Rows(X, ((row_sum - X.shape[1]) / sums).astype(np.float32), float(row_sum))


def check_row_sum(row_sum: float, n_features: int) -> None:
    """Raise an error unless the sum exceeds the number of features."""
    if row_sum <= n_features:
        raise InvalidParameterError(
            "{row_sum}={given:g} must be larger than the number of features ({n_features}), since normalization adds 1 "
            "to every feature",
            given=row_sum,
            n_features=n_features,
            typical=n_features + 116,
            parameter="row_sum",
            advice="pass {row_sum:auto}, or for images of this size try {typical}",
        )
