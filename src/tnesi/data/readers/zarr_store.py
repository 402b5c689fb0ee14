"""Zarr arrays and groups in folders, format 2 and 3.

The zarr library reads the values after metadata and chunks have been checked.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.readers.array_groups import read_group
from tnesi.data.readers.zarr_chunks import check_chunk
from tnesi.data.readers.zarr_description import is_array, open_array
from tnesi.data.source import (
    BLOCK_ROWS,
    Data,
    DataError,
    Source,
    check_room,
    check_shape,
    damaged,
    regroup,
    rows_at_a_time,
)
from tnesi.types import Array

_PART_BYTES = 2**26


class ZarrArray:
    """A stored array, read in bands: all rows that share the same chunks."""

    def __init__(self, folder: Path) -> None:
        with damaged(folder):
            self._array, self._packing = open_array(folder)
        self.folder = folder
        self.shape: tuple[int, ...] = self._array.shape
        self.dtype: np.dtype[Any] = self._array.dtype
        self.band_rows: int = (self._array.shards or self._array.chunks)[0]
        self.n_bands = -(-self.shape[0] // self.band_rows)
        self._files = self._stored()

    def _stored(self) -> dict[int, list[Path]]:
        """Return the chunk files of each band."""
        found: dict[int, list[Path]] = {}
        for path in self.folder.rglob("*"):
            if path.is_symlink():
                raise DataError(f"{path} is a symbolic link", advice="replace it with the chunk itself")
            key = path.relative_to(self.folder).as_posix()
            place = tuple(map(int, re.findall(r"[0-9]{1,15}", key)))
            if len(place) == len(self.shape) and key == self._array.metadata.encode_chunk_key(place) and path.is_file():
                found.setdefault(place[0], []).append(path)
        return {band: paths for band, paths in found.items() if band < self.n_bands}

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def check_complete(self) -> None:
        """Raise an error if no chunks are stored for some rows, which would allow arrays of any size in a few bytes."""
        if len(self._files) < self.n_bands:
            raise DataError(
                f"{self.folder} has {self.shape[0]} rows, but only {len(self._files)} of {self.n_bands} bands of "
                "chunks are stored",
                advice="save it again (with write_empty_chunks if rows are all zero)",
            )

    def parts(self) -> Iterator[Array]:
        """Yield the values in order, several bands at a time; missing chunks have the fill value of the array."""
        together = max(1, min(BLOCK_ROWS, _PART_BYTES // max(1, self.row_bytes)) // self.band_rows)
        with damaged(self.folder):
            for first in range(0, self.n_bands, together):
                for band in range(first, first + together):
                    for path in self._files.get(band, ()):
                        check_chunk(path.read_bytes(), self._packing, path)
                yield np.asarray(self._array[first * self.band_rows : (first + together) * self.band_rows])


class ZarrSource(Source):
    """Rows of a Zarr array; N x height x width are images."""

    def __init__(self, folder: Path) -> None:
        self._array = ZarrArray(folder)
        shape, band_rows = self._array.shape, self._array.band_rows
        if len(shape) not in (2, 3):
            raise DataError(
                f"{folder} has {len(shape)} dimensions",
                advice="use an array of shape (rows, columns) or (images, height, width)",
            )
        self.n_rows, self.n_features = check_shape(shape[0], math.prod(shape[1:]), folder)
        self._array.check_complete()
        self.dtype = self._array.dtype.newbyteorder("=")
        self.image_shape = (shape[1], shape[2]) if len(shape) == 3 else None
        check_room(2 * band_rows * self._array.row_bytes, f"{folder}, whose chunks have {band_rows} rows each,")

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        parts = (part.reshape(len(part), -1).astype(self.dtype, copy=False) for part in self._array.parts())
        yield from regroup(parts, rows_at_a_time(size, self.n_features, self.dtype))


def read_zarr(folder: Path, label_column: str | int | None = None) -> Data:
    """Open a Zarr array as data, or a group of arrays named like those of a ``.npz``."""
    if is_array(folder):
        if label_column is not None:
            raise DataError(
                "{folder} is a single array without labels",
                advice="use {labels}",
                parameter="label_column",
                folder=folder,
            )
        return Data(ZarrSource(folder), name=folder.name)
    with os.scandir(folder) as entries:
        names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False) and is_array(Path(e.path)))
    return read_group(
        names,
        label_column,
        folder,
        open_rows=lambda name: ZarrSource(folder / name),
        read_labels=lambda name, n_rows: _labels(folder / name, n_rows),
    )


def _labels(folder: Path, n_rows: int) -> Array:
    array = ZarrArray(folder)
    if array.shape not in ((n_rows,), (n_rows, 1)):
        raise DataError(f"{folder} has the shape {array.shape} for {n_rows} rows", advice="use one label per row")
    return np.concatenate(list(array.parts()))
