"""Image files, decoded to the size that is needed: upright, the first picture of many, transparent parts white.

A file is never decoded on the word of its header alone: pictures with more than `MOST_PIXELS` pixels, or that do not
fit into memory, are refused. JPEG files are decoded at a fraction of their size where that is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.encoders.canvas import Size, fitted_size, resized
from tnesi.encoders.values import as_color, range_of, scaled
from tnesi.system.memory import free_memory, is_lack_of_memory
from tnesi.types import Array

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "PPM", "WEBP")
MOST_PIXELS = 64_000_000
_PER_PIXEL = 16
"""Bytes that decoding takes at most: an image with transparency, the same above white, and copies of it."""
_ALWAYS_FITS = 2**26
"""Bytes up to which nobody asks how much memory is free, which takes longer than to decode a small image."""
_ORIENTATION = 0x0112
"""EXIF tag."""
_ON_THEIR_SIDE = (5, 6, 7, 8)


class ImageFileError(ValueError):
    """A file that cannot be read as a picture; the message is the reason, without the name of the file."""


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
    with _opened(path) as image:
        size = image.height, image.width
        return size[::-1] if _orientation(image) in _ON_THEIR_SIDE else size


def read_image(path: str | PathLike[str], canvas: Size, in_color: bool) -> Array:
    """Return the picture in a file, scaled to fit on a canvas.

    Returns
    -------
    ndarray of shape (height, width, 3 if in_color else 1), float32
        Values from 0 (black) to 1 (white).
    """
    with _opened(path) as image:
        return image_values(image, canvas, in_color)


def image_values(image: Any, canvas: Size, in_color: bool) -> Array:
    """Return the pixels of a Pillow image as `read_image` does."""
    pillow = _pillow()
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
        image = pillow.alpha_composite(pillow.new("RGBA", image.size, "white"), image)
    image = image.convert("RGB" if in_color else "L")
    if image.size != (width, height):
        image = image.resize((width, height), pillow.Resampling.BILINEAR, reducing_gap=2.0)
    return _upright(scaled(np.asarray(image), 0, 255).reshape(height, width, -1), orientation)


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[Any]:
    """Open a picture, which reads no more than its header; whatever goes wrong then or later is an ImageFileError."""
    pillow = _pillow()
    file = Path(path)
    try:
        if not file.is_file():
            raise ImageFileError("is a folder" if file.is_dir() else "does not exist")
        if file.stat().st_size == 0:
            raise ImageFileError("is empty")
        with pillow.open(fspath(path), formats=FORMATS) as image:
            _check_size(image)
            yield image
    except ImageFileError:
        raise
    except pillow.DecompressionBombError as error:
        raise ImageFileError("has too many pixels: scale it down") from error
    except PermissionError as error:
        raise ImageFileError("cannot be read: permission denied") from error
    except import_module("PIL").UnidentifiedImageError as error:
        raise ImageFileError(f"is not a picture in a known format ({', '.join(FORMATS)})") from error
    except Exception as error:  # Pillow raises almost anything
        if is_lack_of_memory(error):
            raise ImageFileError("does not fit into memory") from error
        raise ImageFileError(f"is damaged ({error or type(error).__name__}): save it again") from error


def _check_size(image: Any) -> None:
    """Refuse a picture that is too large, before it is decoded."""
    pixels = image.width * image.height
    size = f"has {image.width} x {image.height} pixels"
    if pixels > MOST_PIXELS:
        raise ImageFileError(f"{size}, and at most {MOST_PIXELS / 1e6:.0f} million are read: scale it down")
    need = pixels * _PER_PIXEL
    if need > _ALWAYS_FITS and need > (room := free_memory()):
        raise ImageFileError(
            f"{size}, which take {need / 1e9:.1f} GB of memory to decode, {room / 1e9:.1f} GB are free: scale it down"
        )


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


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise ImportError("reading pictures needs pillow: pip install 'tnesi[files]'") from error
