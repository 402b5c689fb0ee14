"""Means and principal directions, block by block."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from tnesi.encoders.moments import Moments


@given(st.lists(st.integers(0, 40), max_size=5), st.floats(-1e6, 1e6))
def test_blocks(cuts: list[int], offset: float) -> None:
    """Blocks of any size, also empty ones, and a mean far from zero."""
    X = np.random.default_rng(0).normal(size=(40, 4)) * [4, 3, 2, 1] + offset
    moments = Moments(4, covariances=True)
    for block in np.split(X, sorted(cuts)):
        moments.add(block)
    variances, directions = moments.principal_directions(moments.mean)
    expected = PCA().fit(X - offset)
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variances * 40 / 39, expected.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(np.abs((directions * expected.components_).sum(axis=1)), 1, rtol=1e-6)
