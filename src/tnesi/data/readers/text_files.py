"""Text files of any common encoding, read as UTF-8 in constant memory."""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import IO, Any

from tnesi.data.recognize import UTF16_MARKS, open_plain
from tnesi.data.source import damaged

_BLOCK = 2**20


def encoding_of(path: Path) -> str:
    """Return the encoding of a file, which is read once: UTF-16 with a mark, UTF-8, or else Windows-1252."""
    with damaged(path), open_plain(path) as file:
        if file.read(2) in UTF16_MARKS:
            return "utf-16"
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block := file.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def open_utf8(path: Path, encoding: str) -> IO[bytes]:
    """Open a text file, which may be compressed with gzip, as UTF-8 without a byte order mark."""
    file = open_plain(path)
    if encoding != "utf-8":
        return io.BufferedReader(_Recoded(file, encoding))
    if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        file.seek(0)
    return file


class _Recoded(io.RawIOBase):
    """A text file in UTF-8; what cannot be decoded becomes a replacement character, or an error in UTF-16."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file, self._waiting = file, memoryview(b"")
        self._decoder = codecs.getincrementaldecoder(encoding)("replace" if encoding == "cp1252" else "strict")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        block = b" "
        while block and not self._waiting:
            block = self._file.read(_BLOCK)
            self._waiting = memoryview(self._decoder.decode(block, final=not block).encode())
        n = min(len(room), len(self._waiting))
        room[:n], self._waiting = self._waiting[:n], self._waiting[n:]
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


def head_of(path: Path, encoding: str, size: int) -> str:
    """Return the beginning of a text file, without a character that is cut off."""
    with damaged(path), open_utf8(path, encoding) as file:
        raw = file.read(size)
    return codecs.getincrementaldecoder("utf-8")().decode(raw)
