"""Committees: several mixtures whose activities are concatenated."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from tnesi import PoissonMixture, SimpletronClassifier, load, save
from tnesi.data import few_labels
from tnesi.estimators.stored_parameters import plain_parameters
from tnesi.execution import Local
from tnesi.model.activities import Activities

Data = tuple[Any, Any, Any]


def committee(**parameters: Any) -> SimpletronClassifier:
    """Return a committee with other parameters, those of the mixtures as `mixture__max_iter`."""
    clf = SimpletronClassifier(PoissonMixture(150, row_sum=180), n_mixtures=3, random_state=0)
    return clf.set_params(**parameters)


@pytest.fixture(scope="module")
def data() -> Data:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y, few_labels(y, 10, np.random.default_rng(0))


@pytest.fixture(scope="module")
def fitted(data: Data) -> SimpletronClassifier:
    return committee().fit(data[0], data[2])


def test_one_mixture_is_what_it_was(data: Data, fitted: SimpletronClassifier) -> None:
    """The first seed is the mixture's, and activities are not scaled."""
    X, _, few = data
    single = committee(n_mixtures=1).fit(X, few)
    seed = check_random_state(0).randint(2**31)
    mixture = PoissonMixture(150, row_sum=180, random_state=seed).fit(X)
    np.testing.assert_array_equal(single.mixture_.means_, mixture.means_)
    np.testing.assert_allclose(single.activities_.data, mixture.transform(X).data, atol=1e-4)
    np.testing.assert_array_equal(single.mixture_.means_, fitted.mixture_.means_)
    assert "mixture" not in single.mixture_.history_[0]


