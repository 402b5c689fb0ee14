"""Check the metadata of Zarr arrays: numeric types, reasonable chunks and well-known codecs.

The zarr library parses the metadata; this module checks it.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from tnesi.data.optional import needed
from tnesi.data.readers.zarr_chunks import COMPRESSORS, Packing
from tnesi.data.source import DataError, check_room, damaged

_LARGEST_JSON = 2**20
_LARGEST_CHUNK = 2**30
_NUMBERS = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|[<>|](b1|[iu][1248]|f[248])")


def is_array(folder: Path) -> bool:
    """Return whether a folder is a Zarr array rather than a group."""
    if (folder / ".zarray").is_file():
        return True
    return (folder / "zarr.json").is_file() and _read_json(folder / "zarr.json").get("node_type") == "array"


def _read_json(path: Path) -> dict[str, Any]:
    with damaged(path):
        if path.stat().st_size > _LARGEST_JSON:
            raise DataError(f"{path} is too large for array metadata")
        content = json.loads(path.read_bytes())
    if not isinstance(content, dict):
        raise DataError(f"{path} does not contain array metadata", advice="download it or save it again")
    return content


def open_array(folder: Path) -> tuple[Any, Packing]:
    """Open an array after checking its metadata; return it with the encoding of its chunks."""
    version = 3 if (folder / "zarr.json").is_file() else 2
    about = _read_json(folder / ("zarr.json" if version == 3 else ".zarray"))
    kind = about["data_type" if version == 3 else "dtype"]
    if not isinstance(kind, str) or not _NUMBERS.fullmatch(kind):
        raise DataError(f"{folder} holds values of type {str(kind)[:40]!r}", advice="save it as numbers")
    store = needed("zarr.storage", "reading Zarr").LocalStore(folder, read_only=True)
    array = needed("zarr", "reading Zarr").open_array(store=store, mode="r", zarr_format=version)
    about, chunks = array.metadata.to_dict(), array.shards or array.chunks
    if (
        not 1 <= len(chunks) <= 4
        or len(chunks) != len(array.shape)
        or 0 in chunks
        or max(*array.shape, *chunks) > 2**60
    ):
        raise DataError(
            f"{folder} has an invalid shape or chunks ({str(array.shape)[:80]}, {str(chunks)[:80]})",
            advice="save it again",
        )
    n_bytes = math.prod(chunks) * array.dtype.itemsize
    if n_bytes > _LARGEST_CHUNK:
        raise DataError(f"{folder} has chunks of {n_bytes / 1e9:.1f} GB", advice="save it with chunks of at most 1 GB")
    check_room(n_bytes, f"a chunk of {folder}")
    if version == 3:
        return array, _packing(about["codecs"], chunks, array.dtype.itemsize, folder)
    if about["filters"]:
        raise DataError(f"{folder} uses filters", advice="save it without filters")
    steps = [_allowed(about["compressor"]["id"], COMPRESSORS, folder)] if about["compressor"] else []
    return array, Packing(math.prod(chunks), array.dtype.itemsize, steps)


def _packing(codecs: list[dict[str, Any]], chunks: tuple[int, ...], itemsize: int, folder: Path) -> Packing:
    names = [codec["name"] for codec in codecs]
    if names[:1] == ["transpose"]:
        names, codecs = names[1:], codecs[1:]
    n_values, steps = math.prod(chunks), names[1:]
    if names[0] == "bytes":
        for name in steps:
            _allowed(name, (*COMPRESSORS, "crc32c"), folder)
        if sum(name in COMPRESSORS for name in steps) > 1:
            raise DataError(f"{folder} is compressed twice", advice="save it with one compressor")
        return Packing(n_values, itemsize, steps)
    _allowed(names[0], ("sharding_indexed",), folder)
    setting = codecs[0]["configuration"]
    index, inner_chunks = setting["index_codecs"], setting["chunk_shape"]
    little = index[0].get("configuration", {}).get("endian", "little") == "little"
    if [codec["name"] for codec in index] not in (["bytes"], ["bytes", "crc32c"]) or not little or 0 in inner_chunks:
        raise DataError(f"{folder} has an unsupported type of shards", advice="save it without shards")
    for name in steps:
        _allowed(name, ("crc32c",), folder)
    inner = _packing(setting["codecs"], inner_chunks, itemsize, folder)
    if inner.inner:
        raise DataError(f"{folder} has nested shards", advice="save it without nested shards")
    return Packing(n_values, itemsize, steps, inner, len(index) > 1, setting["index_location"] == "start")


def _allowed(name: str, known: tuple[str, ...], folder: Path) -> str:
    if name not in known:
        raise DataError(f"{folder} uses the unsupported codec {name[:40]!r}", advice=f"use {', '.join(known)}")
    return name
