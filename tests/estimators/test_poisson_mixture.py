from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from tnesi import PoissonMixture
from tnesi.execution import Local


@pytest.fixture(scope="module")
def fitted() -> tuple[PoissonMixture, Any]:
    from sklearn.datasets import load_digits

    X = load_digits().data.astype(np.uint8)
    return PoissonMixture(120, row_sum=180, random_state=0).fit(X), X


def test_attributes(fitted: tuple[PoissonMixture, Any]) -> None:
    mixture, X = fitted
    assert mixture.means_.shape == (120, 64)
    assert mixture.means_.dtype == np.float32
    np.testing.assert_allclose(mixture.means_.sum(axis=1), 180, rtol=1e-5)
    assert mixture.converged_
    assert mixture.n_iter_ == len(mixture.history_) - 1
    assert mixture.lower_bound_ == mixture.history_[-1]["free_energy"]
    assert mixture.score(X) == pytest.approx(mixture.lower_bound_, abs=1e-3)
    assert set(mixture.history_[0]) == {"iteration", "free_energy", "changed", "search", "seconds"}


def test_transform_is_a_sparse_posterior(fitted: tuple[PoissonMixture, Any]) -> None:
    mixture, X = fitted
    s = mixture.transform(X)
    assert sparse.issparse(s)
    assert s.format == "csr"
    assert s.shape == (len(X), 120)
    assert np.diff(s.indptr).max() <= 15
    np.testing.assert_allclose(s.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(s.toarray().argmax(axis=1), mixture.predict(X))


def test_free_energy_is_a_bound_of_the_log_likelihood(fitted: tuple[PoissonMixture, Any]) -> None:
    """Compared with the Poisson mixture written out."""
    from scipy.special import gammaln, logsumexp
    from scipy.stats import poisson

    mixture, X = fitted
    y = 116 * (X[:50] / X[:50].sum(axis=1, keepdims=True)) + 1
    w = mixture.means_.astype(np.float64)
    log_p = (y[:, None] * np.log(w) - w - gammaln(y + 1)[:, None]).sum(axis=2) - np.log(120)
    best = np.sort(log_p, axis=1)[:, -15:]
    np.testing.assert_allclose(mixture.score_samples(X[:50]), logsumexp(best, axis=1), atol=1e-3)
    assert (mixture.score_samples(X[:50]) <= logsumexp(log_p, axis=1) + 1e-3).all()
    counts = np.round(y[0])
    np.testing.assert_allclose(  # the formula is the Poisson distribution's
        (counts * np.log(w[0]) - w[0] - gammaln(counts + 1)).sum(), poisson.logpmf(counts, w[0]).sum(), rtol=1e-9
    )


def test_sample(fitted: tuple[PoissonMixture, Any]) -> None:
    mixture, _ = fitted
    X, fields = mixture.sample(4000)
    assert X.shape == (4000, 64)
    assert X.sum(axis=1).mean() == pytest.approx(180, rel=0.01)
    assert np.mean(mixture.predict(X[:500] - np.minimum(X[:500], 1)) == fields[:500]) > 0.5
    np.testing.assert_array_equal(mixture.sample(3)[0], mixture.sample(3)[0])


def test_more_truncation_costs_free_energy(fitted: tuple[PoissonMixture, Any]) -> None:
    _, X = fitted
    energy = [
        np.mean([PoissonMixture(60, truncation=t, row_sum=180, random_state=seed).fit(X).score(X) for seed in range(3)])
        for t in (1, 5, None)
    ]  # one fit differs from another by 0.25 +- 0.07
    assert energy[0] < energy[1]
    assert energy[0] < energy[2]


def test_auto_fields(rng: np.random.Generator) -> None:
    X = rng.integers(1, 200, (600, 5)).astype(np.uint8)
    assert PoissonMixture(row_sum=30, max_iter=1, tol=0).fit(X).n_components_ == 100
    assert PoissonMixture(row_sum=30, max_iter=1, tol=0).fit(X[:30]).n_components_ == 10
    assert PoissonMixture(row_sum=30, max_iter=1, tol=0).fit(X[:4]).n_components_ == 4
    assert PoissonMixture(row_sum=30, max_iter=1, tol=0).fit(np.repeat(X[:7], 100, axis=0)).n_components_ == 7


def test_the_default_truncation_shrinks_to_the_fields(fitted: tuple[PoissonMixture, Any]) -> None:
    _, X = fitted
    assert PoissonMixture(4, row_sum=180, max_iter=1, tol=0).fit(X).truncation_ == 4


def test_permuted_pixels_are_learned_as_well(fitted: tuple[PoissonMixture, Any], rng: np.random.Generator) -> None:
    """The order of the features does not matter; only the random initialization differs."""
    mixture, X = fitted
    order = rng.permutation(64)

    energy = mixture.score(X)
    assert PoissonMixture(120, row_sum=180, random_state=0).fit(X[:, order]).score(X[:, order]) == pytest.approx(
        energy, abs=0.5
    )


def test_row_order_does_not_matter(fitted: tuple[PoissonMixture, Any], rng: np.random.Generator) -> None:
    _, X = fitted
    parameters: dict[str, Any] = {"row_sum": 180, "max_iter": 4, "tol": 0, "random_state": 0}
    one = PoissonMixture(50, **parameters).fit(X)
    other = PoissonMixture(50, **parameters).fit(X[rng.permutation(len(X))])
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-3)


def test_warns_where_it_has_not_converged(fitted: tuple[PoissonMixture, Any]) -> None:
    _, X = fitted
    with pytest.warns(ConvergenceWarning, match="2 iterations did not reach tol"):
        mixture = PoissonMixture(50, row_sum=180, max_iter=2, tol=1e-9, random_state=0).fit(X)
    assert not mixture.converged_
    assert mixture.n_iter_ == 2


def test_verbose_and_callback(fitted: tuple[PoissonMixture, Any], capsys: pytest.CaptureFixture[str]) -> None:
    _, X = fitted
    seen: list[int] = []

    def listen(record: dict[str, Any]) -> bool:
        seen.append(record["iteration"])
        return len(seen) == 3

    PoissonMixture(50, row_sum=180, verbose=1, random_state=0, execution=Local(callback=listen)).fit(X)
    assert seen == [0, 1, 2]
    assert capsys.readouterr().out.count("free energy") == 3
    PoissonMixture(50, row_sum=180, random_state=0).fit(X)
    assert capsys.readouterr().out == ""
