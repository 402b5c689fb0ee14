from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tnesi.model.rows import normalize, row_hashes

rows_of_numbers = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=12),
    elements=st.floats(0, 1e6, width=32, allow_subnormal=False),
).filter(lambda X: (X.sum(axis=1) > 1e-3).all())


@given(rows_of_numbers, st.floats(1, 1000))
def test_rows_have_their_sum_and_no_value_is_below_one(X: np.ndarray, above: float) -> None:
    y = normalize(X, X.shape[1] + above).y()
    np.testing.assert_allclose(y.sum(axis=1), X.shape[1] + above, rtol=1e-4)
    assert (y >= 1).all()


@given(rows_of_numbers, st.floats(1e-3, 1e3))
def test_only_proportions_count(X: np.ndarray, factor: float) -> None:
    np.testing.assert_allclose(normalize(X, 100).y(), normalize(X.astype(np.float64) * factor, 100).y(), rtol=1e-4)


def test_uint8_is_not_copied(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    assert normalize(X, 200).x is X


def test_float32_is_not_copied(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X = digits[0].astype(np.float32)
    assert normalize(X, 200).x is X


def test_types_agree(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    expected = normalize(X, 200)
    for other in (X.astype(np.float32), X.astype(np.float64), np.asfortranarray(X.astype(np.float64))):
        rows = normalize(other, 200)
        np.testing.assert_array_equal(rows.y(), expected.y())
        np.testing.assert_array_equal(row_hashes(rows.x, 3, 1), row_hashes(expected.x, 3, 1))


def test_extreme_magnitudes_survive() -> None:
    X = np.array([[1.0, 3.0], [2.0, 2.0]])
    expected = normalize(X, 10).y()
    for factor in (1e-300, 1e-40, 1e40, 1e300):
        np.testing.assert_allclose(normalize(X * factor, 10).y(), expected, rtol=1e-6)


def test_zero_rows_are_even() -> None:
    X = np.array([[0.0, 0.0], [1.0, 3.0], [0.0, 0.0]])
    y = normalize(X, 10).y()
    np.testing.assert_allclose(y, [[5, 5], [3, 7], [5, 5]])
    assert X[0, 0] == 0  # the caller's data are unchanged


def test_overflowing_sums_are_refused() -> None:
    with pytest.raises(ValueError, match="scale the data down"):
        normalize(np.full((2, 3), 1e308), 10)


@pytest.mark.parametrize("row_sum", [2, 1.5, -1])
def test_row_sum_must_exceed_the_features(row_sum: float) -> None:
    with pytest.raises(ValueError, match="must be larger than the number of features"):
        normalize(np.ones((3, 2)), row_sum)
