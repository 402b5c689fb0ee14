"""The paper's tuning: only the given labels count, half to learn and half to compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tnesi.paper.tuning
from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.paper.tuning import Trial, Tuned, _hold_out, split_half, tune
from tnesi.system.progress import Progress


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60).filter(lambda codes: max(codes) >= 0), st.integers(0, 9))
def test_split_half(codes: list[int], seed: int) -> None:
    y = np.array(codes)
    train, validation = split_half(y, np.random.default_rng(seed))
    assert sorted([*train, *validation]) == np.flatnonzero(y >= 0).tolist()
    for k in range(max(codes) + 1):
        n_train, n_validation = (y[train] == k).sum(), (y[validation] == k).sum()
        assert n_train - n_validation in (0, 1)


def test_the_likelihood_of_a_committee_is_the_mean_of_its_mixtures(digits: Any) -> None:
    X, y = digits[0][:400], np.where(np.arange(400) < 100, digits[1][:400], -1)
    settings: dict[str, Any] = {"n_components": 40, "max_iter": 3, "tol": 0}
    found = tune(X, y, truncations=[5], row_sums=[180], thresholds=[0.6], n_splits=1, n_mixtures=2, **settings)
    mixture = PoissonMixture(truncation=5, row_sum=180, **settings)
    unseen = np.sort(np.random.default_rng(0).permutation(np.arange(100, 400))[:30])
    rest = np.setdiff1d(np.arange(400), unseen)
    clf = SimpletronClassifier(mixture, n_mixtures=2, random_state=0).fit(X[rest], y[rest])
    own = [tnesi.paper.tuning._likelihood(mixture, X[unseen]) for mixture in clf.mixtures_]
    assert found.likelihoods[180, 5] == pytest.approx(np.mean(own))
    assert own[0] != own[1]


def test_mixtures_are_shared_and_labels_outside_are_not_looked_at(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = digits
    few = few_labels(y, 6, np.random.default_rng(0))
    fits, seen = [], []

    class Counting(SimpletronClassifier):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            fits.append(self.get_params()["mixture__truncation"])
            return super().fit(X, y, sample_weight)

        def fit_labels(self, y: Any) -> Any:
            seen.append(np.flatnonzero(y >= 0))
            return super().fit_labels(y)

    monkeypatch.setattr(tnesi.paper.tuning, "SimpletronClassifier", Counting)
    found = tune(X, few, truncations=[3, 9], row_sums=[200], thresholds=[0.5, 0.7], n_splits=3, n_components=80)
    assert fits == [3, 9]
    assert (len(found.likelihoods), found.n_train, found.n_validation) == (2, 30, 30)
    assert len(seen) == 2 * 2 * 3
    for rows in seen:
        assert rows.size == 30
    assert [t.error for t in found.trials] == sorted(t.error for t in found.trials)
    assert found.best["truncation"] in (3, 9)
    assert set(found.likelihoods) == {(200, 3), (200, 9)}


def test_it_finds_a_row_sum_that_works(digits: Any) -> None:
    X, y = digits
    few = few_labels(y, 10, np.random.default_rng(1))
    found = tune(X, few, truncations=[5], row_sums=[5000, 250], thresholds=[0.6], n_splits=4, n_components=150)
    assert found.best["row_sum"] == 250  # over 5 seeds an error of 8 +- 3 %, with 5000 of 44 +- 4 %


def test_default_row_sums_are_around_the_automatic_one(digits: Any) -> None:
    X, y = digits
    steps: list[float] = []

    class Steps(Progress):
        def begin(self, total: float) -> None:
            steps.append(total)

        def advance(self, amount: float = 1) -> None:
            steps.append(amount)

    found = tune(X[:400], y[:400], truncations=[4], thresholds=[0.6], n_splits=1, n_components=50, progress=Steps())
    above = sorted(t.row_sum - 64 for t in found.trials)
    assert above[1] / above[0] == pytest.approx(2)
    assert above[2] / above[1] == pytest.approx(2)
    assert steps == [3, 1, 1, 1]


def test_the_truncation_without_labels_is_that_of_the_highest_likelihood() -> None:
    trial = Trial(5, 180, 0.6, 4.0, 0.1)
    tuned = Tuned([trial], {(180, 5): -90.0, (180, 15): -88.0, (180, 50): -89.0, (220, 50): -1.0}, 10, 10)
    assert tuned.truncation_by_likelihood() == 15
    assert tuned.truncation_by_likelihood(220) == 50


def test_the_likelihood_without_labels_is_that_of_rows_not_learned_from(digits: Any) -> None:
    X, y = digits
    few = few_labels(y, 10, np.random.default_rng(0))
    found = tune(X, few, truncations=[1, 5], row_sums=[180], thresholds=[0.6], n_splits=1, n_components=300)
    mixture = PoissonMixture(300, truncation=5, row_sum=180, random_state=0).fit(X)
    assert found.likelihoods[180, 5] < mixture.score(X)  # it is of rows that were not learned from


@pytest.mark.parametrize("n_labeled", [0, 40, 300])
def test_rows_are_held_out_of_the_unlabeled_ones(n_labeled: int) -> None:
    codes = np.full(300, -1)
    codes[:n_labeled] = np.arange(n_labeled) % 3
    learned, held_out = _hold_out(codes, np.random.default_rng(0))
    assert sorted([*learned, *held_out]) == list(range(300))
    assert held_out.size == round(0.1 * (300 - n_labeled if n_labeled < 300 else 294))
    if n_labeled < 300:
        assert np.all(codes[held_out] < 0)
    else:
        assert np.bincount(codes[learned]).min() >= 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"truncations": []}, "truncations is empty"),
        ({"n_splits": 0}, "n_splits"),
        ({"row_sums": []}, "row_sums is empty"),
    ],
)
def test_bad_settings(digits: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tune(*digits, **changes)


def test_one_label_per_class_cannot_be_split(digits: Any) -> None:
    X, y = digits
    with pytest.raises(ValueError, match="two labels of at least one class"):
        tune(X, few_labels(y, 1, np.random.default_rng(0)))
