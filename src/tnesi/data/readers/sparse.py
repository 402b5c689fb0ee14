"""Sparse matrices: their rows stay sparse, and become dense a block at a time for those who want them so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
"""The arrays that `scipy.sparse.save_npz` writes, for one format or another."""


class CsrSource(Source):
    """Rows of a sparse matrix, of the smallest type that holds the values exactly.

    Attributes
    ----------
    csr : scipy.sparse.csr_array
    """

    def __init__(self, csr: sparse.csr_array, feature_names: list[str] | None = None) -> None:
        self.n_rows, self.n_features = check_shape(csr.shape[0], csr.shape[1], "the sparse matrix")
        if csr.dtype.kind not in "buif":
            raise DataError(f"the sparse matrix is of type {csr.dtype}: numbers are needed")
        self.csr, self.dtype, self.feature_names = csr, smallest_dtype(csr.data), feature_names

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

    def load(self) -> sparse.csr_array:
        csr: sparse.csr_array = self.csr.astype(self.dtype, copy=False)
        return csr


def checked_csr(matrix: Any, where: str | Path) -> sparse.csr_array:
    """Return a sparse matrix of any format as CSR with one entry per place, after its indices were checked.

    Examples
    --------
    >>> checked_csr(sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(1, 3)), "counts").toarray()
    array([[0, 3, 0]])
    """
    if len(matrix.shape) != 2:
        raise DataError(f"{where} has {len(matrix.shape)} dimensions: rows and columns are needed")
    n_rows = int(matrix.shape[0])
    if n_rows > 1000 * max(matrix.nnz, 1000):  # an index as long as the rows is about to be allocated
        raise DataError(f"{where} promises {n_rows} rows and has {matrix.nnz} values: save it again")
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
        raise DataError(f"{where}: the sparse matrix has no proper shape: save it again")
    n_rows, n_columns = (int(n) for n in shape)
    index_names = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
    if form not in index_names:
        raise DataError(f"{where} is sparse in the format {form[:20]!r}: convert it with .tocsr() and save it again")
    if form == "coo" and "coords" in parts:
        parts = {**parts, **dict(zip(("row", "col"), parts["coords"], strict=True))}
    missing = [name for name in ("data", *index_names[form]) if name not in parts]
    if missing:
        raise DataError(f"{where} is a sparse matrix without its {' and '.join(missing)}: save it again")
    data, first, second = (parts[name] for name in ("data", *index_names[form]))
    if any(a.ndim != 1 for a in (data, first, second)) or any(a.dtype.kind not in "iu" for a in (first, second)):
        raise DataError(f"{where}: the parts of the sparse matrix are not lists of numbers: save it again")
    if form == "coo":
        return checked_csr(sparse.coo_array((data, (first, second)), shape=(n_rows, n_columns)), where)
    longest = {"csr": n_rows, "csc": n_columns}[form]
    if len(second) != longest + 1 or len(first) != len(data) or int(second[-1]) != len(data):
        raise DataError(f"{where}: the parts of the sparse matrix do not fit together: save it again")
    kind = sparse.csr_array if form == "csr" else sparse.csc_array
    return checked_csr(kind((data, first, second), shape=(n_rows, n_columns)), where)
