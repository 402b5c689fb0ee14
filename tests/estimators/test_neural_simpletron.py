"""The networks of the papers."""

from __future__ import annotations

import pickle
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from tnesi import PoissonMixture
from tnesi.data import few_labels
from tnesi.execution import Local
from tnesi.paper import EM, NeuralSimpletron, OnlineRule, presets
from tnesi.training.self_labeling import ClassLearner

Data = tuple[Any, Any, Any]


def network(**parameters: Any) -> NeuralSimpletron:
    usual = {"n_components": 150, "row_sum": 180, "rule": EM(max_iter=5, tol=0), "random_state": 0}
    return NeuralSimpletron(**{**usual, **parameters})


@pytest.fixture(scope="module")
def data() -> Data:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y, few_labels(y, 10, np.random.default_rng(0))


FAMILY = ("ff_nesi", "ff_plus_nesi", "r_nesi", "r_plus_nesi", "t_nesi", "truncated_recurrent_nesi")


def test_partial_e_steps_need_a_truncated_feed_forward_network(data: Data) -> None:
    rule = OnlineRule(max_iter=2, e_step="partial")
    for wrong in ({"truncation": None}, {"recurrent": True}):
        with pytest.raises(ValueError, match="partial E-steps need a truncated feed-forward network"):
            network(rule=rule, **wrong).fit(data[0], data[2])
    with pytest.raises(ValueError, match="e_step='some'"):
        network(rule=OnlineRule(e_step="some")).fit(data[0], data[2])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(EM(max_iter=15, tol=0), id="em"),
        pytest.param(
            OnlineRule(max_iter=15, learning_rate=1.0, label_learning_rate=5.0), id="online", marks=pytest.mark.slow
        ),
    ],
)
def test_the_family(data: Data, name: str, rule: EM | OnlineRule) -> None:
    X, y, few = data
    clf = getattr(presets, name)(n_components=150, row_sum=180, rule=rule, random_state=0).fit(X, few)
    assert clf.score(X, y) > 0.6  # over 20 seeds 0.83 +- 0.04 for r_nesi by EM, 0.89 +- 0.02 or more for the others
    assert np.isfinite(clf.predict_proba(X)).all()
    np.testing.assert_allclose(clf.class_weights_.sum(axis=1), 1, rtol=1e-3)


def test_presets_have_the_published_parameters() -> None:
    p = presets.t_nesi().get_params()
    assert (p["n_components"], p["truncation"], p["row_sum"], p["threshold"]) == (10_000, 15, 900, 0.6)
    assert p["rule"] == OnlineRule(max_iter=None, batch_size=25, learning_rate=0.2, label_learning_rate=0.2)
    settings = {n: presets.__dict__[n]().get_params() for n in FAMILY}
    assert [settings[n]["truncation"] for n in FAMILY] == [None, None, None, None, 15, 15]
    assert [settings[n]["self_labeling"] for n in FAMILY] == [False, True, False, True, True, True]
    assert [settings[n]["recurrent"] for n in FAMILY] == [False, False, True, True, False, True]


def test_a_recurrent_network_has_no_labels_to_exchange(data: Data) -> None:
    X, _, few = data
    clf = presets.r_plus_nesi(n_components=150, row_sum=180, rule=EM(max_iter=3, tol=0), random_state=0).fit(X, few)
    with pytest.raises(ValueError, match="call fit instead"):
        clf.fit_labels(few)


@pytest.mark.slow
def test_presets_learn_new_labels_as_thoroughly(data: Data) -> None:
    X, y, few = data
    rule = OnlineRule(max_iter=200, learning_rate=1.0)
    clf = presets.t_nesi(n_components=150, row_sum=180, rule=rule, random_state=0).fit(X, few)
    first = clf.score(X, y)
    assert clf.fit_labels(few).score(X, y) > first - 0.03


def test_attributes(data: Data) -> None:
    X, _, few = data
    clf = network().fit(X, few)
    assert isinstance(clf.mixture_, PoissonMixture)
    assert clf.n_iter_ == clf.mixture_.n_iter_ == 5
    assert (clf.n_samples_seen_, clf.n_zero_rows_) == (len(X), 0)
    assert clf.labeling_ == "self-labeling"
    assert clf.activities_.shape == (len(X), 150)
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(clf.transduction_[few >= 0], few[few >= 0])
    assert network(self_labeling=False).fit(X, few).labeling_ == "supervised"


