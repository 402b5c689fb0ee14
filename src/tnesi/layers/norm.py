"""Choosing A, the sum to which every row is normalised, from the data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def auto_norm(X: Array, weight: Array | None = None) -> float:
    x = X.astype(np.float64)
    s = x.sum(1)
    ok = s > 0
    pr = np.average(s[ok] ** 2 / np.square(x[ok]).sum(1), weights=None if weight is None else weight[ok])
    return float(X.shape[1] + max(pr, 1.0) * 1.1)
