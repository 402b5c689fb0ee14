"""Image files, decoded to the size that is needed: upright, the first picture of many, transparent parts white.

JPEG files are decoded at a fraction of their size where that is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from tnesi.data.image_files import ImageFileError, opened, pillow
from tnesi.encoders.canvas import Size, fitted_size, resized
from tnesi.encoders.values import as_color, range_of, scaled
from tnesi.types import Array

_ORIENTATION = 0x0112
"""EXIF tag."""
_ON_THEIR_SIDE = (5, 6, 7, 8)


@dataclass(frozen=True)
class Problem:
    """Why an item of a list was left out.

    Attributes
    ----------
    index : int
        Place in the list.
    name : str
        The path of the file, or a description of the item.
    reason : str
    """

    index: int
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {self.reason}"


def image_size(path: str | PathLike[str]) -> Size:
    """Return height and width of the upright picture from the header of a file."""
    with opened(path) as image:
        size = image.height, image.width
        return size[::-1] if _orientation(image) in _ON_THEIR_SIDE else size


def read_image(path: str | PathLike[str], canvas: Size, in_color: bool) -> Array:
    """Return the picture in a file, scaled to fit on a canvas.

    Returns
    -------
    ndarray of shape (height, width, 3 if in_color else 1), float32
        Values from 0 (black) to 1 (white).
    """
    with opened(path) as image:
        return _values(image, canvas, in_color)


def _values(image: Any, canvas: Size, in_color: bool) -> Array:
    orientation = _orientation(image)
    if image.format == "TIFF":
        image.load()  # and turn it: only then is its size right in all versions of Pillow
    turned = orientation in _ON_THEIR_SIDE
    height, width = fitted_size((image.height, image.width), canvas[::-1] if turned else canvas)
    image.draft("RGB" if in_color else "L", (width, height))
    if image.mode == "F" or image.mode.startswith("I"):
        values = np.asarray(image)[:, :, None]
        if not np.isfinite(values).all():
            raise ImageFileError("has pixels that are not numbers")
        black, white = (0, 65535) if image.mode.startswith("I;16") else range_of(values.astype(np.float32))
        values = _upright(resized(scaled(values, black, white)[None], (height, width))[0], orientation)
        return as_color(values) if in_color else values
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = pillow().alpha_composite(pillow().new("RGBA", image.size, "white"), image)
    image = image.convert("RGB" if in_color else "L")
    if image.size != (width, height):
        image = image.resize((width, height), pillow().Resampling.BILINEAR, reducing_gap=2.0)
    return _upright(scaled(np.asarray(image), 0, 255).reshape(height, width, -1), orientation)


def _orientation(image: Any) -> int:
    if image.format == "TIFF":  # which Pillow turns itself
        return 1
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # of damaged EXIF data; the picture may be fine
        return 1


def _upright(values: Array, orientation: int) -> Array:
    """Turn and mirror a picture as its EXIF orientation says."""
    if orientation in (3, 4, 7):
        values = values[::-1]
    if orientation in (2, 3, 7):
        values = values[:, ::-1]
    if orientation in (5, 7):
        values = values.swapaxes(0, 1)
    if orientation in (6, 8):
        values = np.rot90(values, -1 if orientation == 6 else 1)
    return np.ascontiguousarray(values)
