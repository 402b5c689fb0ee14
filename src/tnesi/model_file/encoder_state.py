"""The state of an encoder in a model file: JSON values in the header, and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tnesi.encoders.choice import ENCODERS, Encoder
from tnesi.types import Array

PREFIX = "encoder."
_TYPES = {kind.__name__: kind for kind in ENCODERS.values()}


def is_of_encoder(name: str) -> bool:
    """Return whether an array of a file belongs to its encoder."""
    return name.startswith(PREFIX)


def stored_encoder(encoder: Encoder) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header entry and the arrays of a fitted encoder."""
    arrays: dict[str, Array] = {}
    return {type(encoder).__name__: _stored(encoder.get_state(), arrays)}, arrays


def restored_encoder(stored: dict[str, Any], arrays: Mapping[str, Array]) -> Encoder:
    """Return the encoder of a file; raise ValueError if its state is invalid."""
    if len(stored) != 1 or (name := next(iter(stored))) not in _TYPES:
        raise ValueError(f"{', '.join(stored)[:60]!r} is not a known encoder")
    try:
        with np.errstate(all="ignore"):
            encoder = _TYPES[name].from_state(_restored(stored[name], arrays))
            encoder.get_feature_names_out()  # which needs most of the state
            return encoder
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"the state of its {name} is damaged ({error!r})") from error


def _stored(value: object, arrays: dict[str, Array]) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OU":
            return value.tolist()
        name = f"{PREFIX}{len(arrays)}"
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name}
    if isinstance(value, Mapping):
        return {str(name): _stored(entry, arrays) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_stored(entry, arrays) for entry in value]
    return value


def _restored(value: object, arrays: Mapping[str, Array]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            return arrays[value["array"]]
        return {name: _restored(entry, arrays) for name, entry in value.items()}
    return [_restored(entry, arrays) for entry in value] if isinstance(value, list) else value
