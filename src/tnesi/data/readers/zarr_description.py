"""What Zarr arrays say of themselves: only numbers that are packed in well-known ways get through."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.readers.arrays import plain_dtype
from tnesi.data.readers.zarr_chunks import COMPRESSORS, Packing
from tnesi.data.source import DataError, check_room, damaged

_LARGEST_JSON = 2**20
_LARGEST_CHUNK = 2**30
_NUMBERS = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)")


@dataclass(frozen=True)
class Description:
    """What an array says of itself, checked."""

    version: int
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    packing: Packing
    key: re.Pattern[str]
    """How chunk files are called, with the number of the chunk along the rows as the first group."""


def is_array(folder: Path) -> bool:
    """Tell whether a folder has a Zarr array, rather than a group of them."""
    if (folder / ".zarray").is_file():
        return True
    return (folder / "zarr.json").is_file() and _read_json(folder / "zarr.json").get("node_type") == "array"


def _read_json(path: Path) -> dict[str, Any]:
    with damaged(path):
        if path.stat().st_size > _LARGEST_JSON:
            raise DataError(f"{path} is too large for the description of an array")
        content = json.loads(path.read_bytes())
    if not isinstance(content, dict):
        raise DataError(f"{path} is no description of an array: fetch it or save it again")
    return content


def describe(folder: Path) -> Description:
    """Read and check the description of an array."""
    if (folder / "zarr.json").is_file():
        return _describe_3(_read_json(folder / "zarr.json"), folder)
    return _describe_2(_read_json(folder / ".zarray"), folder)


def _describe_2(about: dict[str, Any], folder: Path) -> Description:
    if about.get("filters") or not isinstance(about["dtype"], str):
        raise DataError(f"{folder} holds no plain numbers, or passes them through filters: save it without")
    dtype = _numeric(plain_dtype(about["dtype"], folder), folder)
    shape, chunks = _sizes(about["shape"], folder), _sizes(about["chunks"], folder)
    compressor = about["compressor"]
    steps = [_allowed(compressor["id"], COMPRESSORS, folder)] if compressor else []
    key = _key("", about.get("dimension_separator", "."), len(shape))
    return _checked(
        Description(2, shape, chunks, dtype, Packing(math.prod(chunks), dtype.itemsize, steps), key), folder
    )


def _describe_3(about: dict[str, Any], folder: Path) -> Description:
    if not isinstance(about["data_type"], str) or not _NUMBERS.fullmatch(about["data_type"]):
        raise DataError(f"{folder} holds values of type {str(about['data_type'])[:40]!r}: numbers are needed")
    dtype = np.dtype(about["data_type"])
    grid, encoding = about["chunk_grid"], about["chunk_key_encoding"]
    if grid["name"] != "regular" or encoding["name"] not in ("default", "v2") or about.get("storage_transformers"):
        raise DataError(f"{folder} is stored in a way that is not known here: save it with regular chunks")
    shape, chunks = _sizes(about["shape"], folder), _sizes(grid["configuration"]["chunk_shape"], folder)
    start, separator = ("c", "/") if encoding["name"] == "default" else ("", ".")
    separator = encoding.get("configuration", {}).get("separator", separator)
    key = _key(start and start + separator, separator, len(shape))
    packing = _packing(about["codecs"], chunks, dtype.itemsize, folder)
    return _checked(Description(3, shape, chunks, dtype, packing, key), folder)


def _packing(codecs: list[dict[str, Any]], chunks: tuple[int, ...], itemsize: int, folder: Path) -> Packing:
    names = [codec["name"] for codec in codecs]
    if names[:1] == ["transpose"]:
        names, codecs = names[1:], codecs[1:]
    n_values, steps = math.prod(chunks), names[1:]
    if names[:1] == ["bytes"]:
        for name in steps:
            _allowed(name, (*COMPRESSORS, "crc32c"), folder)
        if sum(name in COMPRESSORS for name in steps) > 1:
            raise DataError(f"{folder} is compressed twice: save it with one compressor")
        return Packing(n_values, itemsize, steps)
    _allowed(names[0] if names else "none", ("sharding_indexed",), folder)
    setting = codecs[0]["configuration"]
    index = [codec["name"] for codec in setting["index_codecs"]]
    little = setting["index_codecs"][0].get("configuration", {}).get("endian", "little") == "little"
    inner_chunks = _sizes(setting["chunk_shape"], folder)
    divides = len(inner_chunks) == len(chunks) and not any(
        n % m for n, m in zip(chunks, inner_chunks, strict=True) if m
    )
    if index not in (["bytes"], ["bytes", "crc32c"]) or not little or not divides or 0 in inner_chunks:
        raise DataError(f"{folder} has shards of a kind that is not known here: save it without shards")
    for name in steps:
        _allowed(name, ("crc32c",), folder)
    inner = _packing(setting["codecs"], inner_chunks, itemsize, folder)
    if inner.inner:
        raise DataError(f"{folder} has shards within shards: save it without")
    first = setting.get("index_location", "end") == "start"
    return Packing(n_values, itemsize, steps, inner, "crc32c" in index, first)


def _key(start: str, separator: str, n_dimensions: int) -> re.Pattern[str]:
    if separator not in (".", "/"):
        raise DataError("chunk names are separated by neither . nor /")
    number = r"(0|[1-9]\d{0,14})"
    return re.compile(re.escape(start) + re.escape(separator).join([number] * n_dimensions))


def _allowed(name: Any, known: tuple[str, ...], folder: Path) -> str:
    if name not in known:
        raise DataError(
            f"{folder} is packed with {str(name)[:40]!r}, which is not known to be safe: use {', '.join(known)}"
        )
    return str(name)


def _numeric(dtype: np.dtype[Any], folder: Path) -> np.dtype[Any]:
    if dtype.kind not in "buif":
        raise DataError(f"{folder} holds values of type {dtype}: numbers are needed")
    return dtype


def _sizes(sizes: Any, folder: Path) -> tuple[int, ...]:
    if (
        not isinstance(sizes, list)
        or not 1 <= len(sizes) <= 4
        or not all(type(n) is int and 0 <= n < 2**60 for n in sizes)
    ):
        raise DataError(f"{folder} has a shape that is not understood: {str(sizes)[:80]}")
    return tuple(sizes)


def _checked(about: Description, folder: Path) -> Description:
    if len(about.shape) != len(about.chunks) or 0 in about.chunks:
        raise DataError(f"{folder} has chunks of another kind than the array: save it again")
    n_bytes = about.packing.n_bytes
    if n_bytes > _LARGEST_CHUNK:
        raise DataError(f"{folder} has chunks of {n_bytes / 1e9:.1f} GB: save it with chunks of at most 1 GB")
    check_room(n_bytes, f"a chunk of {folder}")
    return about
