"""The kernels on PyTorch's tensors, on any device: those that learning and prediction with exact search need.

Arguments are those of :mod:`tnesi.kernels.reference`, as tensors on one device; rows are dense, and `n_threads` is
unused, since PyTorch has its own setting. Rows are processed in blocks that limit memory. No step depends on the values
of a tensor, so nothing waits for the device. Sums have the type of the tensors that receive them: double, except on
devices without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_CPU_BLOCK, _DEVICE_BLOCK = 2**21, 2**26
"""Values in the temporary matrix of a block: 8 MB, or 256 MB."""


def _blocks(width: int, x: Tensor, *others: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Yield blocks of rows of all tensors, for temporary matrices of `width` columns; None stays None."""
    at_once = max(16, (_CPU_BLOCK if x.device.type == "cpu" else _DEVICE_BLOCK) // width)
    parts = (repeat(None) if one is None else one.split(at_once) for one in others)
    return zip(x.split(at_once), *parts, strict=False)


def _bases(base: Tensor, base_row: Tensor | None) -> Tensor:
    """Return rows of `base`: one for all points, or one for each."""
    return base.narrow(0, 0, 1) if base_row is None else base.index_select(0, base_row)


def _multiplier(x: Tensor, log_w: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the product of some rows of float32 and log W.

    On the processor oneDNN computes it, which takes half the time of PyTorch's BLAS on AMD's processors.
    """
    import torch

    weights = log_w.narrow(1, 0, x.shape[1])
    if x.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return lambda rows: rows @ weights.T
    packed = weights.to_mkldnn()
    return lambda rows: torch.nn.functional.linear(rows.to_mkldnn(), packed).to_dense()


def _write(scores: Tensor, ids: Tensor, s: Tensor, log_sum: Tensor) -> None:
    """Write K^(n), s and the log-sum of some points."""
    top, best = scores.topk(ids.shape[1])
    ids.copy_(best)
    s.copy_(top.softmax(1))
    log_sum.copy_(top.logsumexp(1))


def select_top(
    raw: Tensor,
    scale: Tensor,
    base: Tensor,
    base_row: Tensor | None,
    ids: Tensor,
    s: Tensor,
    log_sum: Tensor,
    n_threads: int,
) -> None:
    """K^(n) and s from all inputs ``raw`` = x . log W (N x C)."""
    for inputs, factor, row, *out in _blocks(raw.shape[1], raw, scale, base_row, ids, s, log_sum):
        _write(inputs * factor.unsqueeze(1) + _bases(base, row), *out)


def products(x: Tensor, log_w: Tensor, out: Tensor, n_threads: int) -> None:
    """X . log W for all fields (N x C)."""
    multiply = _multiplier(x, log_w)
    for rows, inputs in _blocks(x.shape[1], x, out):
        inputs.copy_(multiply(rows.float()))


def search_all(
    x: Tensor,
    scale: Tensor,
    log_w: Tensor,
    base: Tensor,
    base_row: Tensor | None,
    ids: Tensor,
    s: Tensor,
    log_sum: Tensor,
    n_threads: int,
) -> None:
    """K^(n) and s from all fields."""
    multiply = _multiplier(x, log_w)
    for rows, factor, row, *out in _blocks(len(log_w), x, scale, base_row, ids, s, log_sum):
        _write(multiply(rows.float() * factor.unsqueeze(1)).add_(_bases(base, row)), *out)


def _shares(like: Tensor, weight: Tensor | None, ids: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Return the fields of each point, 0 for an empty place, and their weighted s in the type of `like`."""
    share = s.to(like.dtype) * (ids >= 0)
    return ids.clamp(min=0).long(), share if weight is None else share * weight.unsqueeze(1)


def _rounded(values: Tensor, unit: float) -> Tensor:
    """Round to multiples of `unit`, a power of two, so that sums are exact in any order."""
    return (values / unit).round_().mul_(unit) if unit > 0 else values


def add_statistics(
    x: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    ids: Tensor,
    s: Tensor,
    unit: float,
    mass_unit: float,
    sums: Tensor,
    mass: Tensor,
    n_threads: int,
) -> None:
    """Add sum_n s_nc scale_n x_n (C x D) and sum_n s_nc (C) of some points, as multiples of the units."""
    own_sums, own_mass = sums.new_zeros(sums.shape), mass.new_zeros(mass.shape)
    for rows, factor, *of_rows in _blocks(x.shape[1], x, scale, weight, ids, s):
        fields, share = _shares(sums, *of_rows)
        scaled = rows.to(sums.dtype) * factor.unsqueeze(1)
        for field, part in zip(fields.unbind(1), share.unbind(1), strict=True):
            own_mass.index_add_(0, field, part)
            own_sums.index_add_(0, field, part.unsqueeze(1) * scaled)
    sums += _rounded(own_sums, unit)
    mass += _rounded(own_mass, mass_unit)


def finish_m_step(
    sums: Tensor,
    mass: Tensor,
    old_w: Tensor,
    prior: Tensor | None,
    prior_rows: float,
    w: Tensor,
    log_w: Tensor,
    log_w_sum: Tensor,
    n_threads: int,
) -> None:
    """W_c = 1 + sums_c / mass_c; a field without mass keeps its weights.

    A prior adds `prior_rows` rows of 1 + prior to each field.
    """
    if prior is not None:
        sums, mass = sums + prior_rows * prior, mass + prior_rows
    total = mass.unsqueeze(1)
    w.copy_((sums / total + 1).where(total > 0, old_w))
    log_w.narrow(1, 0, w.shape[1]).copy_(w.log())
    log_w_sum.copy_(log_w.sum(1, dtype=sums.dtype))


def m_step(
    x: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    ids: Tensor,
    s: Tensor,
    unit: float,
    mass_unit: float,
    old_w: Tensor,
    prior: Tensor | None,
    prior_rows: float,
    w: Tensor,
    log_w: Tensor,
    log_w_sum: Tensor,
    mass: Tensor,
    n_threads: int,
) -> None:
    """W_c = sum_n s_nc y_n / sum_n s_nc, in one call."""
    sums = mass.new_zeros(w.shape)
    mass.zero_()
    add_statistics(x, scale, weight, ids, s, unit, mass_unit, sums, mass, n_threads)
    finish_m_step(sums, mass, old_w, prior, prior_rows, w, log_w, log_w_sum, n_threads)


def hebbian_step(
    x: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    ids: Tensor,
    s: Tensor,
    rate: float,
    w: Tensor,
    log_w: Tensor,
    log_w_sum: Tensor,
    w_sum: Tensor,
    n_threads: int,
) -> None:
    """W_c += rate * sum_n s_nc (y_n - W_c) (eq. 9), but not beyond the mean of the batch.

    Every place of every point has an entry. One entry of each field adds up the others; all write the same result.
    """
    fields, share = (part.flatten() for part in _shares(w, weight, ids, s))
    entry = fields.new_ones(fields.shape).cumsum(0) - 1
    own = fields.new_zeros(len(w)).index_copy_(0, fields, entry).index_select(0, fields)
    above = (x.float() * scale.unsqueeze(1)).repeat_interleave(ids.shape[1], 0) * share.unsqueeze(1)
    sums = above.new_zeros(above.shape).index_add_(0, own, above).index_select(0, own)
    mass = share.new_zeros(share.shape).index_add_(0, own, share).index_select(0, own).unsqueeze(1)
    old = w.index_select(0, fields)
    new = old + (1 / mass).clamp(max=rate) * (sums + mass * (1 - old))
    logarithms = new.log()
    w.index_copy_(0, fields, new)
    log_w.narrow(1, 0, w.shape[1]).index_copy_(0, fields, logarithms)
    log_w_sum.index_copy_(0, fields, logarithms.sum(1))
    w_sum.index_copy_(0, fields, new.sum(1))


def log_factorials(x: Tensor, scale: Tensor, out: Tensor, n_threads: int) -> None:
    """sum_d log(y_d!) with y = scale * x + 1."""
    for rows, factor, constant in _blocks(x.shape[1], x, scale, out):
        constant.copy_((rows.to(out.dtype) * factor.unsqueeze(1) + 2).lgamma().sum(1))


def _shifted(h: Tensor, n: int) -> Tensor:
    """Shift 64 bits to the right without copies of the sign."""
    return (h >> n) & ((1 << (64 - n)) - 1)


def _mix(h: Tensor) -> Tensor:
    h = (h ^ _shifted(h, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    h = (h ^ _shifted(h, 27)) * (0x94D049BB133111EB - 2**64)
    return h ^ _shifted(h, 31)


def row_hashes(x: Tensor, seed: int, out: Tensor, n_threads: int) -> None:
    """Hash the proportions in each row to 64 bits: rows that are equal after normalization have equal hashes."""
    import torch

    golden = 0x9E3779B97F4A7C15
    wide = x.float() if x.device.type == "mps" else x.double()
    shares = (wide / wide.sum(1, keepdim=True)).nan_to_num(0.0).float()
    h = _mix(out.new_full(out.shape, (seed + golden + 2**63) % 2**64 - 2**63))
    for column, share in enumerate(shares.view(torch.int32).long().unbind(1)):
        now = (h ^ (share | column << 32)) * (golden - 2**64)
        h = (now ^ _shifted(now, 32)).where(share != 0, h)
    out.copy_(_mix(h))
