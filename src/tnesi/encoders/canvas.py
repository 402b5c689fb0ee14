"""Pictures of any size on a canvas of one size: scaled to fit, aspect ratio kept, in the middle.

A picture fills a box of the canvas, (top, left, height, width). Nothing is made up around it: encoders leave out what
is outside of the box, so a picture in portrait format has no edges where its sides end.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tnesi.kernels.blas import single_threaded_blas
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
    with single_threaded_blas():
        rows = _triangles(height, size[0]) @ pictures.reshape(n, height, width * channels)
        columns = rows.reshape(n, size[0], width, channels).swapaxes(2, 3) @ _triangles(width, size[1]).T
    return np.ascontiguousarray(columns.swapaxes(2, 3))


@lru_cache(64)
def _triangles(before: int, after: int) -> Array:
    """Return weights of `before` pixels in `after` others, which sum to 1."""
    scale = before / after
    centers = (np.arange(after)[:, None] + 0.5) * scale
    weights = np.maximum(0, 1 - np.abs(np.arange(before) + 0.5 - centers) / max(scale, 1))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)
