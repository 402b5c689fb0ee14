"""Recognize file formats by content, not by name."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path
from typing import IO, Literal, cast

from tnesi.data.readers.arrays import NPY_MAGIC
from tnesi.data.readers.documents import holds_documents
from tnesi.data.readers.idx import GZIP_MAGIC, IDX_TYPES
from tnesi.data.source import DataError, DataNotFoundError, damaged

Format = Literal["npy", "npz", "parquet", "idx", "text", "json lines", "images", "documents", "zarr", "h5ad"]

READABLE = (
    ".npy and .npz arrays (dense, or sparse as scipy.sparse.save_npz writes them), CSV, JSON lines, Parquet, IDX, "
    ".h5ad, Zarr, a folder of images (PNG, JPEG, BMP, GIF, TIFF, PGM, WebP) or of text files"
)

_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
_HEAD = 2**16
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"BM", b"GIF8", b"II*\0", b"MM\0*")


def recognize(path: Path) -> Format:
    """Return the format of a file or folder."""
    if path.is_dir():
        if any((path / name).is_file() for name in _ZARR_FILES):
            return "zarr"
        return "documents" if holds_documents(path) else "images"
    if not path.exists():
        raise DataNotFoundError(f"there is no file or folder {path}")
    if not path.is_file():  # reading a pipe or a device might never end
        raise DataError(f"{path} is neither a file nor a folder", advice="copy its content to a file")
    with damaged(path), path.open("rb") as plain:
        head = plain.read(_HEAD)
    if not head:
        raise DataError(f"{path} is empty", advice="download it or save it again")
    if head.startswith(GZIP_MAGIC):
        with damaged(path), open_plain(path) as file:
            head = file.read(_HEAD)
        found = _format(head)
        if found in ("idx", "text", "json lines"):
            return found
        raise DataError(
            f"{path} is compressed with gzip, but is not a CSV or IDX file", advice="decompress it with gunzip"
        )
    found = _format(head)
    if found is None:
        raise DataError(f"{path}: unsupported file format", advice=f"use {READABLE}")
    return found


def _format(head: bytes) -> Format | None:
    if head.startswith(NPY_MAGIC):
        return "npy"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "npz"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(HDF5_MAGIC):
        return "h5ad"
    if head.startswith(UTF16_MARKS):
        return "text"
    if len(head) >= 4 and head[:2] == b"\0\0" and head[2] in IDX_TYPES and 1 <= head[3] <= 4:
        return "idx"
    netpbm = head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace()
    if head.startswith(_IMAGES) or netpbm or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return "images"
    if not head.strip() or min(head) < ord("\t"):  # text has no bytes below the tab; the reader checks the encoding
        return None
    return "json lines" if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith((b"{", b"[")) else "text"


def decode(head: bytes, where: str | Path) -> str:
    """Decode the beginning of a text file, which may end within a character."""
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not UTF-8 text", advice="save it as UTF-8") from error


def is_gzip(path: Path) -> bool:
    """Return whether a file is compressed with gzip."""
    with path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def open_plain(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if it is a gzip file."""
    return cast("IO[bytes]", gzip.open(path)) if is_gzip(path) else path.open("rb")
