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
from tnesi.data.readers.documents import holds_documents, read_documents
from tnesi.data.readers.idx import read_idx_data
from tnesi.data.readers.images import read_images
from tnesi.data.readers.mixed import read_json_lines, read_mixed_csv, read_mixed_parquet
from tnesi.data.readers.npz import read_npz
from tnesi.data.readers.parquet import read_parquet
from tnesi.data.readers.sparse import CsrSource, checked_csr
from tnesi.data.readers.tables import NotNumbersError, read_frame
from tnesi.data.readers.zarr_store import read_zarr
from tnesi.data.recognize import open_plain, recognize
from tnesi.data.source import ArraySource, Data, DataError, DataNotFoundError, no_memory


def open_data(
    where: Any,
    *,
    labels: npt.ArrayLike | str | os.PathLike[str] | None = None,
    label_column: str | int | None = None,
    image_shape: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> Data:
    """Open data; see `tnesi.data` for the supported formats.

    Parameters
    ----------
    where : array-like, sparse matrix, data frame, str or path
        The rows, a file or folder, or the name of a data set. Names of data sets take precedence over files; write
        ``./mnist`` or pass a `pathlib.Path` to open a file of that name.
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
        data = read_frame(where, label_column)
    elif label_column is not None:
        raise DataError(
            "{label_column} is for tables", advice="pass the labels of an array as {labels}", parameter="label_column"
        )
    else:
        data = Data(_array_source(where), name="array")
    return data if labels is None else _with_labels(data, labels)


def _array_source(where: Any) -> ArraySource | CsrSource:
    if sparse.issparse(where):
        return CsrSource(checked_csr(where, "the sparse matrix"))
    try:
        return ArraySource(np.asarray(where))
    except (ValueError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("the data is not an array of numbers ({error})", error=error) from error


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
        raise DataNotFoundError(
            "there is no file, folder or data set {path}; the data sets are {names}", path=path, names=", ".join(NAMES)
        )
    match recognize(path):
        case "text" if _is_json_lines(path):
            return read_json_lines(path, label_column)
        case "text":
            return _numbers_or_mixed(read_csv, read_mixed_csv, path, label_column)
        case "parquet":
            return _numbers_or_mixed(read_parquet, read_mixed_parquet, path, label_column)
        case "npz":
            return read_npz(path, label_column)
        case "zarr":
            return read_zarr(path, label_column)
        case kind if label_column is not None:
            raise DataError(
                "{path} is not a table ({kind}), so {label_column} does not apply",
                advice="use {labels}",
                parameter="label_column",
                path=path,
                kind=kind,
            )
        case "npy":
            return read_npy(path)
        case "idx":
            return read_idx_data(path, find_labels=find_labels)
        case "images" if path.is_dir() and holds_documents(path):
            return read_documents(path)
        case "images":
            return read_images(path, image_shape)


def _numbers_or_mixed(
    read_numbers: Callable[[Path, str | int | None], Data],
    read_mixed: Callable[[Path, str | int | None], Data],
    path: Path,
    label_column: str | int | None,
) -> Data:
    """Read a numeric table block by block, or any other table as a whole."""
    try:
        return read_numbers(path, label_column)
    except NotNumbersError as error:
        try:
            return read_mixed(path, label_column)
        except NotNumbersError:
            raise error from None


def _is_json_lines(path: Path) -> bool:
    with open_plain(path) as file:
        return file.read(2**10).lstrip()[:1] == b"{"


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
