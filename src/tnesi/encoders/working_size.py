"""How large pictures have to be on the canvas, so that the details that they consist of are still there.

A picture loses a share of its variance when it is scaled down. Photographs lose a tenth of it at 32 pixels, fine
textures nearly all. Outlines say more about what a photograph shows than its details do, so a small share may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tnesi.encoders.canvas import resized
from tnesi.types import Array

USUAL_SIZE = 32
"""Larger pictures are scaled down to it, unless they lose their details."""
SMALL, ENLARGED = 16, 24
"""Pictures up to the first size are enlarged to the second: directions of gradients are known better between pixels."""
FINEST = 128
"""Pixels along the longer side at which details are measured."""
LOOKED_AT = 100
"""Pictures whose details are measured."""
_SIZES = (USUAL_SIZE, 48, 64, 96)
_LOST, _FEW = 0.4, 0.1
"""A size is large enough where at most a tenth of the pictures lose more than 40 % of their variance."""


def working_size(pictures: Sequence[Array], longer: int) -> int:
    """Return the longer side of the canvas for pictures.

    Parameters
    ----------
    pictures : sequence of ndarray of shape (height, width, 1), float32
        A sample, `longer` pixels along the longer side.
    longer : int
        More than 32.

    Examples
    --------
    >>> x = np.arange(128, dtype=np.float32)
    >>> smooth, fine = np.sin(x / 10), np.sin(x * 1.2)
    >>> [working_size([np.tile(wave, (128, 1))[:, :, None]], 128) for wave in (smooth, fine)]
    [32, 96]
    """
    sizes = [size for size in _SIZES if size < longer]
    largest = min(longer, _SIZES[-1])
    for size in sizes:
        n_losing = sum(_lost(picture, size / longer) > _LOST for picture in pictures)
        if n_losing <= _FEW * len(pictures):
            return size
    return largest


def _lost(picture: Array, scale: float) -> float:
    """Return which share of its variance a picture loses when it is scaled."""
    height, width = picture.shape[:2]
    small = resized(picture[None], (max(1, round(height * scale)), max(1, round(width * scale))))
    change = resized(small, (height, width))[0] - picture
    variance = float(picture.var(dtype=np.float64))
    return float(np.mean(change**2, dtype=np.float64)) / variance if variance > 0 else 0.0
