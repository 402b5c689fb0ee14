"""Open arrays, files, folders and named data sets as `Data`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tnesi.data.datasets.download import Progress
from tnesi.data.datasets.named import NAMES, load_named
from tnesi.data.label_files import read_labels
from tnesi.data.label_values import tidy_labels
from tnesi.data.readers.arrays import read_npy
from tnesi.data.readers.csv_files import read_csv
from tnesi.data.readers.documents import DocumentSource, open_files, read_documents
from tnesi.data.readers.frames import read_any_frame
from tnesi.data.readers.h5ad import read_h5ad
from tnesi.data.readers.idx import read_idx_data
from tnesi.data.readers.images import read_images
from tnesi.data.readers.mixed import read_json_lines, read_mixed_csv, read_mixed_parquet
from tnesi.data.readers.npz import read_npz
from tnesi.data.readers.parquet import read_parquet
from tnesi.data.readers.sparse import CsrSource, checked_csr
from tnesi.data.readers.tables import NotNumbersError
from tnesi.data.readers.vectors import is_vector, stacked_vectors
from tnesi.data.readers.zarr_store import read_zarr
from tnesi.data.recognize import recognize
from tnesi.data.source import ArraySource, Data, DataError, DataNotFoundError, array_source, no_memory


def open_data(
    where: object,
    *,
    labels: npt.ArrayLike | str | os.PathLike[str] | None = None,
    label_column: str | int | None = None,
    image_shape: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> Data:
    """Open data; see `tnesi.data` for the supported formats.

    Parameters
    ----------
    where : array-like, sparse matrix, data frame, list of str or of paths, str or path
        The rows, texts or image files, a file or folder, or the name of a data set. Names of data sets take precedence
        over files; write ``./mnist`` or pass a `pathlib.Path` to open a file of that name.
    labels : array-like, str or path, optional
        The labels of the rows or a file with labels (see `tnesi.data.label_files`), instead of those in the data.
    label_column : str or int, optional
        Name or number of the label column of a table, or name of the label array in a ``.npz`` file or Zarr group.
    image_shape : (int, int), optional
        Height and width to which image files are scaled; by default the most common size.
    progress : callable, optional
        Called with (what, done, total) while a named data set is downloaded or prepared.

    Returns
    -------
    Data
        ``rows.blocks()`` yields the rows block by block, ``X`` holds all of them and ``y`` the labels.

    Raises
    ------
    DataError
        If the data cannot be read.
    DataNotFoundError
        If there is no file or data set of that name.

    Examples
    --------
    >>> import numpy as np
    >>> data = open_data(np.eye(3), labels=["a", None, "b"])
    >>> data.X.shape, data.y
    ((3, 3), array(['a', None, 'b'], dtype=object))
    """
    if labels is not None and label_column is not None:
        raise DataError("use {labels} or {label_column}, not both", parameter="labels")
    if isinstance(where, str | os.PathLike):
        try:
            data = _open_path(where, label_column, labels is None, image_shape, progress)
        except MemoryError as error:
            raise no_memory(str(where)) from error
    elif hasattr(where, "columns") and hasattr(where, "__getitem__"):
        data = read_any_frame(where, label_column)
    elif label_column is not None:
        raise DataError(
            "{label_column} is for tables", advice="pass the labels of an array as {labels}", parameter="label_column"
        )
    else:
        data = _open_items(where)
    return data if labels is None else _with_labels(data, labels)


def _open_items(where: object) -> Data:
    """Take an array, a sparse matrix, or a list of texts, vectors or files as data."""
    if sparse.issparse(where):
        return Data(CsrSource(checked_csr(where, "the sparse matrix")), name="array")
    if not (items := _objects(where)):
        try:
            return Data(array_source(np.asarray(where)), name="array")
        except (ValueError, TypeError) as error:
            known = isinstance(error, DataError)
            raise error if known else DataError(f"not an array of numbers: {error}") from error
    if all(isinstance(item, os.PathLike) for item in items):
        return open_files([Path(item) for item in items])
    if all(isinstance(item, str | float) or item is None for item in items):
        return Data(DocumentSource([item if isinstance(item, str) else "" for item in items]), name="texts")
    if is_vector(items[0]):
        return Data(ArraySource(stacked_vectors(items, "vector", "the list")), name="vectors")
    raise DataError("this is neither an array of numbers nor a list of texts, of files or of vectors: pass one of them")


def _objects(where: Any) -> list[Any]:
    """Return the items of a list or column of texts, files or vectors; none of an array of numbers."""
    if isinstance(where, list | tuple):
        return list(where) if len(where) and isinstance(where[0], str | os.PathLike) else []
    dtype = getattr(where, "dtype", None)
    if dtype is None or not hasattr(where, "tolist" if isinstance(where, np.ndarray) else "to_list"):
        return []
    if isinstance(dtype, np.dtype) and (dtype.kind not in "OUT" or np.ndim(where) != 1):
        return []
    items = where.tolist() if isinstance(where, np.ndarray) else where.to_list()
    return items if any(isinstance(item, str | os.PathLike) or is_vector(item) for item in items[:100]) else []


def _open_path(
    where: str | os.PathLike[str],
    label_column: str | int | None,
    find_labels: bool,
    image_shape: tuple[int, int] | None,
    progress: Progress | None,
) -> Data:
    if isinstance(where, str) and where in NAMES:
        if label_column is not None:
            raise DataError(
                "{where} is a data set with labels", advice="omit {label_column}", parameter="label_column", where=where
            )
        return load_named(where, progress=progress)
    path = Path(where)
    if not path.exists():
        raise DataNotFoundError(f"there is no file, folder or data set {path}; the data sets are {', '.join(NAMES)}")
    match recognize(path):
        case "json lines":
            return read_json_lines(path, label_column)
        case "text":
            return _numbers_or_mixed(read_csv, read_mixed_csv, path, label_column)
        case "parquet":
            return _numbers_or_mixed(read_parquet, read_mixed_parquet, path, label_column)
        case "npz":
            return read_npz(path, label_column)
        case "zarr":
            return read_zarr(path, label_column)
        case "h5ad":
            return read_h5ad(path, label_column)
        case other if label_column is not None:
            raise DataError(
                "{path} is not a table ({format}), so {label_column} does not apply",
                advice="use {labels}",
                parameter="label_column",
                path=path,
                format=other,
            )
        case "npy":
            return read_npy(path)
        case "idx":
            return read_idx_data(path, find_labels=find_labels)
        case "documents":
            return read_documents(path)
        case "images":
            return read_images(path, image_shape)


def _numbers_or_mixed(
    read_numbers: Callable[[Path, str | int | None], Data],
    read_mixed: Callable[[Path, str | int | None, str], Data],
    path: Path,
    label_column: str | int | None,
) -> Data:
    """Read a numeric table block by block, or any other table as a whole."""
    try:
        return read_numbers(path, label_column)
    except NotNumbersError as error:
        return read_mixed(path, label_column, str(error))


def _with_labels(data: Data, labels: Any) -> Data:
    n_rows = data.rows.n_rows
    if isinstance(labels, str | os.PathLike):
        path = Path(labels)
        if not path.exists():
            raise DataNotFoundError("there is no label file {path}", parameter="labels", path=path)
        note = f"labels from {path.name}" + (" instead of its own" if data.labels is not None else "")
        notes = [n for n in (data.note, note) if n]
        return replace(data, labels=read_labels(path, n_rows), note="; ".join(notes))
    column = np.asarray(labels) if hasattr(labels, "dtype") else np.array(list(labels), object)
    return replace(data, labels=tidy_labels(column, n_rows, "the labels"))
