"""IDX files, the format of MNIST: magic number, shape, values."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tnesi.data.label_values import tidy_labels
from tnesi.data.readers.arrays import Readable, read_values
from tnesi.data.source import ArraySource, Data, DataError, check_room, damaged

GZIP_MAGIC = b"\x1f\x8b"
MOST_PER_BYTE = 1032
"""Largest compression ratio of deflate (gzip and zip)."""

IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | Path) -> npt.NDArray[Any]:
    """Read an IDX file: memory-mapped, or decompressed if it is a gzip file.

    The size in the header is checked against the file before memory is allocated.
    """
    path = Path(path)
    size = path.stat().st_size
    with damaged(path), path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=file) as unpacked:
                dtype, shape = _read_header(unpacked, path, (size + 1) * MOST_PER_BYTE)
                check_room(math.prod(shape) * dtype.itemsize, f"{path} with {math.prod(shape)} values")
                return read_values(unpacked, dtype, shape, path)
        dtype, shape = _read_header(file, path, size)
        offset = file.tell()
    has, needs = size - offset, math.prod(shape) * dtype.itemsize
    if has != needs:
        raise DataError(
            f"{path} has {'fewer' if has < needs else 'more'} values than its header says", advice="download it again"
        )
    return np.memmap(path, dtype, mode="r", offset=offset, shape=shape) if needs else np.empty(shape, dtype)


def read_idx_data(path: Path, *, find_labels: bool = True) -> Data:
    """Open an IDX file as data; labels are read from a file beside it that is named as in MNIST."""
    rows = ArraySource(read_idx(path))
    beside = _labels_beside(path) if find_labels else None
    if beside is None:
        return Data(rows, name=path.name)
    labels = tidy_labels(read_idx(beside), rows.n_rows, beside)
    return Data(rows, labels, name=path.name, note=f"labels from {beside.name}, found beside it")


def _labels_beside(path: Path) -> Path | None:
    name = path.name.removesuffix(".gz")
    expected = name.replace("images", "labels").replace("idx3", "idx1")
    if expected == name:
        return None
    return next((p for p in (path.with_name(expected), path.with_name(f"{expected}.gz")) if p.is_file()), None)


def _read_header(file: Readable, path: Path, most_bytes: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0":
        raise DataError(f"{path} is not an IDX file")
    if magic[2] not in IDX_TYPES or not 1 <= magic[3] <= 4:
        raise DataError(f"{path}: unsupported IDX file", advice="save it as numbers with 1 to 4 dimensions")
    sizes = file.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise DataError(f"{path} ends within its header", advice="download it again")
    dtype, shape = np.dtype(IDX_TYPES[magic[2]]), tuple(int(n) for n in np.frombuffer(sizes, ">u4"))
    if math.prod(shape) * dtype.itemsize > most_bytes:
        raise DataError(
            f"{path} has fewer values than its header says ({' x '.join(map(str, shape))})", advice="download it again"
        )
    return dtype, shape
