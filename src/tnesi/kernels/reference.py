"""The kernels in NumPy: the test oracle of the native kernels, and their replacement without a compiler.

Symbols and shapes are those of ``native/kernels.h``: ``x`` N x D raw input, an array or (indptr, indices, values) of a
sparse one, ``scale`` N with y = scale * x + 1, ``log_w`` C x Dp, ``base`` B x C with row ``base_row[n]`` for point n
(row 0 for None), ``ids`` and ``s`` N x C' in descending order of I_c with -1 for an empty place, ``r`` C x Kp. Output
arrays are written in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

from tnesi.types import Array

Given = Array | tuple[Array, Array, Array]
"""Rows as the kernels take them."""
EMPTY = np.float32(-3.0e38)
_AT_ONCE = 1024
"""Rows that are sorted together, which limits memory."""
TOO_FAINT = 1e-8
"""Activities below this do not change W under partial E-steps: the step is less than the spacing of floats."""
UNREACHED = 1e-30
"""Class weights of unused fields decay; a field whose weights sum to less than this counts as unreached."""

FULL_STEP = 1e-12
"""A step that keeps less of a class's weights keeps nothing of them."""


def _matrix(x: Given, n_columns: int) -> Any:
    """Return `x` as a dense or sparse matrix of float32."""
    if isinstance(x, tuple):
        indptr, indices, values = x
        return csr_array((values, indices, indptr), shape=(len(indptr) - 1, n_columns))
    return x.astype(np.float32)


def _values(x: Given) -> tuple[Array, Array, Array]:
    """Return row, column and value of all nonzero entries, in row-major order."""
    if isinstance(x, tuple):
        indptr, indices, values = x
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices, values
    row, column = np.nonzero(x)
    return row, column, x[row, column]


def _largest(scores: Array, n: int) -> Array:
    """Return the columns of the n largest values of each row in descending order; the first of equal values wins."""
    bits = (scores + np.float32(0)).view(np.int32).astype(np.int64)  # without -0
    column = np.arange(scores.shape[1])
    key = (bits ^ (bits >> 63 & 0x7FFFFFFF)) << 32 | column[::-1]  # integers in the order of the scores
    if n < column.size:
        key = np.partition(key, -n, axis=1)[:, -n:]
    found: Array = column.size - 1 - (np.sort(key, axis=1)[:, ::-1] & 0xFFFFFFFF)
    return found


def _write(scores: Array, fields: Array, points: Any, ids: Array, s: Array, log_sum: Array) -> None:
    """Write K^(n), s and the log-sum of `points` from the scores of `fields` (ascending); EMPTY is no candidate."""
    best = _largest(scores, ids.shape[1])
    top = np.take_along_axis(scores, best, axis=1)
    real = top > EMPTY
    first = top[:, :1].astype(np.float64) if fields.size else np.full((len(top), 1), float(EMPTY))
    e = np.exp(top - first) * real
    total = np.maximum(e.sum(axis=1, keepdims=True), 1)  # the first term is 1
    k = best.shape[1]
    ids[points, :k], ids[points, k:] = np.where(real, fields[best], -1), -1
    s[points, :k], s[points, k:] = e / total, 0
    log_sum[points] = (first + np.log(total))[:, 0]


def _bases(base: Array, base_row: Array | None, points: Any) -> Array:
    """Return rows of `base`: one for all points, or one for each."""
    rows: Array = base[:1] if base_row is None else base[base_row[points]]
    return rows


def select_top(
    raw: Array,
    scale: Array,
    base: Array,
    base_row: Array | None,
    ids: Array,
    s: Array,
    log_sum: Array,
    n_threads: int,
) -> None:
    """K^(n) and s from all inputs ``raw`` = x . log W (N x C)."""
    for start in range(0, len(raw), _AT_ONCE):
        points = slice(start, start + _AT_ONCE)
        scores = _bases(base, base_row, points) + scale[points, None] * raw[points]
        _write(scores, np.arange(raw.shape[1], dtype=np.int32), points, ids, s, log_sum)


