"""Files of named arrays and texts in the safetensors format: model files, checkpoints and the encoders beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import safetensors.numpy
from safetensors import SafetensorError, safe_open

from tnesi.system.digest import content_digest
from tnesi.system.files import FileWriteError, replacing
from tnesi.types import Array

__all__ = ["Description", "SafetensorError", "State", "open_tensors", "read_state", "write_state", "write_tensors"]

Description = dict[str, tuple[str, tuple[int, ...]]]
"""Type (its name in safetensors) and shape of each array."""
_CHECKSUM = "checksum"


@dataclass(frozen=True)
class TensorFile:
    """An open file.

    Attributes
    ----------
    metadata : dict of str
        The texts.
    described : dict
        Type and shape of each array.
    arrays : callable
        Reads the arrays.
    """

    metadata: dict[str, str]
    described: Description
    arrays: Callable[[], dict[str, Array]]


@contextmanager
def open_tensors(file: Path | BinaryIO) -> Iterator[TensorFile]:
    """Open a path, or the whole content of a binary file object."""
    if not isinstance(file, Path):
        content = file.read()
        deserialize: Any = safetensors.deserialize  # has no types
        views = deserialize(content)
        described = {name: (view["dtype"], tuple(view["shape"])) for name, view in views}
        metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__", {})
        yield TensorFile(metadata, described, lambda: _numbers(safetensors.numpy.load, content))
        return
    with safe_open(file, "numpy") as opened:
        names = list(opened.keys())
        parts = {name: opened.get_slice(name) for name in names}
        yield TensorFile(
            opened.metadata() or {},
            {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()},
            lambda: {name: _numbers(opened.get_tensor, name) for name in names},
        )


def _numbers(read: Callable[[Any], Any], what: object) -> Any:
    """Return what `read` returns; raise ValueError for types that NumPy does not have."""
    try:
        return read(what)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an array has a type that NumPy does not have ({error})") from error


def write_tensors(
    file: Path | BinaryIO, arrays: Mapping[str, Array], metadata: dict[str, str], *, sync: bool = True
) -> None:
    """Write to a path, atomically, or to a binary file object."""
    if not isinstance(file, Path):
        file.write(safetensors.numpy.save(dict(arrays), metadata))
        return
    with replacing(file, sync=sync) as temporary:
        try:
            safetensors.numpy.save_file(dict(arrays), temporary, metadata)
        except SafetensorError as error:
            raise FileWriteError(f"cannot write {file} ({error})", advice="check the free space on the disk") from error


class State(NamedTuple):
    """A text and arrays, with the checksum that was stored with them."""

    text: str
    arrays: dict[str, Array]
    checksum: str

    def check(self) -> None:
        """Raise ValueError if the checksum does not match."""
        if content_digest(self.text, self.arrays) != self.checksum:
            raise ValueError("the checksum does not match")


def write_state(path: Path, entry: str, text: str, arrays: Mapping[str, Array], *, sync: bool = True) -> str:
    """Write arrays, and a text under the name `entry`; return their checksum."""
    checksum = content_digest(text, arrays)
    write_tensors(path, arrays, {entry: text, _CHECKSUM: checksum}, sync=sync)
    return checksum


def read_state(path: Path, entry: str) -> State:
    """Read a file of `write_state`; raise ValueError, KeyError or OSError if it is not one."""
    try:
        with open_tensors(path) as file:
            return State(file.metadata[entry], file.arrays(), file.metadata[_CHECKSUM])
    except SafetensorError as error:
        raise ValueError(str(error)) from error
