"""Sparse matrices, which stay sparse; `blocks` converts one block at a time to dense rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.data.source import (
    BLOCK_ROWS,
    DataError,
    Source,
    check_room,
    check_shape,
    damaged,
    rows_at_a_time,
    smallest_dtype,
)
from tnesi.types import Array

SPARSE_PARTS = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords")
"""Names of the arrays written by `scipy.sparse.save_npz`."""


class CsrSource(Source):
    """Rows of a sparse matrix, in the smallest data type that holds the values exactly, or in a given one.

    Attributes
    ----------
    csr : scipy.sparse.csr_array
    """

    def __init__(
        self, csr: sparse.csr_array, feature_names: list[str] | None = None, dtype: np.dtype[Any] | None = None
    ) -> None:
        self.n_rows, self.n_features = check_shape(csr.shape[0], csr.shape[1], "the sparse matrix")
        if csr.dtype.kind not in "buif":
            raise DataError("the sparse matrix is of type {dtype}", advice="save it as numbers", dtype=csr.dtype)
        self.csr, self.feature_names = csr, feature_names
        self.dtype = smallest_dtype(csr.data) if dtype is None else dtype

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        size = rows_at_a_time(size, self.n_features, self.csr.dtype)
        for start in range(0, self.n_rows, size):
            yield self.csr[start : start + size].toarray().astype(self.dtype, copy=False)

    def parts(self, size: int = BLOCK_ROWS) -> Iterator[sparse.csr_array]:
        for start in range(0, self.n_rows, size):
            yield self.csr[start : start + size].astype(self.dtype, copy=False)

    @property
    def row_bytes(self) -> int:
        return 8 + 8 * self.csr.nnz // self.n_rows

    def held(self) -> sparse.csr_array:
        return self.load()

    def load(self) -> sparse.csr_array:
        csr: sparse.csr_array = self.csr.astype(self.dtype, copy=False)
        return csr


def checked_csr(matrix: Any, where: str | Path) -> sparse.csr_array:
    """Return a sparse matrix of any format as CSR without duplicates, after checking its indices.

    Examples
    --------
    >>> checked_csr(sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(1, 3)), "counts").toarray()
    array([[0, 3, 0]])
    """
    if len(matrix.shape) != 2:
        raise DataError(
            "{where} has {n} dimensions", advice="use a matrix of rows and columns", where=where, n=len(matrix.shape)
        )
    n_rows = int(matrix.shape[0])
    if n_rows > 1000 * max(matrix.nnz, 1000):  # CSR needs an index with one entry per row
        raise DataError(
            "{where}: {n_rows} rows with {nnz} values are not plausible",
            advice="save it again",
            where=where,
            n_rows=n_rows,
            nnz=matrix.nnz,
        )
    check_room(16 * n_rows, f"an index of {n_rows} rows")
    with damaged(where):
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)
        csr = sparse.csr_array(matrix)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
    return csr


def sparse_from_parts(parts: dict[str, Array], where: str | Path) -> sparse.csr_array:
    """Build a sparse matrix from the arrays that `scipy.sparse.save_npz` writes."""
    form = parts["format"].astype(str).item() if parts["format"].size == 1 else "unknown"
    shape = parts["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape.astype(object) >= 2**62).any():
        raise DataError("{where}: the sparse matrix has no valid shape", advice="save it again", where=where)
    n_rows, n_columns = (int(n) for n in shape)
    index_names = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
    if form not in index_names:
        raise DataError(
            "{where} has the unsupported sparse format {form!r}",
            advice="convert it with .tocsr() and save it again",
            where=where,
            form=form[:20],
        )
    if form == "coo" and "coords" in parts:
        parts = {**parts, **dict(zip(("row", "col"), parts["coords"], strict=True))}
    missing = [name for name in ("data", *index_names[form]) if name not in parts]
    if missing:
        raise DataError(
            "{where} is a sparse matrix without {names}",
            advice="save it again",
            where=where,
            names=" and ".join(missing),
        )
    data, first, second = (parts[name] for name in ("data", *index_names[form]))
    if any(a.ndim != 1 for a in (data, first, second)) or any(a.dtype.kind not in "iu" for a in (first, second)):
        raise DataError(
            "{where}: the parts of the sparse matrix are not lists of numbers", advice="save it again", where=where
        )
    if form == "coo":
        return checked_csr(sparse.coo_array((data, (first, second)), shape=(n_rows, n_columns)), where)
    longest = {"csr": n_rows, "csc": n_columns}[form]
    if len(second) != longest + 1 or len(first) != len(data) or int(second[-1]) != len(data):
        raise DataError(
            "{where}: the parts of the sparse matrix do not fit together", advice="save it again", where=where
        )
    kind = sparse.csr_array if form == "csr" else sparse.csc_array
    return checked_csr(kind((data, first, second), shape=(n_rows, n_columns)), where)
