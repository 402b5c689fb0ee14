from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.data import few_labels, load_named
from tnesi.paper.labeling import draw_labels
from tnesi.paper.variants import mislabel, unbalanced_rows, vary


@given(st.lists(st.integers(20, 200), min_size=2, max_size=9), st.floats(2, 20))
def test_sizes_fall_geometrically(sizes: list[int], ratio: float) -> None:
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = unbalanced_rows(y, ratio)
    assert np.all(np.diff(rows) > 0)
    counts = np.bincount(y[rows], minlength=len(sizes))
    assert np.any(counts == sizes)  # no larger ones are possible
    in_order = np.sort(counts)[::-1]
    wanted = in_order[0] * ratio ** -(np.arange(len(sizes)) / (len(sizes) - 1))
    assert np.all(np.abs(in_order - wanted) <= 1)


def test_unbalanced_digits() -> None:
    data, varied = load_named("digits"), vary(load_named("digits"), "unbalanced")
    assert varied.test is not None
    assert data.test is not None
    assert np.array_equal(varied.X, data.X[unbalanced_rows(data.y)])
    assert np.array_equal(varied.y, data.y[unbalanced_rows(data.y)])
    counts, test_counts = np.bincount(varied.y), np.bincount(varied.test.y)
    assert counts.max() / counts.min() == pytest.approx(20, rel=0.2)
    assert np.array_equal(np.argsort(counts), np.argsort(test_counts))
    assert varied.rows.image_shape == (8, 8)
    assert varied.name == "digits, unbalanced"


def test_odd_and_even() -> None:
    data, varied = load_named("digits"), vary(load_named("digits"), "odd-even")
    assert varied.fingerprint == data.fingerprint
    for one, other in ((varied, data), (varied.test, data.test)):
        assert one is not None
        assert other is not None
        assert np.array_equal(one.y == "odd", other.y % 2 == 1)
        assert set(one.y) == {"odd", "even"}


labels = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=40).map(lambda given: ["a", "b", *given])


@given(labels, st.floats(0, 1), st.integers(0, 99))
def test_wrong_labels(given_labels: list[Any], share: float, seed: int) -> None:
    y = np.array(given_labels, object)
    wrong = mislabel(y, share, np.random.default_rng(seed))
    n_labels = sum(label is not None for label in given_labels)
    changed = [(a, b) for a, b in zip(given_labels, wrong.tolist(), strict=True) if a != b]
    assert len(changed) == round(share * n_labels)
    assert all(a is not None and b in given_labels and b is not None for a, b in changed)


def test_draws() -> None:
    y = load_named("digits").y
    clean, noisy = draw_labels(y, 10, 0.0, 3), draw_labels(y, 10, 0.05, 3)
    assert np.array_equal(clean, few_labels(y, 10, np.random.default_rng(3), unlabeled=None))
    assert sum(a != b for a, b in zip(clean.tolist(), noisy.tolist(), strict=True)) == 5
    assert np.array_equal(noisy, draw_labels(y, 10, 0.05, 3))
    assert not np.array_equal(noisy, draw_labels(y, 10, 0.05, 4))
