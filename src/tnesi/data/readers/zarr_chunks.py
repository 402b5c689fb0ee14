"""Check that the chunks of Zarr arrays decompress to exactly the expected size.

Decoders trust the size stated in a chunk, so that a small file could fill the memory.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tnesi.data.optional import needed
from tnesi.data.source import DataError

COMPRESSORS = ("blosc", "zstd", "gzip", "zlib", "lz4", "bz2", "lzma")
_NOT_STORED = 2**64 - 1


@dataclass(frozen=True)
class Packing:
    """Encoding of chunks: the steps after conversion to bytes, and the inner chunks of shards."""

    n_values: int
    itemsize: int
    steps: Sequence[str]
    inner: Packing | None = None
    index_checked: bool = False
    index_first: bool = False

    @property
    def n_bytes(self) -> int:
        return self.n_values * self.itemsize


def check_chunk(data: bytes, packing: Packing, where: Path) -> None:
    """Raise an error if a chunk does not have the expected size."""
    size = packing.n_bytes
    steps = list(packing.steps)
    while steps and steps[-1] == "crc32c":
        data = data[:-4]
        steps.pop()
    size += 4 * steps.count("crc32c")  # checksums inside of the compressed data
    if packing.inner:
        for part in _inner_chunks(data, packing, where):
            check_chunk(part, packing.inner, where)
    elif _unpacked_size(data, steps[-1] if steps else "", size + 1) != size:
        raise DataError(f"{where} does not hold the expected {size} bytes", advice="download it or save it again")


def _unpacked_size(data: bytes, compressor: str, most: int) -> int:
    """Return the decompressed size of a chunk; decompress at most `most` bytes."""
    match compressor:
        case "blosc":
            return int.from_bytes(data[4:8], "little") if int.from_bytes(data[12:16], "little") == len(data) else -1
        case "lz4":
            return int.from_bytes(data[:4], "little")
        case "gzip":
            return len(gzip.GzipFile(fileobj=io.BytesIO(data)).read(most))
        case "zlib":
            return len(zlib.decompressobj().decompress(data, most))
        case "bz2":
            return len(bz2.BZ2File(io.BytesIO(data)).read(most))
        case "lzma":
            return len(lzma.LZMAFile(io.BytesIO(data)).read(most))
        case "zstd":
            arrow = needed("pyarrow", "checking Zarr chunks")
            with arrow.CompressedInputStream(arrow.BufferReader(data), "zstd") as file:
                return len(file.read(most))
    return len(data)


def _inner_chunks(data: bytes, packing: Packing, where: Path) -> Iterator[bytes]:
    """Yield the stored chunks of a shard, whose index of offsets and sizes is at its end or start."""
    assert packing.inner
    n_parts = packing.n_values // packing.inner.n_values
    index_bytes, checksum = 16 * n_parts, 4 * packing.index_checked
    start = 0 if packing.index_first else len(data) - index_bytes - checksum
    if start < 0 or len(data) < index_bytes:
        raise DataError(f"{where} is too short for a shard", advice="download it or save it again")
    index = np.frombuffer(data, "<u8", 2 * n_parts, start).reshape(n_parts, 2).tolist()
    for offset, n_bytes in index:
        if offset == n_bytes == _NOT_STORED:
            continue
        if offset + n_bytes > len(data):
            raise DataError(f"{where}: a chunk of the shard is out of range", advice="download it or save it again")
        yield data[offset : offset + n_bytes]
