"""Data that are read in blocks: sources of `tnesi.data`, chunked arrays (Zarr, HDF5, Dask), large mapped files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator

from tnesi.errors import InvalidDataError
from tnesi.estimators.parameters import check_rows
from tnesi.execution.spool import IN_MEMORY
from tnesi.execution.store import grain_rows
from tnesi.model.rows import Matrix
from tnesi.system.devices import Device
from tnesi.types import Array


@runtime_checkable
class RowSource(Protocol):
    """Rows that are read in blocks: the sources of :mod:`tnesi.data`."""

    n_rows: int
    n_features: int

    def blocks(self, size: int) -> Iterator[Array]: ...


def unwrapped(X: object) -> Any:
    """Return the matrix of a source that holds one, in memory or mapped; other data unchanged."""
    held = X.held() if isinstance(X, RowSource) and hasattr(X, "held") else None
    return X if held is None else held


def is_out_of_core(X: object) -> bool:
    """Return whether data are read in blocks instead of as a whole."""
    if isinstance(X, np.memmap):
        return X.ndim == 2 and X.nbytes > IN_MEMORY
    return isinstance(X, RowSource) or (hasattr(X, "chunks") and len(getattr(X, "shape", ())) == 2)


def shape_of(X: Any) -> tuple[int, int]:
    """Return the numbers of rows and of features."""
    n_rows, n_features = (X.n_rows, X.n_features) if isinstance(X, RowSource) else X.shape
    return int(n_rows), int(n_features)


def checked_blocks(
    estimator: BaseEstimator, X: object, device: Device | None = None, *, reset: bool
) -> Iterator[Matrix]:
    """Yield all rows in checked blocks; data in memory are one block. Tensors stay on `device`, if there is one."""
    X = unwrapped(X)
    if not is_out_of_core(X):
        yield check_rows(estimator, X, device, reset=reset)
        return
    start = 0
    for block in _blocks(X):
        yield check_block(estimator, block, start, reset=reset and start == 0)
        start += len(block)


def check_block(estimator: BaseEstimator, block: Array, start: int, *, reset: bool) -> Matrix:
    """Check a block of rows; errors name the first row with an invalid value, or else all of them."""
    try:
        return check_rows(estimator, block, reset=reset)
    except ValueError as error:
        row = _first_invalid(block)
        where = f"rows {start} to {start + len(block) - 1}" if row is None else f"row {start + row}"
        raise InvalidDataError(f"in {where}: {error}", row=None if row is None else start + row) from error


def _first_invalid(block: Array) -> int | None:
    """Return the first row with a value that is negative or not finite."""
    if block.ndim != 2 or block.dtype.kind not in "if":
        return None
    invalid = ~(np.isfinite(block) & (block >= 0)).all(axis=1)
    return int(invalid.argmax()) if invalid.any() else None


def _blocks(X: Any) -> Iterator[Array]:
    n_rows, n_features = shape_of(X)
    size = grain_rows(n_features)
    if isinstance(X, RowSource):
        yield from _counted(X.blocks(size), n_rows)
        return
    for start in range(0, n_rows, size):
        yield np.array(X[start : start + size])


def _counted(blocks: Iterator[Array], n_rows: int) -> Iterator[Array]:
    """Yield blocks, and raise an error unless they have `n_rows` rows in total."""
    found = 0
    for block in blocks:
        found += len(block)
        if found > n_rows:
            break
        yield block
    if found != n_rows:
        raise InvalidDataError(
            f"the data have {'more' if found > n_rows else 'fewer'} rows than the {n_rows} of the source",
            advice="pass the correct number of rows",
        )