def _products(matrix: Any, log_w: Array) -> Array:
    """Return X . log W as float32, summed in double: in single, the bits of a row depend on the other rows in BLAS."""
    exact: Array = matrix.astype(np.float64) @ log_w[:, : matrix.shape[1]].T.astype(np.float64)
    return exact.astype(np.float32)


def products(x: Given, log_w: Array, out: Array, n_threads: int) -> None:
    """X . log W for all fields (N x C)."""
    out[:] = _products(_matrix(x, log_w.shape[1]), log_w)


def search_all(
    x: Given,
    scale: Array,
    log_w: Array,
    base: Array,
    base_row: Array | None,
    ids: Array,
    s: Array,
    log_sum: Array,
    n_threads: int,
) -> None:
    """K^(n) and s from all fields."""
    raw = np.empty((len(scale), len(log_w)), np.float32)
    products(x, log_w, raw, n_threads)
    select_top(raw, scale, base, base_row, ids, s, log_sum, n_threads)


def search_groups(
    x: Given,
    scale: Array,
    log_w: Array,
    base: Array,
    base_row: Array | None,
    group: Array,
    lists: Array,
    ids: Array,
    s: Array,
    log_sum: Array,
    n_threads: int,
) -> None:
    """K^(n) and s from the fields in ``lists[group[n]]`` and those in ``ids[n]`` already: never worse."""
    matrix, n_fields = _matrix(x, log_w.shape[1]), len(log_w)
    for j in np.unique(group):
        points = np.flatnonzero(group == j)
        candidate = np.zeros((points.size, n_fields + 1), bool)  # the last column is for empty places
        candidate[:, np.where(lists[j] < n_fields, lists[j], -1)] = True
        np.put_along_axis(candidate, np.where(ids[points] < n_fields, ids[points], -1), True, axis=1)
        near = np.flatnonzero(candidate[:, :-1].any(axis=0)).astype(np.int32)
        inputs = _products(matrix[points], log_w[near])
        scores = _bases(base, base_row, points)[:, near] + scale[points, None] * inputs
        _write(np.where(candidate[:, near], scores, EMPTY), near, points, ids, s, log_sum)


def build_lists(ids: Array, lists: Array, n_threads: int) -> None:
    """List for each field itself and the fields that share most points with it; its own best points count twice."""
    n_fields, g = lists.shape
    lists[...] = -1
    for c in range(n_fields):
        member = (ids == c).any(axis=1)
        votes = np.repeat(np.where(ids[member, :1] == c, 2, 1), ids.shape[1])
        shared = ids[member].ravel()
        real = (shared >= 0) & (shared < n_fields)
        count = np.bincount(shared[real], weights=votes[real], minlength=n_fields)
        count[c] = 0
        near = np.lexsort((np.arange(n_fields), -count))
        near = near[count[near] > 0][: g - 1]
        lists[c, 0] = c
        lists[c, 1 : 1 + near.size] = near


