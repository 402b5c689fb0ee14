from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier
from tnesi.paper import NeuralSimpletron, OnlineRule
from tnesi.system.threads import resolve_threads


def test_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert resolve_threads(None) == available
    assert resolve_threads(7) == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    assert resolve_threads(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert resolve_threads(None) == available


def test_tasks_of_a_dask_worker_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Client, LocalCluster

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)
    with (
        LocalCluster(n_workers=1, threads_per_worker=4, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        assert client.submit(resolve_threads, None).result() == 3
    assert resolve_threads(None) == 12


def test_jobs_of_joblib_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    from joblib import Parallel, cpu_count, delayed
    from joblib.externals.loky import get_reusable_executor

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    try:
        found = Parallel(n_jobs=2)(delayed(resolve_threads)(None) for _ in range(4))
    finally:
        get_reusable_executor().shutdown(wait=True)
    assert found == [max(1, cpu_count() // 2)] * 4  # of those that this process may use


Learn = Callable[[np.ndarray, int, float, int, int], PoissonMixture]


def by_em(**parameters: Any) -> Learn:
    def learn(X: np.ndarray, n_components: int, row_sum: float, max_iter: int, n_jobs: int) -> PoissonMixture:
        given = {"row_sum": row_sum, "max_iter": max_iter, "tol": 0, "random_state": 3, "n_jobs": n_jobs}
        return PoissonMixture(n_components, **given, **parameters).fit(X)

    return learn


def online(X: np.ndarray, n_components: int, row_sum: float, max_iter: int, n_jobs: int) -> PoissonMixture:
    rule = OnlineRule(max_iter=max_iter)
    network = NeuralSimpletron(n_components, row_sum=row_sum, rule=rule, random_state=3, n_jobs=n_jobs)
    return network.fit(X, np.full(len(X), -1)).mixture_


RULES: dict[str, Learn] = {
    "EM": by_em(),
    "exact search": by_em(search="exact"),
    "no truncation": by_em(truncation=None),
    "online": online,
}


@pytest.mark.parametrize("rule", RULES)
def test_same_bits_with_any_number_of_threads(digits: tuple[np.ndarray, np.ndarray], rule: str) -> None:
    X, _ = digits
    fits = [RULES[rule](X, 200, 180, 4, n) for n in (1, 2, 3)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].means_, other.means_)
        np.testing.assert_array_equal(fits[0].transform(X).toarray(), other.transform(X).toarray())


def test_same_bits_with_neighborhoods(rng: np.random.Generator) -> None:
    X = rng.integers(0, 30, (3000, 20)).astype(np.uint8)
    X[:, 0] += 1
    y = np.where(np.arange(3000) < 100, np.arange(3000) % 4, -1)
    fits = [
        SimpletronClassifier(
            PoissonMixture(600, row_sum=100, max_iter=3, tol=0),
            random_state=3,
            n_jobs=n,
            labeling=SelfLabeling(max_iter=5),
        ).fit(X, y)
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].mixture_.means_, fits[1].mixture_.means_)
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


def test_same_seed_same_result(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    first, second, other = (PoissonMixture(50, max_iter=3, tol=0, random_state=seed).fit(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.means_, second.means_)
    assert not np.array_equal(first.means_, other.means_)


@pytest.mark.parametrize("rule", RULES)
def test_same_bits_on_wide_data_with_many_fields(rng: np.random.Generator, rule: str) -> None:
    """Large enough for BLAS to divide its products among threads, which would change the last bits."""
    X = rng.poisson(rng.gamma(0.3, 5.0, (40, 700))[rng.integers(0, 40, 2500)]).astype(np.uint8)
    fits = [RULES[rule](X, 1100, 900, 1, n) for n in (1, 2)]
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)
    np.testing.assert_array_equal(fits[0].predict(X[:200]), fits[1].predict(X[:200]))


def test_prediction_leaves_the_threads_of_blas_alone(digits: tuple[np.ndarray, np.ndarray]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def blas() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    X, _ = digits
    mixture = PoissonMixture(60, row_sum=180, search="exact", max_iter=2, tol=0, random_state=0).fit(X)
    before = blas()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: mixture.predict(X), range(8)))
    assert blas() == before
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_prediction_does_not_change_the_model(rng: np.random.Generator) -> None:
    import pickle

    X = rng.integers(1, 30, (1500, 12)).astype(np.uint8)
    mixture = PoissonMixture(600, row_sum=60, max_iter=2, tol=0, random_state=0).fit(X)
    before = pickle.dumps(mixture)
    mixture.predict(X)
    assert pickle.dumps(mixture) == before
