from __future__ import annotations

import os

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.engine.threads import resolve_threads


def test_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    available = len(os.sched_getaffinity(0))
    assert resolve_threads(None) == available
    assert resolve_threads(7) == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    assert resolve_threads(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert resolve_threads(None) == available


@pytest.mark.parametrize("parameters", [{}, {"search": "exact"}, {"truncation": None}, {"solver": "hebbian"}])
def test_same_bits_with_any_number_of_threads(
    digits: tuple[np.ndarray, np.ndarray], parameters: dict[str, object]
) -> None:
    X, _ = digits
    fits = [
        PoissonMixture(200, norm=180, max_iter=4, tol=0, random_state=3, n_threads=n, **parameters).fit(X)
        for n in (1, 2, 3)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].weights_, other.weights_)
        np.testing.assert_array_equal(fits[0].transform(X).toarray(), other.transform(X).toarray())


def test_same_bits_with_neighbourhoods(rng: np.random.Generator) -> None:
    X = rng.integers(0, 30, (3000, 20)).astype(np.uint8)
    X[:, 0] += 1
    y = np.where(np.arange(3000) < 100, np.arange(3000) % 4, -1)
    fits = [
        SimpletronClassifier(600, norm=100, max_iter=3, tol=0, label_max_iter=5, random_state=3, n_threads=n).fit(X, y)
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].mixture_.weights_, fits[1].mixture_.weights_)
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


def test_same_seed_same_result(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    first, second, other = (PoissonMixture(50, max_iter=3, tol=0, random_state=seed).fit(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.weights_, second.weights_)
    assert not np.array_equal(first.weights_, other.weights_)
