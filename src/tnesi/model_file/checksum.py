"""Checksums of a model file: one of its header, which can be verified without the arrays, and one of the arrays.

They are BLAKE2b digests in the metadata entry "checksum" of the file, in hexadecimal. Random damage changes them; they
do not protect against someone who changes a file on purpose.
"""

from __future__ import annotations

import json

from tnesi.model_file.header import ModelFileError
from tnesi.system.digest import content_digest
from tnesi.types import Array

Description = dict[str, tuple[str, tuple[int, ...]]]
"""Type, as safetensors calls it, and shape of each array."""


def checksum(text: str, described: Description, arrays: dict[str, Array]) -> str:
    """Return the checksums of a header and its arrays, as they are stored."""
    return " ".join((_of_header(text, described), content_digest("", arrays)))


def check_header_sum(stored: str, text: str, described: Description) -> None:
    """Refuse a header, or names, types and shapes of arrays, that are not those that were saved."""
    if stored.partition(" ")[0] != _of_header(text, described):
        raise _damage("header")


def check_array_sum(stored: str, arrays: dict[str, Array]) -> None:
    """Refuse arrays that are not those that were saved."""
    if stored.partition(" ")[2] != content_digest("", arrays):
        raise _damage("arrays")


def _damage(what: str) -> ModelFileError:
    return ModelFileError(f"the file is damaged: the checksum of its {what} does not match; copy or save it again")


def _of_header(text: str, described: Description) -> str:
    parts = sorted((name, kind, list(shape)) for name, (kind, shape) in described.items())
    return content_digest(json.dumps([text, parts]))
