from __future__ import annotations

import numpy as np

from tnesi import PoissonMixture


def test_online_learning_comes_close_to_em(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    em = PoissonMixture(80, norm=180, random_state=0).fit(X)
    online = PoissonMixture(80, norm=180, solver="hebbian", max_iter=30, tol=0, random_state=0).fit(X)
    assert online.n_iter_ == 30
    assert online.score(X) > em.score(X) - 1.0
    np.testing.assert_allclose(online.weights_.sum(axis=1), 180, rtol=0.02)


def test_free_energy_rises_over_the_epochs(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    mixture = PoissonMixture(50, norm=180, solver="hebbian", max_iter=12, tol=0, random_state=0).fit(X)
    energy = [record["free_energy"] for record in mixture.history_]
    assert energy[-1] > energy[3] > energy[0]


def test_every_field_wins_something(digits: tuple[np.ndarray, np.ndarray]) -> None:
    """The published start favours fields that have not won yet: few stay dead."""
    X, _ = digits
    mixture = PoissonMixture(100, norm=180, solver="hebbian", max_iter=20, tol=0, random_state=0).fit(X)
    assert np.unique(mixture.predict(X)).size > 90


def test_high_rates_do_not_break_it(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    mixture = PoissonMixture(300, norm=180, solver="hebbian", learning_rate=50, max_iter=2, tol=0, random_state=0)
    assert np.isfinite(mixture.fit(X).weights_).all()
    assert (mixture.weights_ >= 1 - 1e-4).all()
