"""AnnData files (``.h5ad``): counts of cells by genes, dense or sparse, with labels from a column of ``obs``.

Raw counts are taken from ``layers["counts"]`` if they are there, else from ``X``. Large ones are copied to a temporary
folder in blocks of rows, as numbers of 32 bits. Links to other files are not followed, and what the file promises is
compared with its size and with the memory there is before it is read.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.data.column_names import find_label_column
from tnesi.data.label_values import LABEL_BYTES, tidy_labels
from tnesi.data.optional import needed
from tnesi.data.readers.sparse import CsrSource, checked_csr
from tnesi.data.source import ArraySource, Data, DataError, Source, check_room, check_shape, damaged
from tnesi.data.spooled_rows import SpooledRows
from tnesi.execution.spool import IN_MEMORY
from tnesi.types import Array

_COUNTS = "layers/counts"
_VALUE = 8
"""Bytes of a value and its column."""
_MOST_PACKED = 1000
"""Plausible bytes per byte of the file; zeros, which pack better, are not stored."""
_BLOCK = 2**22
"""Values that are read at a time, unless a row has more."""


def read_h5ad(path: Path, label_column: str | int | None = None) -> Data:
    """Open an AnnData file as data."""
    h5py = needed("h5py", "reading .h5ad")
    with damaged(path), h5py.File(path, "r") as file:
        place = _COUNTS if _member(h5py, file, _COUNTS) is not None else "X"
        matrix = _member(h5py, file, place)
        if matrix is None:
            raise DataError(f"{path} has neither X nor {_COUNTS}: it is not an AnnData file (.h5ad)")
        names = _index(h5py, file, "var")
        rows = _rows(h5py, matrix, f"{path}, {place},", names)
        labels, note = _labels(h5py, file, rows.n_rows, label_column, path)
    notes = [f"counts from {place}" if place != "X" else "", note]
    return Data(rows, labels, name=path.name, note="; ".join(n for n in notes if n))


def _rows(h5py: ModuleType, matrix: object, where: str, names: list[str] | None) -> Source:
    if isinstance(matrix, h5py.Group):
        kind = _text(matrix.attrs.get("encoding-type", matrix.attrs.get("h5sparse_format", "")))
        if kind.removesuffix("_matrix") not in ("csr", "csc"):
            raise DataError(f"{where} is of the unknown kind {kind[:20]!r}: save it as a CSR matrix")
        shape = matrix.attrs.get("shape", matrix.attrs.get("h5sparse_shape"))
        n_rows, n_features = (int(n) for n in np.asarray(shape).ravel())
        check_shape(n_rows, n_features, where)
        if kind.startswith("csr") and (large := _large_csr(h5py, matrix, (n_rows, n_features), where)) is not None:
            large.feature_names = names if names is not None and len(names) == n_features else None
            return large
        parts: Any = [_read(h5py, _part(h5py, matrix, name, where)) for name in ("data", "indices", "indptr")]
        make = sparse.csr_array if kind.startswith("csr") else sparse.csc_array
        rows: Source = CsrSource(checked_csr(make(tuple(parts), shape=(n_rows, n_features)), where))
    else:
        rows = ArraySource(_read(h5py, matrix))
    if names is not None and len(names) == rows.n_features:
        rows.feature_names = names
    return rows


def _are_lengths(lengths: Array, most: int) -> bool:
    return bool((lengths >= 0).all() and (lengths <= most).all())


class _SpooledCsr(CsrSource):
    """Sparse rows in a temporary folder."""

    def __init__(self, rows: SpooledRows) -> None:
        super().__init__(sparse.csr_array(rows.matrix()), dtype=np.dtype(np.float32))
        self._folder = rows.keep  # removed when nobody needs the rows any more


def _large_csr(h5py: ModuleType, matrix: object, shape: tuple[int, int], where: str) -> CsrSource | None:
    """Return the rows of a large CSR matrix, None if it is small."""
    data, indices, ends = (_part(h5py, matrix, name, where) for name in ("data", "indices", "indptr"))
    values = _checked(h5py, data), _checked(h5py, indices)
    if data.size * _VALUE <= IN_MEMORY:
        return None
    if any(one.nbytes > _MOST_PACKED * one.id.get_storage_size() for one in values):
        raise DataError(f"{where} promises {data.size} values, which is not plausible. Save the file again")
    starts = _read(h5py, ends)
    if (
        starts.shape != (shape[0] + 1,)
        or starts[0]
        or starts[-1] != data.size
        or not _are_lengths(np.diff(starts), shape[1])
    ):
        raise DataError(f"{where} is damaged: its rows do not fit together. Save the file again")
    spooled = SpooledRows(0)
    first = 0
    while first < shape[0]:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1)
        at = slice(int(starts[first]), int(starts[last]))
        block = tuple(np.asarray(one[at]) for one in values), starts[first : last + 1] - starts[first]
        rows = checked_csr(sparse.csr_array((*block[0], block[1]), shape=(last - first, shape[1])), where)
        with np.errstate(over="ignore"):
            small = rows.astype(np.float32)
        if not np.isfinite(small.data).all():
            raise DataError(f"{where} has values that are not finite in rows {first} to {last - 1}: leave them out")
        spooled.add(small)
        first = last
    return _SpooledCsr(spooled)


def _labels(
    h5py: ModuleType, file: object, n_rows: int, label_column: str | int | None, path: Path
) -> tuple[Array | None, str]:
    obs = _member(h5py, file, "obs")
    if isinstance(obs, h5py.Group):
        index = _text(obs.attrs.get("_index", "_index"))
        names = [name for name in _column_order(obs) if name != index]
    else:  # one table, as AnnData wrote it before 2020
        names = [] if obs is None else list(obs.dtype.names or ())
    if not names and label_column is None:
        return None, ""
    number = find_label_column(names, label_column, f"{path}, obs,")
    if number is None:
        return None, ""
    name = names[number]
    in_group = isinstance(obs, h5py.Group)
    column = _part(h5py, obs, name, f"{path}, obs,") if in_group else np.asarray(obs[name])
    values = _column(h5py, column, n_rows, f"{path}, column {name!r} of obs")
    note = f"labels from the column {name!r} of obs" if label_column is None else ""
    return tidy_labels(values, n_rows, path), note


def _column(h5py: ModuleType, column: object, n_rows: int, where: str) -> Array:
    """Return a column of strings, numbers or categories, with None where it has no value."""
    check_room(n_rows * LABEL_BYTES, f"a column of {n_rows} rows")
    if not isinstance(column, h5py.Group):
        return np.array([_value(v) for v in _read(h5py, column).tolist()], object)
    if "codes" in column:
        codes = _read(h5py, _part(h5py, column, "codes", where))
        categories = [_value(v) for v in _read(h5py, _part(h5py, column, "categories", where)).tolist()]
        if codes.ndim != 1 or codes.dtype.kind not in "iu" or (codes.size and int(codes.max()) >= len(categories)):
            raise DataError(f"{where} has codes beyond its categories: save the file again")
        return np.array([categories[code] if code >= 0 else None for code in codes.tolist()], object)
    if "values" in column:  # numbers or strings, some of them missing
        values = _read(h5py, _part(h5py, column, "values", where)).tolist()
        mask = _read(h5py, _part(h5py, column, "mask", where)).tolist()
        return np.array([None if gone else _value(v) for v, gone in zip(values, mask, strict=True)], object)
    raise DataError(f"{where} is of an unknown kind: convert it to strings or categories")


def _index(h5py: ModuleType, file: object, name: str) -> list[str] | None:
    """Return the names of cells or genes."""
    group = _member(h5py, file, name)
    if not isinstance(group, h5py.Group):
        return None
    column = _member(h5py, group, _text(group.attrs.get("_index", "_index")))
    if column is None or isinstance(column, h5py.Group):
        return None
    return [str(_value(v)) for v in _read(h5py, column).tolist()]


def _column_order(group: Any) -> list[str]:
    order = group.attrs.get("column-order")
    found = [] if order is None else [_text(name) for name in np.asarray(order).ravel()]
    return [name for name in found if name in group] or list(group)


def _member(h5py: ModuleType, group: object, path: str) -> Any:
    """Return a part of a file, None if it is not there or only a link."""
    for name in path.split("/"):
        if not isinstance(group, h5py.Group) or not isinstance(group.get(name, getlink=True), h5py.HardLink):
            return None
        group = group[name]
    return group


def _part(h5py: ModuleType, group: object, name: str, where: str) -> Any:
    found = _member(h5py, group, name)
    if found is None:
        raise DataError(f"{where} has no {name!r}: it is not an AnnData file (.h5ad), or damaged")
    return found


def _read(h5py: ModuleType, dataset: Any) -> Array:
    """Return the values of a dataset, if they fit into memory."""
    if isinstance(dataset, np.ndarray):
        return dataset
    _checked(h5py, dataset)
    size = LABEL_BYTES if dataset.dtype.kind in "OSU" else dataset.dtype.itemsize
    check_room(math.prod(dataset.shape) * size, f"{' x '.join(map(str, dataset.shape))} values")
    return np.asarray(dataset[()])


def _checked(h5py: ModuleType, dataset: object) -> Any:
    """Return a dataset, which is one of this file."""
    if not isinstance(dataset, h5py.Dataset) or dataset.external or dataset.is_virtual:
        raise DataError("it refers to other files: save it as one file")
    return dataset


def _value(value: object) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _text(value: object) -> str:
    return str(_value(value))
