"""NumPy's ``.npy`` files, memory-mapped or read from a ``.npz`` file.

Regular expressions parse the header, which NumPy would evaluate, and its size is compared with that of the file before
anything is mapped or allocated.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tnesi.data.source import Data, DataError, array_source, damaged
from tnesi.types import Array

NPY_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000  # NumPy's own limit
_CHUNK = 2**24


class Readable(Protocol):
    """An open file or archive member."""

    def read(self, size: int, /) -> bytes: ...


class Header(NamedTuple):
    """Contents and length of a ``.npy`` header."""

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    offset: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> Data:
    """Open a ``.npy`` file as memory-mapped data."""
    return Data(array_source(map_npy(path)), name=path.name)


def map_npy(path: Path) -> Array:
    """Memory-map a ``.npy`` file read-only."""
    with path.open("rb") as file:
        header = read_header(file, path)
    there = path.stat().st_size - header.offset
    if there != header.n_bytes:
        raise DataError(
            f"{path} has {there} bytes of values, but its header says {header.n_bytes}",
            advice="download it or save it again",
        )
    if header.n_bytes == 0:  # cannot be mapped
        return np.empty(header.shape, header.dtype)
    shape = header.shape[::-1] if header.fortran else header.shape
    with damaged(path):
        values = np.memmap(path, header.dtype, mode="r", offset=header.offset, shape=shape)
    return values.T if header.fortran else values


def read_header(file: Readable, where: str | Path) -> Header:
    """Read the header of a ``.npy`` file up to the first value."""
    start = file.read(8)
    if len(start) < 8 or start[:6] != NPY_MAGIC or start[6] not in (1, 2, 3):
        raise DataError(f"{where} is not a .npy file of a supported version", advice="save it again with numpy.save")
    length_bytes = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(length_bytes), "little")
    if length > _LONGEST_HEADER:
        raise DataError(f"{where}: its header is too long ({length} bytes)")
    text = file.read(length).decode("latin-1")
    descr = re.search(r"""['"]descr['"]\s*:\s*['"]([^'"]*)['"]""", text)
    fortran = re.search(r"""['"]fortran_order['"]\s*:\s*(True|False)""", text)
    shape = re.search(r"""['"]shape['"]\s*:\s*\(([\d,\s]*)\)""", text)
    if len(text) < length or not (descr and fortran and shape):
        raise DataError(f"{where}: its header is damaged, or it is not an array of numbers")
    sizes = re.findall(r"\d+", shape[1])
    if len(sizes) > 4 or any(len(n) > 18 for n in sizes):
        raise DataError(f"{where}: the shape ({shape[1][:80]}) is too large")
    offset = 8 + length_bytes + length
    return Header(plain_dtype(descr[1], where), fortran[1] == "True", tuple(map(int, sizes)), offset)


def plain_dtype(descr: str, where: str | Path) -> np.dtype[Any]:
    """Return the data type named in a file if it is numeric or a string type."""
    known = re.fullmatch(r"[<>|=]?([buifUSO])(\d{0,9})", descr)
    if known and known[1] == "O":
        raise DataError(
            f"{where} holds pickled Python objects, which can execute code when opened",
            advice="save it as numbers (X.astype(float)) or strings (y.astype(str))",
        )
    try:
        if known:
            return np.dtype(descr)
    except TypeError:
        pass
    raise DataError(f"{where} holds values of type {descr[:40]!r}", advice="save it as numbers")


def read_values(file: Readable, dtype: np.dtype[Any], shape: tuple[int, ...], where: str | Path) -> Array:
    """Read the rest of `file` as an array of this shape. The caller has checked its size."""
    values = np.empty(math.prod(shape), dtype)
    memory = values.view(np.uint8) if values.nbytes else np.empty(0, np.uint8)
    at = 0
    while chunk := file.read(min(_CHUNK, len(memory) - at)):
        memory[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
        at += len(chunk)
    if at < len(memory) or file.read(1):
        has = "fewer" if at < len(memory) else "more"
        raise DataError(f"{where} has {has} values than its header says", advice="download it or save it again")
    return values.reshape(shape)
