"""Checksums of a model file: one of its header, which can be verified without the arrays, and one of the arrays.

They are hexadecimal BLAKE2b digests in the metadata entry "checksum". They detect accidental damage, not deliberate
changes.
"""

from __future__ import annotations

import json

from tnesi.model_file.header import ModelFileError
from tnesi.system.digest import content_digest
from tnesi.system.tensors import Description
from tnesi.types import Array


def checksum(text: str, described: Description, arrays: dict[str, Array]) -> str:
    """Return the checksums of a header and its arrays as stored."""
    return " ".join((_of_header(text, described), content_digest("", arrays)))


def check_header_sum(stored: str, text: str, described: Description) -> None:
    """Raise an error unless the header and the names, types and shapes of the arrays match the checksum."""
    if stored.partition(" ")[0] != _of_header(text, described):
        raise _damage("header")


def check_array_sum(stored: str, arrays: dict[str, Array]) -> None:
    """Raise an error unless the arrays match the checksum."""
    if stored.partition(" ")[2] != content_digest("", arrays):
        raise _damage("arrays")


def _damage(what: str) -> ModelFileError:
    return ModelFileError(
        "the file is damaged: the checksum of its {what} does not match", what=what, advice="copy or save it again"
    )


def _of_header(text: str, described: Description) -> str:
    parts = sorted((name, kind, list(shape)) for name, (kind, shape) in described.items())
    return content_digest(json.dumps([text, parts]))
