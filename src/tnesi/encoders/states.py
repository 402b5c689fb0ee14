"""The fitted state of an encoder as a dict of JSON values and NumPy arrays, which a file can hold without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERSION = 1


def new_state(encoder: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Begin the state of an encoder: what it is and its parameters."""
    tidy = {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
    return {"encoder": encoder, "version": VERSION, "parameters": tidy}


def parameters_of(state: Mapping[str, Any], encoder: str) -> dict[str, Any]:
    """Return the parameters in a state, after checking that it is one of this encoder.

    Examples
    --------
    >>> parameters_of(new_state("TextEncoder", {"max_df": 0.5}), "VectorEncoder")
    Traceback (most recent call last):
    ValueError: This is the state of a TextEncoder, not of a VectorEncoder.
    """
    if not isinstance(state, Mapping) or "encoder" not in state or not isinstance(state.get("parameters"), Mapping):
        raise ValueError(f"This is not the state of a {encoder}: use what get_state returned.")
    if state["encoder"] != encoder:
        raise ValueError(f"This is the state of a {state['encoder']}, not of a {encoder}.")
    if state.get("version") != VERSION:
        raise ValueError(
            f"The state of this {encoder} has version {state.get('version')}; this version of tnesi reads {VERSION}: "
            "upgrade tnesi."
        )
    return dict(state["parameters"])
