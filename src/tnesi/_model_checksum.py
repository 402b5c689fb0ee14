"""Checksums of a model file: one of its header, which can be verified without the arrays, and one of the arrays.

They are BLAKE2b digests in the metadata entry "checksum" of the file, in hexadecimal. Random damage changes them; they
do not protect against someone who changes a file on purpose.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from tnesi._model_header import ModelFileError

Array = npt.NDArray[Any]
Description = dict[str, tuple[str, tuple[int, ...]]]
"""Type, as safetensors calls it, and shape of each array."""

_BYTES = 32


def checksum(text: str, described: Description, arrays: dict[str, Array]) -> str:
    """Return the checksums of a header and its arrays, as they are stored."""
    return f"{_of_header(text, described)} {_of_arrays(arrays)}"


def check_header_sum(stored: str, text: str, described: Description) -> None:
    """Refuse a header, or names, types and shapes of arrays, that are not those that were saved."""
    if stored.partition(" ")[0] != _of_header(text, described):
        raise _damage("header")


def check_array_sum(stored: str, arrays: dict[str, Array]) -> None:
    """Refuse arrays that are not those that were saved."""
    if stored.partition(" ")[2] != _of_arrays(arrays):
        raise _damage("arrays")


def _damage(what: str) -> ModelFileError:
    return ModelFileError(f"the file is damaged: the checksum of its {what} does not match; copy or save it again")


def _of_header(text: str, described: Description) -> str:
    content = json.dumps([text, sorted((name, kind, list(shape)) for name, (kind, shape) in described.items())])
    return hashlib.blake2b(content.encode(), digest_size=_BYTES).hexdigest()


def _of_arrays(arrays: dict[str, Array]) -> str:
    digest = hashlib.blake2b(digest_size=_BYTES)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
