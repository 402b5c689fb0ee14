"""Rows on a device of PyTorch: the checks and sums of :mod:`tnesi.model.rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tnesi.errors import InvalidDataError
from tnesi.kernels import tensors as kernels
from tnesi.system.devices import device_of
from tnesi.types import Array

if TYPE_CHECKING:
    from torch import Tensor

_CHUNK = 4096
"""Rows that are converted together."""


def usable_tensor(x: Tensor, safe: float) -> tuple[Tensor, Array, Array]:
    """Return uint8 or float32 rows, their sums and the indices of all-zero rows, which are set to ones.

    Rows with sums outside [1 / safe, safe] are divided by these.
    """
    sums = _row_sums(x)
    if not np.isfinite(sums).all():
        raise InvalidDataError(
            "the sum of a row overflows", advice="scale the data down (only the proportions in a row matter)"
        )
    zero = np.flatnonzero(sums == 0)
    extreme = (sums > safe) | ((sums < 1 / safe) & (sums > 0))
    if zero.size:
        x = x.index_fill(0, device_of(x).tensor(zero), 1)
    if extreme.any():
        x = x / device_of(x).tensor(np.where(extreme, sums, 1).astype(np.float32)).unsqueeze(1)
    return x, _row_sums(x) if zero.size or extreme.any() else sums, zero


def _row_sums(x: Tensor) -> Array:
    device = device_of(x)
    like = device.tensor(np.empty(0, device.sum_type))
    return device.array(x.sum(1, dtype=like.dtype)).astype(np.float64)


def moments(x: Tensor, scale: Array, weight: Array | None) -> tuple[Array, Array]:
    """Return the mean and the standard deviation of each feature of y, in two passes."""
    device = device_of(x)
    w = device.tensor((np.ones(len(x)) if weight is None else weight).astype(device.sum_type))
    mean, square = w.new_zeros(x.shape[1]), w.new_zeros(x.shape[1])
    chunks = list(zip(x.split(_CHUNK), w.split(_CHUNK), device.tensor(scale).to(w.dtype).split(_CHUNK), strict=True))
    for rows, share, factor in chunks:
        mean += share @ (rows.to(w.dtype) * factor.unsqueeze(1)) / w.sum()
    for rows, share, factor in chunks:
        square += share @ (rows.to(w.dtype) * factor.unsqueeze(1) - mean) ** 2 / w.sum()
    return 1 + device.array(mean).astype(np.float64), device.array(square.sqrt()).astype(np.float64)


def log_factorials(x: Tensor, scale: Array) -> Array:
    """Return sum_d log(y_d!) of each row."""
    device = device_of(x)
    out = device.tensor(np.empty(len(x), device.sum_type))
    kernels.log_factorials(x, device.tensor(scale), out, 1)
    return device.array(out).astype(np.float64)
