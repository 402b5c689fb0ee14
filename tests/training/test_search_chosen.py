"""The search that suits the rows: all fields for very sparse rows, neighbors for others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tnesi import PoissonMixture


def rows(n_features: int, filled: float) -> sparse.csr_array:
    values = np.random.default_rng(0).random((1_400, n_features), np.float32)
    values[values > filled] = 0
    values[:, 0] = 1  # no row is empty
    return sparse.csr_array(values)


@pytest.mark.parametrize(("filled", "chosen"), [(0.005, "exact"), (0.2, "neighbors")])
def test_very_sparse_rows_are_compared_with_all_fields(filled: float, chosen: str) -> None:
    mixture = PoissonMixture(600, row_sum=3_000, max_iter=3, tol=0, random_state=0)
    X = rows(2_000, filled)
    mixture.fit(X)
    assert mixture.history_[-1]["search"] == chosen
    exact = PoissonMixture(600, row_sum=3_000, max_iter=3, tol=0, random_state=0, search="exact").fit(X)
    assert np.array_equal(mixture.predict(X), exact.predict(X)) == (chosen == "exact")
