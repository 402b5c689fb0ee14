"""Conversion of pixels of any type and range to values between 0 (black) and 1 (white)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tnesi.data.source import LUMINANCE
from tnesi.types import Array

_LEVELS = (1.0, 255.0, 65535.0)
"""Common values of white."""


def known_range(dtype: np.dtype[Any]) -> tuple[float, float] | None:
    """Return black and white for types whose range is unambiguous, or None."""
    if dtype.kind == "b":
        return 0.0, 1.0
    if dtype in (np.uint8, np.uint16):
        return 0.0, float(np.iinfo(dtype).max)
    return None


def range_of(values: Array) -> tuple[float, float]:
    """Return black and white for values of any type.

    Black is 0, or the smallest value if that is negative. White is the first of 1, 255 and 65,535 that no value
    exceeds (by more than 1 %), or the largest value if all exceed it or any value is negative.

    Examples
    --------
    >>> range_of(np.array([0.0, 0.7]))
    (0.0, 1.0)
    >>> range_of(np.array([0.0, 16.0]))
    (0.0, 255.0)
    >>> range_of(np.array([-1.0, 0.7]))
    (-1.0, 0.7)
    """
    if known := known_range(values.dtype):
        return known
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if low < 0:
        return low, max(high, low + 1e-6)
    return 0.0, next((level for level in _LEVELS if high <= 1.01 * level), high)


def scaled(values: Array, black: float, white: float) -> Array:
    """Return float32 values, 0 for black and 1 for white."""
    found = np.asarray(values, dtype=np.float32)
    if (black, white) == (0.0, 1.0):
        return np.ascontiguousarray(found)
    if black:
        found = found - np.float32(black)
    return np.ascontiguousarray(found * np.float32(1 / (white - black)))


def on_white(pictures: Array) -> Array:
    """Return pictures (... x channels) without their fourth channel, the opacity; transparent parts become white."""
    if pictures.shape[-1] != 4:
        return pictures
    opacity = pictures[..., 3:].clip(0, 1)
    return np.ascontiguousarray(pictures[..., :3] * opacity + (1 - opacity))


def as_gray(pictures: Array) -> Array:
    """Return the luminance of pictures (... x channels), with one channel."""
    if pictures.shape[-1] == 1:
        return pictures
    return np.ascontiguousarray((pictures @ LUMINANCE)[..., None])


def as_color(pictures: Array) -> Array:
    """Return pictures (... x channels) with three channels."""
    return pictures if pictures.shape[-1] == 3 else np.repeat(pictures, 3, axis=-1)