def test_activities_stand_side_by_side(data: Data, fitted: SimpletronClassifier) -> None:
    X, y, _ = data
    assert fitted.mixture_ is fitted.mixtures_[0]
    assert len(fitted.mixtures_) == 3
    assert fitted.n_iter_ == max(mixture.n_iter_ for mixture in fitted.mixtures_)
    assert fitted.activities_.shape == (len(X), 450)
    assert fitted.class_weights_.shape == (10, 450)
    assert (fitted.activities_.dtype, fitted.activities_.indices.dtype) == (np.float32, np.int32)
    np.testing.assert_allclose(fitted.activities_.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(fitted.class_weights_.sum(axis=1), 1, rtol=1e-4)
    parts = [mixture.transform(X) for mixture in fitted.mixtures_]
    stacked = sparse.csr_array(sparse.hstack(parts) / 3)
    np.testing.assert_allclose(fitted.activities_.toarray(), stacked.toarray(), atol=1e-4)
    layer = fitted.model_.layer
    assert layer is not None
    np.testing.assert_array_equal(fitted.predict_proba(X), layer.posterior(fitted.activities_of(X), X))
    np.testing.assert_allclose(fitted.predict_proba(X), layer.posterior(stacked, X), atol=1e-6)
    assert fitted.score(X, y) > 0.93  # over 20 seeds 0.958 +- 0.004


def test_mixtures_differ_by_their_seeds_only(fitted: SimpletronClassifier) -> None:
    a, b, c = (mixture.means_ for mixture in fitted.mixtures_)
    assert not np.array_equal(a, b)
    assert not np.array_equal(b, c)
    settings = [{**mixture.get_params(), "random_state": None} for mixture in fitted.mixtures_]
    assert settings[0] == settings[1] == settings[2]


@pytest.mark.slow
def test_a_committee_makes_fewer_errors(data: Data) -> None:
    """With all labels and few fields; with few labels the draw counts more."""
    X, y, _ = data
    gains = []
    for seed in range(3):
        one, five = (
            committee(mixture__n_components=60, n_mixtures=m, labeling="supervised", random_state=seed).fit(X, y)
            for m in (1, 5)
        )
        gains.append(five.score(X, y) - one.score(X, y))
    assert np.mean(gains) > 0  # over 12 seeds a single one is 0.022 +- 0.007


def test_the_row_sum_is_chosen_once(data: Data, capsys: pytest.CaptureFixture[str]) -> None:
    clf = committee(mixture__row_sum="auto", n_mixtures=2, mixture__max_iter=2, mixture__tol=0, verbose=1)
    clf.fit(data[0], data[2])
    assert clf.mixtures_[0].row_sum_ == clf.mixtures_[1].row_sum_ == clf.mixtures_[1].row_sum
    printed = capsys.readouterr().out
    assert printed.count("chosen from the data") == 1
    assert "mixture 1/2   iteration   0" in printed
    assert "mixture 2/2   iteration   2" in printed


def test_threads_do_not_matter(data: Data, fitted: SimpletronClassifier) -> None:
    X, _, few = data
    for n_jobs in (1, 3):
        other = committee(n_jobs=n_jobs).fit(X, few)
        np.testing.assert_array_equal(other.class_weights_, fitted.class_weights_)
        np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_other_labels(data: Data) -> None:
    X, y, few = data
    other = few_labels(y, 10, np.random.default_rng(5))
    again, fresh = committee().fit(X, few).fit_labels(other), committee().fit(X, other)
    np.testing.assert_array_equal(again.activities_.data, fresh.activities_.data)
    assert np.mean(again.predict(X) == fresh.predict(X)) > 0.97


def test_weights_are_repetitions(data: Data, rng: np.random.Generator) -> None:
    X, y = data[0][:300], data[1][:300]
    count = rng.integers(0, 4, 300)
    few_fields = PoissonMixture(60, row_sum=180, tol=0, max_iter=5)
    few_fields_only = committee(mixture=few_fields, labeling="supervised")
    weighted = clone(few_fields_only).fit(X, y, sample_weight=count)
    repeated = clone(few_fields_only).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    assert weighted.activities_.shape == ((count > 0).sum(), 180)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


def test_save_load_clone_and_pickle(data: Data, fitted: SimpletronClassifier, tmp_path: Path) -> None:
    X = data[0]
    save(fitted, tmp_path / "m.tnesi")
    loaded = load(tmp_path / "m.tnesi")
    for again in (loaded, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert isinstance(loaded, SimpletronClassifier)
    np.testing.assert_array_equal(loaded.activities_.data, fitted.activities_.data)
    assert plain_parameters(clone(fitted)) == plain_parameters(fitted)
    assert not hasattr(clone(fitted), "mixture_")


def test_a_callback_hears_which_mixture_and_stops_that_one(data: Data) -> None:
    heard = []

    def listen(record: dict[str, Any]) -> bool:
        heard.append((record["mixture"], record["mixtures"], record["iteration"]))
        return record["mixture"] == 2 and record["iteration"] == 1

    clf = committee(mixture__max_iter=3, mixture__tol=0, mixture__execution=Local(callback=listen))
    clf.fit(data[0], data[2])
    iterations = {1: 4, 2: 2, 3: 4}
    assert heard == [(m, 3, i) for m, n in iterations.items() for i in range(n)]
    assert [mixture.n_iter_ for mixture in clf.mixtures_] == [3, 1, 3]
    assert [record["mixture"] for record in clf.mixtures_[1].history_] == [2, 2]
    assert clf.n_iter_ == 3


CASES = [(1, 1, 1), (1, 3, 1), (2, 0, 1), (2, 1, 2), (2, 4, 2), (3, 0, 2), (3, 2, 3)]


@pytest.mark.parametrize(("mixture", "iteration", "kept"), CASES)
@pytest.mark.parametrize("parameters", [{}, {"mixture__n_components": 520, "mixture__truncation": None}])
def test_ctrl_c_keeps_what_is_complete(
    data: Data, mixture: int, iteration: int, kept: int, parameters: dict[str, Any]
) -> None:
    X, y, few = data

    def interrupt(record: dict[str, Any]) -> None:
        if (record["mixture"], record["iteration"]) == (mixture, iteration):
            raise KeyboardInterrupt

    clf = committee(mixture__max_iter=5, mixture__tol=0, mixture__execution=Local(callback=interrupt), **parameters)
    with pytest.warns(ConvergenceWarning, match=f"^learning was interrupted: the committee has {kept} of 3 mixtures"):
        clf.fit(X, few)
    assert len(clf.mixtures_) == kept
    assert clf.activities_.shape[1] == clf.class_weights_.shape[1] == kept * clf.mixture.n_components
    np.testing.assert_allclose(clf.activities_.sum(axis=1), 1, rtol=1e-3)
    if kept == mixture:
        assert clf.mixtures_[-1].n_iter_ == iteration
    assert clf.fit_labels(few).score(X, y) > 0.85


def test_ctrl_c_before_the_first_iteration_is_raised_and_loses_nothing(data: Data) -> None:
    X, _, few = data

    def interrupt(record: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    clf = committee(mixture__max_iter=2, mixture__tol=0).fit(X, few)
    before = clf.predict_proba(X)
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(mixture__execution=Local(callback=interrupt)).fit(X, few)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_ctrl_c_after_the_last_iteration_of_a_mixture_drops_it(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(self: Activities, n_fields: int, inner: Any = Activities.to_csr) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return inner(self, n_fields)

    monkeypatch.setattr(Activities, "to_csr", interrupted)
    with pytest.warns(ConvergenceWarning, match="has 1 of 3 mixtures"):
        clf = committee(mixture__max_iter=2, mixture__tol=0).fit(data[0], data[2])
    assert clf.class_weights_.shape == (10, 150)


def test_mixtures_that_did_not_converge_are_counted(data: Data) -> None:
    def enough(record: dict[str, Any]) -> bool:
        return bool(record["mixture"] == 2)

    with pytest.warns(ConvergenceWarning, match="2 iterations did not reach tol=0.002 in 2 of 3 mixtures"):
        committee(mixture__max_iter=2, mixture__execution=Local(callback=enough)).fit(data[0], data[2])


@pytest.mark.parametrize("n_mixtures", [0, -1, 1.5, "3", True, None, 1001])
def test_numbers_that_are_refused(data: Data, n_mixtures: Any) -> None:
    with pytest.raises(ValueError, match=r"n_mixtures=.*: pass an integer of at least 1"):
        committee(n_mixtures=n_mixtures).fit(data[0], data[2])