def _sums(
    x: Given, scale: Array, weight: Array | None, ids: Array, s: Array, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return sum_n s_nc scale_n x_n and sum_n s_nc, in double precision."""
    n_fields, n_columns = shape
    share = s.astype(np.float64) if weight is None else s.astype(np.float64) * weight[:, None]
    real = (ids >= 0) & (ids < n_fields) & (s != 0)
    points, _ = np.nonzero(real)
    mass = np.bincount(ids[real], weights=share[real], minlength=n_fields)
    factor = csr_array((share[real] * scale[points], (ids[real], points)), shape=(n_fields, len(s)))
    sums = factor @ _matrix(x, n_columns).astype(np.float64)
    return (sums.toarray() if isinstance(x, tuple) else sums), mass


def _rounded(values: Array, unit: float) -> Array:
    """Round to multiples of `unit`, a power of two, so that sums are exact in any order."""
    out: Array = np.rint(values / unit) * unit if unit > 0 else values
    return out


def add_statistics(
    x: Given,
    scale: Array,
    weight: Array | None,
    ids: Array,
    s: Array,
    unit: float,
    mass_unit: float,
    sums: Array,
    mass: Array,
    n_threads: int,
) -> None:
    """Add sum_n s_nc scale_n x_n (C x D) and sum_n s_nc (C) of some points, as multiples of the units."""
    own_sums, own_mass = _sums(x, scale, weight, ids, s, sums.shape)
    sums += _rounded(own_sums, unit)
    mass += _rounded(own_mass, mass_unit)


def finish_m_step(
    sums: Array,
    mass: Array,
    old_w: Array,
    prior: Array | None,
    prior_rows: float,
    w: Array,
    log_w: Array,
    log_w_sum: Array,
    n_threads: int,
) -> None:
    """W_c = 1 + sums_c / mass_c; a field without mass keeps its weights.

    A prior adds `prior_rows` rows of 1 + prior to each field.
    """
    sums, total = sums.copy(), mass.copy()
    if prior is not None:
        sums += prior_rows * prior
        total += prior_rows
    alive = total > 0
    w[alive] = sums[alive] / total[alive, None] + 1
    w[~alive] = old_w[~alive]
    log_w[:, : w.shape[1]] = np.log(w)
    log_w_sum[:] = log_w.sum(axis=1, dtype=np.float64)


def m_step(
    x: Given,
    scale: Array,
    weight: Array | None,
    ids: Array,
    s: Array,
    unit: float,
    mass_unit: float,
    old_w: Array,
    prior: Array | None,
    prior_rows: float,
    w: Array,
    log_w: Array,
    log_w_sum: Array,
    mass: Array,
    n_threads: int,
) -> None:
    """W_c = sum_n s_nc y_n / sum_n s_nc, in one call."""
    sums = np.zeros(w.shape)
    mass[:] = 0
    add_statistics(x, scale, weight, ids, s, unit, mass_unit, sums, mass, n_threads)
    finish_m_step(sums, mass, old_w, prior, prior_rows, w, log_w, log_w_sum, n_threads)


def hebbian_step(
    x: Given,
    scale: Array,
    weight: Array | None,
    ids: Array,
    s: Array,
    rate: float,
    w: Array,
    log_w: Array,
    log_w_sum: Array,
    w_sum: Array,
    n_threads: int,
) -> None:
    """W_c += rate * sum_n s_nc (y_n - W_c) (eq. 9), but not beyond the mean of the batch."""
    sums, mass = _sums(x, scale, weight, ids, s, w.shape)
    won = mass > 0
    eps = np.minimum(rate, 1 / mass[won])[:, None]
    w[won] += eps * (sums[won] + mass[won, None] * (1 - w[won].astype(np.float64)))
    log_w[won, : w.shape[1]] = np.log(w[won])
    log_w_sum[won] = log_w[won].sum(axis=1, dtype=np.float64)
    w_sum[won] = w[won].sum(axis=1, dtype=np.float64)


def _take(x: Given, points: Array, n_columns: int) -> Given:
    if not isinstance(x, tuple):
        return np.ascontiguousarray(x[points])
    part = _matrix(x, n_columns)[points]
    return part.indptr, part.indices, part.data


def learn_online(
    x: Given,
    scale: Array,
    weight: Array | None,
    order: Array,
    batch: int,
    rate: float,
    row_sum: float,
    lists: Array,
    extra: Array,
    w: Array,
    log_w: Array,
    log_w_sum: Array,
    w_sum: Array,
    ids: Array,
    s: Array,
    log_sum: Array,
    log_joint: Array,
    n_threads: int,
) -> None:
    """Mini-batches in which K^(n) improves among ``lists`` of the best field and ``extra``, then a Hebbian step."""
    for start in range(0, order.size, batch):
        points = order[start : start + batch]
        given, own = _take(x, points, w.shape[1]), ids[points]
        listed = np.where(own[:, :1] >= 0, lists[own[:, 0]], -1)
        near = np.hstack([listed, extra[start : start + batch]]).astype(np.int32)
        out = own, s[points], log_sum[points]
        each = np.arange(points.size, dtype=np.int32)
        search_groups(given, scale[points], log_w, log_w_sum[None], None, each, near, *out, n_threads)
        ids[points], s[points], log_sum[points] = out
        real = out[0] >= 0
        logits = np.where(
            real,
            np.log(np.maximum(out[1].astype(np.float64), 1e-300)) + out[2][:, None] - w_sum[out[0]] + row_sum,
            -np.inf,
        )
        log_joint[points] = np.maximum(logsumexp(logits, axis=1), EMPTY)
        strong = np.where(out[1] >= TOO_FAINT, out[1], np.float32(0))
        some = None if weight is None else weight[points]
        hebbian_step(given, scale[points], some, out[0], strong, rate, w, log_w, log_w_sum, w_sum, n_threads)


def class_posterior(r: Array, fields: Array, s: Array) -> Array:
    """t_k = sum_c s_c R_kc / sum_k' R_k'c (eq. 8) for each point; unreached fields contribute nothing."""
    own = r[fields]
    reached = own.sum(axis=-1)
    share = np.divide(s, reached, out=np.zeros(s.shape), where=reached > UNREACHED)
    t: Array = (share[..., None, :] @ own)[..., 0, :]
    return t


def learn_classes(
    indptr: Array,
    indices: Array,
    values: Array,
    label: Array,
    weight: Array | None,
    order: Array,
    batch: int,
    rate: float,
    threshold: float,
    self_label: bool,
    sizes: Array | None,
    r: Array,
    n_classes: int,
    taught: Array,
    n_threads: int,
) -> None:
    """One epoch of R_k += rate * sum_n t_nk (s_n - R_k) (eq. 10), with hard self-labels where the margin > threshold.

    Class k votes with sizes[k] R_k, or with R_k if `sizes` is None. `taught` receives the labels used (-1: none).
    """
    row, width = np.repeat(np.arange(label.size), np.diff(indptr)), np.diff(indptr).max(initial=0)
    fields, s = np.zeros((label.size, width), np.int32), np.zeros((label.size, width))
    column = np.arange(row.size) - indptr[row]
    fields[row, column], s[row, column] = indices, values
    now = r[:, :n_classes].astype(np.float64)
    voice = np.ones(n_classes) if sizes is None else sizes.astype(np.float64)
    for start in range(0, order.size, batch):
        points = order[start : start + batch]
        taught[points] = label[points]
        if self_label and (label[points] < 0).any():
            unknown = points[label[points] < 0]
            t = class_posterior(now * voice, fields[unknown], s[unknown])
            second = np.partition(t, -2, axis=1)[:, -2] if n_classes > 1 else 0
            taught[unknown] = np.where(t.max(axis=1) - second > threshold, t.argmax(axis=1), -1)
        points = points[taught[points] >= 0]
        w = np.ones(points.size) if weight is None else weight[points].astype(np.float64)
        mass = np.bincount(taught[points], weights=w, minlength=n_classes)
        whole = 1 - rate * mass < FULL_STEP  # stop at the mean of the batch, and keep nothing of the old weights
        eps = np.where(whole, 1 / np.maximum(mass, 1e-300), rate)
        now *= np.where(whole, 0, 1 - rate * mass)
        own = taught[points, None]
        np.add.at(now, (fields[points], own), eps[own] * w[:, None] * s[points])
    r[:, :n_classes] = np.where(now < UNREACHED, 0, now)


def spread(
    indptr: Array, indices: Array, values: Array, source: Array, coefficients: Array, out: Array, n_threads: int
) -> None:
    """out[i] = sum_j coefficients[i, j] T_j(2 M - I) source: Chebyshev polynomials of a sparse C x C matrix M."""
    graph = csr_array((values, indices, indptr), shape=(len(source), len(source)))
    before, now = source, source
    out[:] = coefficients[:, 0, None, None] * now
    for degree in range(1, coefficients.shape[1]):
        moved = 2 * (graph @ now) - now
        before, now = now, moved if degree == 1 else 2 * moved - before
        out += coefficients[:, degree, None, None] * now


def _mix(h: Array) -> Array:
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = h ^ (h >> np.uint64(31))
    return mixed


def row_hashes(x: Given, seed: int, out: Array, n_threads: int) -> None:
    """Hash the proportions in each row to 64 bits: rows that are equal after normalization have equal hashes."""
    golden = 0x9E3779B97F4A7C15
    row, column, value = _values(x)
    total = np.bincount(row, weights=value, minlength=len(out))
    share = (value / total[row]).astype(np.float32)
    row, column, share = row[share != 0], column[share != 0], share[share != 0]
    key = column.astype(np.uint64) << np.uint64(32) | share.view(np.uint32)
    count = np.bincount(row, minlength=len(out))
    first = np.cumsum(count) - count
    h = _mix(np.full(len(out), (seed + golden) % 2**64, dtype=np.uint64))
    for j in range(count.max(initial=0)):  # the j-th value of each row
        here = np.flatnonzero(count > j)
        now = (h[here] ^ key[first[here] + j]) * np.uint64(golden)
        h[here] = now ^ (now >> np.uint64(32))
    out[:] = _mix(h)


def log_factorials(x: Given, scale: Array, out: Array, n_threads: int) -> None:
    """sum_d log(y_d!) with y = scale * x + 1; log 1! = 0 where x = 0."""
    row, _, value = _values(x)
    out[:] = np.bincount(row, weights=gammaln(scale[row] * value.astype(np.float64) + 2), minlength=len(out))


def _boxes(x: Array, boxes: Array | None) -> list[tuple[slice, slice]]:
    """Return the part of its canvas that each picture fills."""
    if boxes is None:
        return [(slice(None), slice(None))] * len(x)
    return [(slice(top, top + height), slice(left, left + width)) for top, left, height, width in boxes]


def _triangles(length: int, n_cells: int) -> Array:
    """Weights of the pixels along an axis in each cell: 1 at the center of a cell, 0 at the center of the next."""
    at = (np.arange(length)[:, None] + 0.5) * (n_cells / length) - (np.arange(n_cells) + 0.5)
    weights: Array = np.maximum(0, 1 - np.abs(at))
    return weights


def oriented_gradients(x: Array, boxes: Array | None, is_signed: bool, out: Array, n_threads: int) -> None:
    """Central differences of x^(3/4) vote with their magnitude for the two nearest orientations and cells."""
    _, n_rows, n_columns, n_orientations = out.shape
    of_rows, of_columns = _triangles(x.shape[1], n_rows), _triangles(x.shape[2], n_columns)
    turn = 2 * np.pi if is_signed else np.pi
    for n, (rows, columns) in enumerate(_boxes(x, boxes)):
        tones = np.pad(np.maximum(x[n, rows, columns], 0) ** 0.75, ((1, 1), (1, 1), (0, 0)), "edge")
        dx = (tones[1:-1, 2:] - tones[1:-1, :-2]) / 2
        dy = (tones[2:, 1:-1] - tones[:-2, 1:-1]) / 2
        strongest = (dx**2 + dy**2).argmax(axis=2)[:, :, None]
        dx, dy = (np.take_along_axis(d, strongest, axis=2)[:, :, 0] for d in (dx, dy))
        place = np.arctan2(dy, dx) / turn * n_orientations
        away = np.abs((place[:, :, None] - np.arange(n_orientations)) % n_orientations)
        nearness = np.maximum(0, 1 - np.minimum(away, n_orientations - away))
        votes = np.hypot(dx, dy)[:, :, None] * nearness
        out[n] = np.einsum("yxo,yi,xj->ijo", votes, of_rows[rows], of_columns[columns], optimize=True)


def color_histograms(x: Array, boxes: Array | None, out: Array, n_threads: int) -> None:
    """A pixel is a mixture of corners of the color cube, on the path from black to white, largest channel first."""
    of_rows, of_columns = _triangles(x.shape[1], out.shape[1]), _triangles(x.shape[2], out.shape[2])
    for n, (rows, columns) in enumerate(_boxes(x, boxes)):
        pixels = x[n, rows, columns].clip(0, 1)
        order = np.argsort(-pixels, axis=2, kind="stable")
        values = np.take_along_axis(pixels, order, axis=2)
        shares = -np.diff(values, axis=2, prepend=1, append=0)
        corners = np.cumsum(2**order, axis=2)
        votes = np.zeros((*pixels.shape[:2], 8))
        votes[:, :, 0] = shares[:, :, 0]
        for i in range(3):
            np.put_along_axis(votes, corners[:, :, i : i + 1], shares[:, :, i + 1 : i + 2], axis=2)
        out[n] = np.einsum("yxo,yi,xj->ijo", votes, of_rows[rows], of_columns[columns], optimize=True)
