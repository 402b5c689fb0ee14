from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.data.labels import few_labels
from tnesi.labeling.labels import encode_labels


def test_draws_of_integer_labels_stay_the_same(rng: np.random.Generator) -> None:
    """Published results depend on which labels a seed draws."""
    y = np.repeat(np.arange(3, dtype=np.uint8), 20)
    expected = np.full(60, -1, np.int64)
    for k in range(3):
        expected[rng.choice(np.flatnonzero(y == k), 4, replace=False)] = k
    few = few_labels(y, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(few, expected)
    assert few.dtype == np.int64


@given(
    st.lists(st.sampled_from("abc"), min_size=8).filter(lambda y: len(set(y)) > 1),
    st.integers(1, 4),
    st.integers(0, 9),
    st.sampled_from([None, "?"]),
    st.data(),
)
def test_every_class_keeps_its_share(y: list[str], per_class: int, seed: int, marker: Any, data: st.DataObject) -> None:
    hidden = data.draw(st.sets(st.integers(0, len(y) - 1), max_size=3))
    given_labels = [marker if i in hidden else label for i, label in enumerate(y)]
    if len(set(given_labels) - {marker}) < 2:
        return
    few = few_labels(given_labels, per_class, np.random.default_rng(seed), marker)
    for k in "abc":
        assert few.tolist().count(k) == min(per_class, given_labels.count(k))
    assert all(left in (marker, label) for left, label in zip(few.tolist(), given_labels, strict=True))
    codes, _ = encode_labels(few, marker)
    assert ((codes >= 0) == [v != marker for v in few.tolist()]).all()


@pytest.mark.parametrize("y", [[0.0, 1.0, np.nan, 1.0], np.array([0, 1, None, 1], object)])
def test_missing_labels_stay_missing(y: Any) -> None:
    assert few_labels(y, 9, np.random.default_rng(0)).tolist() == [0, 1, -1, 1]


def test_none_per_class_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="per_class must be at least 1"):
        few_labels([0, 1], 0, rng)
