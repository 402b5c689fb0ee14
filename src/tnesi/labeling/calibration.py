"""Calibration: sharpen probabilities until their mean certainty equals the expected accuracy."""

from __future__ import annotations

import numpy as np

from tnesi.types import Array

_LEAST, _MOST = 1e-2, 1e4


def sharpness_for(posterior: Array, accuracy: float) -> float:
    """Return the power for probabilities (N x K) at which the mean of the largest ones is `accuracy`.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.array([[0.6, 0.4], [0.7, 0.3]])
    >>> power = sharpness_for(t, 0.9)
    >>> sharp = t**power / (t**power).sum(axis=1, keepdims=True)
    >>> round(float(sharp.max(axis=1).mean()), 3)
    0.9
    """
    log = np.log(np.maximum(posterior, 1e-30))
    log -= log.max(axis=1, keepdims=True)
    low, high = np.log(_LEAST), np.log(_MOST)
    for _ in range(40):
        middle = (low + high) / 2
        certainty = np.mean(1 / np.exp(np.exp(middle) * log).sum(axis=1))
        low, high = (middle, high) if certainty < accuracy else (low, middle)
    return float(np.exp((low + high) / 2))
