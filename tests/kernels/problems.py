"""Arguments of kernels for property tests of all implementations, and what results have to agree in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tnesi import kernels

UNITS = (2.0**-30, 2.0**-34)
"""Of which sums and masses are multiples."""


def sparse_parts(x: Any) -> tuple[Any, Any, Any]:
    matrix = csr_array(x.astype(np.float32))
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


@st.composite
def problems(draw: st.DrawFn) -> SimpleNamespace:
    """Points, fields and activities of any shape, with blank rows, dead fields and empty places."""
    n, d, c = draw(st.integers(1, 40)), draw(st.integers(1, 70)), draw(st.integers(1, 90))
    width = draw(st.integers(1, c))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.integers(0, 256, (n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.1, 0.5, 1.0])))
    dtype = draw(st.sampled_from([np.uint8, np.float32]))
    w = (1 + rng.gamma(0.5, 2.0, (c, d))).astype(np.float32)
    log_w = np.zeros((c, kernels.padded(d)), np.float32)
    log_w[:, :d] = np.log(w)
    n_base = draw(st.integers(1, 3))
    ids = np.argsort(rng.random((n, c)), axis=1)[:, :width].astype(np.int32)
    s = rng.dirichlet(np.ones(width), n).astype(np.float32)
    empty = rng.random((n, width)) < draw(st.sampled_from([0.0, 0.3]))
    ids[empty], s[empty] = -1, 0
    x = np.ascontiguousarray(x.astype(dtype))
    is_sparse = draw(st.booleans())

    def given(part: slice = slice(None)) -> Any:
        """Rows as the kernels take them."""
        return sparse_parts(x[part]) if is_sparse else x[part]

    return SimpleNamespace(
        x=x,
        given=given,
        scale=rng.uniform(0.001, 0.02, n).astype(np.float32),
        weight=draw(st.sampled_from([None, rng.integers(0, 4, n).astype(np.float32)])),
        w=w,
        log_w=log_w,
        base=(log_w.sum(axis=1) + rng.normal(0, 1, (n_base, c))).astype(np.float32),
        base_row=draw(st.sampled_from([None, rng.integers(0, n_base, n).astype(np.int32)])),
        ids=ids,
        s=s,
        width=width,
        rng=rng,
    )


def outputs(n: int, width: int, ids: Any = None) -> tuple[Any, Any, Any]:
    ids = np.full((n, width), -1, np.int32) if ids is None else ids.copy()
    return ids, np.full((n, width), np.nan, np.float32), np.full(n, np.nan, np.float32)


def assert_same_activities(native: tuple[Any, Any, Any], expected: tuple[Any, Any, Any]) -> None:
    """Equal up to rounding; fields may swap places where their activities tie."""
    np.testing.assert_allclose(native[2], expected[2], rtol=2e-5, atol=2e-4)
    np.testing.assert_allclose(native[1], expected[1], atol=2e-3)
    np.testing.assert_array_equal(native[0] < 0, expected[0] < 0)
    for a, b, s in zip(native[0], expected[0], expected[1], strict=True):
        clear = np.abs(np.diff(s, prepend=2.0, append=-1.0))
        sure = (clear[:-1] > 1e-3) & (clear[1:] > 1e-3)
        np.testing.assert_array_equal(a[sure], b[sure])
