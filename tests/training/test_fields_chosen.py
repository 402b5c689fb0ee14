"""The automatic number of fields."""

from __future__ import annotations

import pytest

from tnesi.training.mixture import count_fields


@pytest.mark.parametrize(
    ("n_rows", "n_features", "chosen"),
    [(60, 20, 10), (6000, 20, 1000), (600_000, 784, 10_000), (20_000, 50_000, 671), (20_000, 2**20, 100)],
)
def test_a_sixth_of_the_rows_but_few_wide_ones(n_rows: int, n_features: int, chosen: int) -> None:
    assert count_fields("auto", n_rows, n_rows, n_features) == chosen
    assert count_fields("auto", n_rows, 7, n_features) == 7
