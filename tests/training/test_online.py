from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

from tnesi import PoissonMixture, kernels
from tnesi.execution import Local
from tnesi.model.fields import Fields
from tnesi.model.rows import normalize
from tnesi.paper import EM, NeuralSimpletron, OnlineRule
from tnesi.search.exact import FullSearch


def learned_online(X: Any, n_components: int, row_sum: float = 180, **rule: Any) -> PoissonMixture:
    """Learn the first layer alone by the published rule, without labels."""
    network = NeuralSimpletron(n_components, row_sum=row_sum, rule=OnlineRule(**rule), random_state=0)
    return network.fit(X, np.full(X.shape[0], -1)).mixture_


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


def test_partial_e_steps_come_close_to_exact_ones(digits: tuple[np.ndarray, np.ndarray]) -> None:
    """Over 6 seeds the log-likelihood after 30 passes is 0.01 +- 0.02 nats lower, and at most 0.07 during learning."""
    X, _ = digits
    exact, partial = (learned_online(X, 150, max_iter=30, e_step=e) for e in ("exact", "partial"))
    assert [record["search"] for record in partial.history_][1:] == ["partial"] * 29
    assert partial.score(X) > exact.score(X) - 0.2
    assert not np.array_equal(exact.means_, partial.means_)
    energies = [[record["free_energy"] for record in mixture.history_] for mixture in (exact, partial)]
    assert energies[0][0] == energies[1][0]  # the first pass is exact
    assert np.all(np.array(energies[0]) > np.array(energies[1]) - 0.3)


def test_fields_that_no_row_keeps_are_found_again(digits: tuple[np.ndarray, np.ndarray]) -> None:
    """Random fields are looked at, so that few of 300 fields end without a row."""
    X, _ = digits
    mixture = learned_online(X, 300, max_iter=20, e_step="partial")
    assert np.unique(mixture.predict(X)).size > 270


def test_lists_of_neighbors_are_rebuilt_now_and_then(
    digits: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first pass, which is exact, and then after every other one."""
    built: list[int] = []
    passes: list[int] = []
    own = kernels.build_lists

    def counting(*arguments: Any) -> None:
        built.append(len(passes))
        own(*arguments)

    monkeypatch.setattr(kernels, "build_lists", counting)
    rule = OnlineRule(max_iter=7, e_step="partial")
    run = Local(callback=lambda record: passes.append(record["iteration"]))
    NeuralSimpletron(60, row_sum=180, rule=rule, random_state=0, execution=run).fit(digits[0], np.full(1797, -1))
    assert built == [1, 2, 4, 6]


@pytest.mark.parametrize("e_step", ["exact", "partial"])
def test_results_do_not_depend_on_the_number_of_threads(digits: tuple[np.ndarray, np.ndarray], e_step: str) -> None:
    X, y = digits
    few = np.where(np.arange(len(y)) < 100, y, -1)
    rule = OnlineRule(max_iter=4, e_step=e_step)  # type: ignore[arg-type]
    found = [NeuralSimpletron(100, row_sum=180, rule=rule, random_state=0, n_jobs=j).fit(X, few) for j in (1, 3)]
    np.testing.assert_array_equal(found[0].mixture_.means_, found[1].mixture_.means_)
    np.testing.assert_array_equal(found[0].class_weights_, found[1].class_weights_)


def test_a_mini_batch_may_be_larger_than_the_data(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = digits[0][:100], digits[1][:100]
    for e_step in ("exact", "partial"):
        fitted = [
            NeuralSimpletron(
                20,
                truncation=5,
                row_sum=180,
                random_state=0,
                rule=OnlineRule(max_iter=3, batch_size=size, e_step=e_step),
            ).fit(X, y)
            for size in (100, 2**31 - 1)
        ]
        np.testing.assert_array_equal(*[each.mixtures_[0].means_ for each in fitted])


def test_sparse_rows_learn_the_same_with_partial_e_steps(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = digits
    dense, sparse = (learned_online(x, 100, max_iter=3, e_step="partial") for x in (X, csr_array(X)))
    np.testing.assert_allclose(dense.means_, sparse.means_, rtol=1e-4, atol=1e-4)


def test_activities_that_are_not_stored_are_not_lost(digits: tuple[np.ndarray, np.ndarray]) -> None:
    """Without truncation the activities of a row sum to 1, whatever is left out."""
    rows = normalize(digits[0][:50], 180)
    fields = Fields.from_weights(np.random.default_rng(0).uniform(1, 4, (700, 64)))
    for least in (1e-3, 1e-9):
        found = FullSearch(700, 1, least=least).find(fields, rows)
        np.testing.assert_allclose(found.s.sum(axis=1), 1, rtol=1e-6)
        assert np.all((found.s >= least) == (found.ids >= 0))
