"""NumPy's ``.npy`` files: memory-mapped, or read from within a ``.npz``. Their headers are checked before use.

The header is read with three regular expressions instead of by evaluating it, and nothing is mapped or allocated before
the promised size has been compared with what is there.
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
    """An open file, plain or within a compressed one."""

    def read(self, size: int, /) -> bytes: ...


class Header(NamedTuple):
    """What a ``.npy`` header promises, and how many bytes it takes itself."""

    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    offset: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> Data:
    """Open a ``.npy`` file as data, mapped."""
    return Data(array_source(map_npy(path)), name=path.name)


def map_npy(path: Path) -> Array:
    """Map a ``.npy`` file into memory, read-only."""
    with path.open("rb") as file:
        header = read_header(file, path)
    there = path.stat().st_size - header.offset
    if there != header.n_bytes:
        raise DataError(f"{path} promises {header.n_bytes} bytes of values and has {there}: fetch it or save it again")
    if header.n_bytes == 0:  # cannot be mapped
        return np.empty(header.shape, header.dtype)
    shape = header.shape[::-1] if header.fortran else header.shape
    with damaged(path):
        values = np.memmap(path, header.dtype, mode="r", offset=header.offset, shape=shape)
    return values.T if header.fortran else values


def read_header(file: Readable, where: str | Path) -> Header:
    """Read the header of a ``.npy`` file and stop where the values begin."""
    start = file.read(8)
    if len(start) < 8 or start[:6] != NPY_MAGIC or start[6] not in (1, 2, 3):
        raise DataError(f"{where} is not a .npy file of a known version: save it again with numpy.save")
    length_bytes = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(length_bytes), "little")
    if length > _LONGEST_HEADER:
        raise DataError(f"{where}: its header is {length} bytes long, which no array of numbers needs")
    text = file.read(length).decode("latin-1")
    descr = re.search(r"""['"]descr['"]\s*:\s*['"]([^'"]*)['"]""", text)
    fortran = re.search(r"""['"]fortran_order['"]\s*:\s*(True|False)""", text)
    shape = re.search(r"""['"]shape['"]\s*:\s*\(([\d,\s]*)\)""", text)
    if len(text) < length or not (descr and fortran and shape):
        raise DataError(f"{where}: its header is damaged, or it does not hold an array of plain numbers")
    sizes = re.findall(r"\d+", shape[1])
    if len(sizes) > 4 or any(len(n) > 18 for n in sizes):
        raise DataError(f"{where}: the shape ({shape[1][:80]}) is more than can be meant")
    offset = 8 + length_bytes + length
    return Header(plain_dtype(descr[1], where), fortran[1] == "True", tuple(map(int, sizes)), offset)


def plain_dtype(descr: str, where: str | Path) -> np.dtype[Any]:
    """Return the type that a file names, if it is one of numbers or strings."""
    known = re.fullmatch(r"[<>|=]?([buifUSO])(\d{0,9})", descr)
    if known and known[1] == "O":
        raise DataError(
            f"{where} holds pickled Python objects, which could run anything when opened: "
            "save it as numbers (X.astype(float)) or strings (y.astype(str))"
        )
    try:
        if known:
            return np.dtype(descr)
    except TypeError:
        pass
    raise DataError(f"{where} holds values of type {descr[:40]!r}: numbers are needed")


def read_values(file: Readable, dtype: np.dtype[Any], shape: tuple[int, ...], where: str | Path) -> Array:
    """Read the rest of `file`, which has to be exactly an array of this shape. Its size must have been checked."""
    values = np.empty(math.prod(shape), dtype)
    memory = values.view(np.uint8) if values.nbytes else np.empty(0, np.uint8)
    at = 0
    while chunk := file.read(min(_CHUNK, len(memory) - at)):
        memory[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
        at += len(chunk)
    if at < len(memory) or file.read(1):
        has = "fewer" if at < len(memory) else "more"
        raise DataError(f"{where} has {has} values than its header says: fetch it or save it again")
    return values.reshape(shape)
