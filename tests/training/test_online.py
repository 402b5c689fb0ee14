from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from tnesi import PoissonMixture
from tnesi.paper import EM, NeuralSimpletron, OnlineRule


def learned_online(X: np.ndarray, n_components: int, row_sum: float = 180, **rule: float) -> PoissonMixture:
    """Learn the first layer alone by the published rule, without labels."""
    network = NeuralSimpletron(n_components, row_sum=row_sum, rule=OnlineRule(**rule), random_state=0)  # type: ignore[arg-type]
    return network.fit(X, np.full(len(X), -1)).mixture_


def test_online_learning_comes_close_to_em(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    em = PoissonMixture(80, row_sum=180, random_state=0).fit(X)
    online = learned_online(X, 80, max_iter=30)
    assert online.n_iter_ == 30
    assert online.score(X) > em.score(X) - 1.0
    np.testing.assert_allclose(online.means_.sum(axis=1), 180, rtol=0.02)


def test_free_energy_rises_over_the_epochs(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    mixture = learned_online(X, 50, max_iter=12)
    energy = [record["free_energy"] for record in mixture.history_]
    assert energy[-1] > energy[3] > energy[0]


def test_every_field_wins_something(digits: tuple[np.ndarray, np.ndarray]) -> None:
    """The published initialization favors fields that have not won yet: few stay dead."""
    X, _ = digits
    mixture = learned_online(X, 100, max_iter=20)
    assert np.unique(mixture.predict(X)).size > 90


def test_high_rates_stay_stable(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    mixture = learned_online(X, 300, learning_rate=50, max_iter=2)
    assert np.isfinite(mixture.means_).all()
    assert (mixture.means_ >= 1 - 1e-4).all()


def test_score_is_the_log_likelihood(digits: tuple[np.ndarray, np.ndarray]) -> None:
    """Even after one epoch, when the fields do not yet sum to the row_sum."""
    X = digits[0].astype(np.float64)
    labels = np.full(len(X), -1)
    for rule in (EM(max_iter=1, tol=0), OnlineRule(max_iter=1)):
        network = NeuralSimpletron(60, truncation=None, row_sum=180, rule=rule, random_state=0)
        mixture = network.fit(X, labels).mixture_
        y, w = 116 * X / X.sum(axis=1, keepdims=True) + 1, mixture.means_.astype(np.float64)
        constant = gammaln(y + 1).sum(axis=1)
        expected = logsumexp(y @ np.log(w).T - w.sum(axis=1), axis=1) - constant - np.log(60)
        np.testing.assert_allclose(mixture.score_samples(X), expected, atol=2e-3)


def test_free_energy_is_finite_where_fields_are_far_from_the_row_sum(rng: np.random.Generator) -> None:
    X = rng.random((40, 12))
    mixture = learned_online(X, 8, row_sum=1142, max_iter=3)
    assert np.all(np.isfinite([record["free_energy"] for record in mixture.history_]))
    assert np.all(np.isfinite(mixture.score_samples(X)))
