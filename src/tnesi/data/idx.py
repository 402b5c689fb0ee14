"""IDX files, the format of MNIST: a magic number, the shape, the values."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

_GZIP = b"\x1f\x8b"
_UINT8 = 0x08
_MOST_VALUES = 2**34


def read_idx(path: str | Path) -> npt.NDArray[np.uint8]:
    """Read an IDX file of bytes, plain or compressed with gzip.

    The header is not trusted: no more is read or held than it promises, and a file that is shorter, longer or
    damaged is refused.
    """
    path = Path(path)
    with path.open("rb") as probe:
        packed = probe.read(2) == _GZIP
    open_file = cast("Callable[[Path], IO[bytes]]", gzip.open if packed else partial(Path.open, mode="rb"))
    with open_file(path) as file:
        try:
            return _read(file, path)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged or incomplete ({error}): fetch it again") from error


def _read(file: IO[bytes], path: Path) -> npt.NDArray[Any]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0":
        raise ValueError(f"{path} is not an IDX file")
    if magic[2] != _UINT8 or not 1 <= magic[3] <= 4:
        raise ValueError(f"{path}: only IDX files of bytes with 1 to 4 dimensions can be read")
    header = file.read(4 * magic[3])
    if len(header) < 4 * magic[3]:
        raise ValueError(f"{path} ends within its header: fetch it again")
    shape = tuple(int(n) for n in np.frombuffer(header, ">u4"))
    n_values = math.prod(shape)
    if n_values > _MOST_VALUES:
        raise ValueError(f"{path} promises {n_values} values, more than can be meant")
    chunks, missing = [], n_values + 1  # one more than promised, to see that it ends there
    while missing and (chunk := file.read(min(missing, 2**24))):
        chunks.append(chunk)
        missing -= len(chunk)
    if missing != 1:
        has = "more" if missing == 0 else "fewer"
        raise ValueError(f"{path} has {has} values than its header says: fetch it again")
    return np.frombuffer(b"".join(chunks), np.uint8).reshape(shape)
