"""Informative test rows as small images in the page."""

from __future__ import annotations

import base64
import io
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from tnesi.paper.run_folder import RunFolder
from tnesi.report.fields import Shape
from tnesi.types import Array

KINDS = {"wrong": "Most certain, but wrong", "least": "Least certain", "most": "Most certain of each class"}
PROFILE_SHAPE = _HEIGHT, _BINS = 28, 56
"""Rows and columns of pixels of a profile."""


class Example(NamedTuple):
    picture: str
    truth: str
    predicted: str
    margin: float


class Sheet(NamedTuple):
    kind: str
    title: str
    rows: Array
    shape: Shape
    examples: list[Example]


def sheets(folder: RunFolder, name: str) -> list[Sheet]:
    """Return the saved examples of a setting, mistakes first; damaged files are ignored."""
    if "/" in name or "\\" in name:
        return []  # the name is not inside of the folder
    found = []
    for kind, title in KINDS.items():
        try:
            arrays = folder.arrays(f"{name}-{kind}")
            if arrays and len(arrays["images"]):
                found.append(_sheet(kind, title, arrays))
        except (BadZipFile, EOFError, KeyError, OSError, ValueError):
            continue
    return found


def _sheet(kind: str, title: str, arrays: dict[str, Array]) -> Sheet:
    height, width = (int(side) for side in arrays["shape"])
    rows = arrays["images"].reshape(-1, height * width)
    pictures = [data_uri(png(gray_picture(row, (height, width)), optimize=True)) for row in rows]
    told = zip(pictures, arrays["truth"], arrays["predicted"], arrays["margin"], strict=True)
    examples = [Example(picture, str(t), str(p), float(m)) for picture, t, p, m in told]
    return Sheet(kind, title, rows, (height, width), examples)


def gray_picture(row: Array, shape: Shape) -> Array:
    """Return a row as pixels, dark on white: an image, or a profile for other features."""
    values = np.maximum(row.astype(float), 0)
    values /= values.max() or 1.0
    if 1 in shape:
        bins = np.array([part.max() for part in np.array_split(values, min(_BINS, values.size))])
        picture = (np.arange(_HEIGHT, 0, -1)[:, None] <= np.ceil(bins * _HEIGHT)).astype(float)
    else:
        picture = values.reshape(shape)
    out: Array = np.round(255 * (1 - picture)).astype(np.uint8)
    return out


def png(picture: Array, **options: Any) -> bytes:
    """Return pixels as a PNG file; `options` are Pillow's."""
    from PIL import Image

    with io.BytesIO() as out:
        Image.fromarray(picture).save(out, format="PNG", **options)
        return out.getvalue()


def data_uri(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()