@pytest.mark.parametrize("rule", [EM(max_iter=3, tol=0), OnlineRule(max_iter=2)])
def test_without_labels_the_first_layer_learns_alone(data: Data, rule: EM | OnlineRule) -> None:
    X, _, few = data
    clf = network(rule=rule).fit(X, np.full(len(X), -1))
    assert clf.mixture_.means_.shape == (150, 64)
    assert clf.classes_.size == 0
    with pytest.raises(NotFittedError, match="no labels yet"):
        clf.predict(X)
    labeled = network(rule=rule).fit(X, few)
    np.testing.assert_array_equal(labeled.mixture_.means_, clf.mixture_.means_)
    assert clf.fit_labels(few).score(X, data[1]) > 0.7  # over 20 seeds 0.94 +- 0.02 by EM, 0.86 +- 0.02 online


def test_labels_teach_the_fields_of_a_recurrent_network_only(data: Data) -> None:
    X, _, few = data
    for recurrent in (False, True):
        one, other = (network(recurrent=recurrent).fit(X, y).mixture_.means_ for y in (few, np.roll(few, 1)))
        assert np.array_equal(one, other) != recurrent


@pytest.mark.parametrize("rule", [EM(max_iter=3, tol=0), OnlineRule(max_iter=2)])
def test_clone_and_pickle(data: Data, rule: EM | OnlineRule) -> None:
    X, _, few = data
    clf = network(rule=rule).fit(X, few)
    assert clone(clf).get_params() == clf.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(clone(clf).fit(X, few).predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("rule", [EM(max_iter=5, tol=0), OnlineRule(max_iter=5)])
def test_a_callback_receives_every_pass_and_stops(data: Data, rule: EM | OnlineRule) -> None:
    seen = []

    def listen(record: dict[str, Any]) -> bool:
        seen.append(record["iteration"])
        return len(seen) == 3

    clf = network(rule=rule, execution=Local(callback=listen)).fit(data[0], data[2])
    assert seen == [0, 1, 2]
    assert clf.n_iter_ == (2 if isinstance(rule, EM) else 3)  # EM's first record is of the initialization


def test_rows_without_weight_are_absent(data: Data) -> None:
    X, _, few = data
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    few = np.where((weight == 0) & (few == 4), -1, few)
    clf = network().fit(X, few, sample_weight=weight)
    assert clf.n_samples_seen_ == len(clf.transduction_) == np.sum(weight > 0)
    expected = clf.fit_labels(few[weight > 0]).predict_proba(X)
    few[0] = 77  # of an absent row
    np.testing.assert_array_equal(clf.fit_labels(few).predict_proba(X), expected)


def test_a_failed_fit_leaves_the_network_as_it_was(data: Data) -> None:
    X, _, few = data
    clf = network().fit(X, few)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match=r"39 labels.*1797 rows"):
        clf.fit_labels(few[:39])
    with pytest.raises(ValueError, match="y has no labels"):
        clf.fit_labels(np.full(len(X), -1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.fit(X, few[:39])
    with pytest.raises(ValueError, match="row_sum=3"):
        clf.set_params(row_sum=3).fit(X, few)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_blank_rows_are_mentioned_once(data: Data) -> None:
    X, _, few = data
    X = X.copy()
    X[[900, 901]] = 0
    with pytest.warns(UserWarning, match="2 of 1,797 rows are all zero") as caught:
        clf = network().fit(X, few)
    assert len(caught) == 1
    assert clf.n_zero_rows_ == 2


def test_ctrl_c_in_the_second_layer_warns(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, few = data
    with monkeypatch.context() as patch:
        patch.setattr(ClassLearner, "epoch", Mock(side_effect=KeyboardInterrupt))
        with pytest.warns(ConvergenceWarning, match="second layer was interrupted"):
            clf = network().fit(X, few)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert clf.fit_labels(few).score(X, y) > 0.85  # over 20 seeds 0.95 +- 0.01
