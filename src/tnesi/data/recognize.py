"""What a file is, by its content: names are not relied on."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path
from typing import IO, Literal, cast

from tnesi.data.readers.arrays import NPY_MAGIC
from tnesi.data.readers.idx import GZIP_MAGIC, IDX_TYPES
from tnesi.data.source import DataError, damaged

Kind = Literal["npy", "npz", "parquet", "idx", "text", "images", "zarr", "h5ad"]

READABLE = (
    ".npy and .npz arrays (dense, or sparse as scipy.sparse.save_npz writes them), CSV (also .csv.gz), JSON lines, "
    "Parquet, IDX (also packed with gzip), .h5ad, folders of images (PNG, JPEG, BMP, GIF, TIFF, PGM, WebP), folders of "
    "text files, Zarr folders"
)

_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
_HEAD = 2**16
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"BM", b"GIF8", b"II*\0", b"MM\0*")


def recognize(path: Path) -> Kind:
    """Tell what kind of data a file or folder has."""
    if path.is_dir():
        return "zarr" if any((path / name).is_file() for name in _ZARR_FILES) else "images"
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    if not path.is_file():  # reading a pipe or a device might never end
        raise DataError(f"{path} is neither a file nor a folder: copy what it gives into a file first")
    with damaged(path), path.open("rb") as plain:
        head = plain.read(_HEAD)
    if not head:
        raise DataError(f"{path} is empty: fetch it or save it again")
    if head.startswith(GZIP_MAGIC):
        with damaged(path), open_plain(path) as file:
            head = file.read(_HEAD)
        kind = _kind(head)
        if kind in ("idx", "text"):
            return kind
        raise DataError(f"{path} is packed with gzip, but not a CSV or IDX file: unpack it with gunzip")
    kind = _kind(head)
    if kind is None:
        raise DataError(f"{path} is nothing that can be read. What can be: {READABLE}")
    return kind


def _kind(head: bytes) -> Kind | None:
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
    # below the tab there are no characters; which encoding it is matters to the reader
    return "text" if head.strip() and min(head) >= ord("\t") else None


def decode(head: bytes, where: str | Path) -> str:
    """Decode the beginning of a text file, which may end within a character."""
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not text in UTF-8: save it in that encoding") from error


def is_gzip(path: Path) -> bool:
    """Tell whether a file is packed with gzip."""
    with path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def open_plain(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked if it is packed with gzip."""
    return cast("IO[bytes]", gzip.open(path)) if is_gzip(path) else path.open("rb")
