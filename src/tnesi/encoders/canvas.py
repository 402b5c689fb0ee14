"""Pictures of any size on a canvas of one size: scaled to fit, centered, with their proportions kept.

A picture fills a box of the canvas, (top, left, height, width). Encoders ignore the area outside of the box, so that
pictures have no edges at their borders.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array

from tnesi.types import Array

Size = tuple[int, int]
"""Height and width."""


def fitted_size(size: Size, canvas: Size) -> Size:
    """Return the largest size with the proportions of `size` that fits on the canvas.

    Examples
    --------
    >>> fitted_size((480, 640), (64, 64))
    (48, 64)
    >>> fitted_size((8, 8), (64, 48))
    (48, 48)
    """
    height, width = size
    scale = min(canvas[0] / height, canvas[1] / width)
    return (
        min(canvas[0], max(1, round(height * scale))),
        min(canvas[1], max(1, round(width * scale))),
    )


def box_for(size: Size, canvas: Size) -> tuple[int, int, int, int]:
    """Return the box in the middle of the canvas that a picture of this size fills.

    Examples
    --------
    >>> box_for((48, 64), (64, 64))
    (8, 0, 48, 64)
    """
    return (canvas[0] - size[0]) // 2, (canvas[1] - size[1]) // 2, *size


def resized(pictures: Array, size: Size) -> Array:
    """Return pictures (N x H x W x channels, float32) in another size.

    Each pixel is a mean of the old ones around it with triangular weights, which reach as far as pixels are apart in
    the smaller picture: this does not alias.
    """
    n, height, width, channels = pictures.shape
    if (height, width) == size:
        return pictures
    of_rows, of_columns = _triangles(height, size[0]), _triangles(width, size[1])
    out = np.empty((n, *size, channels), np.float32)
    for picture, resized_one in zip(pictures, out, strict=True):
        rows = (of_rows @ picture.reshape(height, width * channels)).reshape(size[0], width, channels)
        columns = of_columns @ rows.swapaxes(0, 1).reshape(width, size[0] * channels)
        resized_one[:] = columns.reshape(size[1], size[0], channels).swapaxes(0, 1)
    return out


@lru_cache(64)
def _triangles(before: int, after: int) -> csr_array:
    """Return weights of `before` pixels in `after` others, which sum to 1; few are not 0."""
    scale = before / after
    centers = (np.arange(after)[:, None] + 0.5) * scale
    weights = np.maximum(0, 1 - np.abs(np.arange(before) + 0.5 - centers) / max(scale, 1))
    return csr_array((weights / weights.sum(axis=1, keepdims=True)).astype(np.float32))
