from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.paper import presets
from tnesi.training.self_labeling import TopLayer


def fast(**parameters: Any) -> SimpletronClassifier:
    return SimpletronClassifier(**{"n_components": 150, "row_sum": 180, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, Any]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y, few_labels(y, 10, np.random.default_rng(0))


@pytest.fixture(scope="module")
def fitted(data: tuple[Any, Any, Any]) -> SimpletronClassifier:
    return fast().fit(data[0], data[2])


def test_attributes(fitted: SimpletronClassifier, data: tuple[Any, Any, Any]) -> None:
    X, y, few = data
    assert fitted.classes_.tolist() == list(range(10))
    assert isinstance(fitted.mixture_, PoissonMixture)
    assert fitted.class_weights_.shape == (10, 150)
    np.testing.assert_allclose(fitted.class_weights_.sum(axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1, rtol=1e-6)
    assert fitted.activities_.shape == (len(X), 150)
    labeled = few >= 0
    np.testing.assert_array_equal(fitted.transduction_[labeled], few[labeled])
    assert np.mean(fitted.transduction_ == y) > 0.91  # over 20 seeds 0.953 +- 0.008
    assert fitted.score(X, y) > 0.91


def test_probabilities(fitted: SimpletronClassifier, data: tuple[Any, Any, Any]) -> None:
    t = fitted.predict_proba(data[0])
    np.testing.assert_allclose(t.sum(axis=1), 1, rtol=1e-6)
    assert (t >= 0).all()
    np.testing.assert_array_equal(fitted.classes_[t.argmax(axis=1)], fitted.predict(data[0]))


def test_other_labels_on_the_same_first_layer(fitted: SimpletronClassifier, data: tuple[Any, Any, Any]) -> None:
    X, y, _ = data
    other = few_labels(y, 10, np.random.default_rng(5))
    fresh = fast().fit(X, other)
    again = fast().fit(X, data[2]).fit_labels(other)
    np.testing.assert_array_equal(again.mixture_.means_, fresh.mixture_.means_)
    assert np.mean(again.predict(X) == fresh.predict(X)) > 0.97
    names = np.where(other >= 0, np.array([f"digit {k}" for k in range(10)])[other], "?")
    again.unlabeled = "?"
    assert again.fit_labels(names).predict(X)[0] == "digit 0"


def test_labels_of_any_kind_give_the_same_classifier(data: tuple[Any, Any, Any]) -> None:
    X, _, few = data
    expected = fast().fit(X, few).predict_proba(X)
    words = np.array([*"abcdefghij", "nobody knows"])[few]
    clf = fast(unlabeled="nobody knows").fit(X, words)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)
    assert clf.classes_.tolist() == list("abcdefghij")


def test_self_labeling_helps(data: tuple[Any, Any, Any]) -> None:
    X, y, few = data
    with_it, without = fast().fit(X, few), fast(self_labeling=False).fit(X, few)
    gains = []
    for seed in range(5):
        few = few_labels(y, 3, np.random.default_rng(seed))
        gains.append(with_it.fit_labels(few).score(X, y) - without.fit_labels(few).score(X, y))
    assert np.mean(gains) > 0.01  # over 20 seeds 0.066 +- 0.011


def test_rows_that_no_label_reaches(data: tuple[Any, Any, Any]) -> None:
    """They get 1 / K each, and the first class."""
    X, y, _ = data
    two = np.full(len(y), -1)
    two[np.flatnonzero(y == 3)[0]], two[np.flatnonzero(y == 0)[0]] = 3, 0
    clf = fast(self_labeling=False, truncation=2).fit(X, two)
    t = clf.predict_proba(X)
    assert np.isfinite(t).all()
    unreached = np.asarray(clf.mixture_.transform(X) @ clf.class_weights_.sum(axis=0)) == 0
    assert unreached.sum() > 1000
    np.testing.assert_array_equal(t[unreached], 0.5)
    assert (clf.predict(X)[unreached] == 0).all()


def test_very_different_numbers_of_labels(data: tuple[Any, Any, Any]) -> None:
    X, y, _ = data
    many = np.where(np.isin(y, [0, 1]), y, -1)
    for k in range(2, 10):
        many[np.flatnonzero(y == k)[4]] = k
    clf = fast().fit(X, many)
    assert set(clf.predict(X)) == set(range(10))
    assert np.isfinite(clf.predict_proba(X)).all()


def test_all_rows_labeled_needs_no_iterations(data: tuple[Any, Any, Any]) -> None:
    X, y, _ = data
    clf = fast().fit(X, y)
    expected = np.stack([clf.activities_[np.flatnonzero(y == k)].mean(axis=0) for k in range(10)])
    np.testing.assert_allclose(clf.class_weights_, expected, atol=1e-6)


FAMILY = ("ff_nesi", "ff_plus_nesi", "r_nesi", "r_plus_nesi", "t_nesi", "truncated_recurrent_nesi")


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("solver", ["em", pytest.param("hebbian", marks=pytest.mark.slow)])
def test_the_family(data: tuple[Any, Any, Any], name: str, solver: str) -> None:
    X, y, few = data
    rates = {"learning_rate": 1.0, "label_learning_rate": 5.0} if solver == "hebbian" else {"label_learning_rate": 20}
    clf = getattr(presets, name)(
        n_components=150, row_sum=180, solver=solver, max_iter=15, random_state=0, **rates
    ).fit(X, few)
    assert clf.score(X, y) > 0.6  # over 20 seeds 0.83 +- 0.04 for r_nesi by EM, 0.89 +- 0.02 or more for the others
    assert np.isfinite(clf.predict_proba(X)).all()
    np.testing.assert_allclose(clf.class_weights_.sum(axis=1), 1, rtol=1e-3)


def test_presets_have_the_published_parameters() -> None:
    p = presets.t_nesi().get_params()
    assert (p["n_components"], p["truncation"], p["row_sum"], p["threshold"]) == (10_000, 15, 900, 0.6)
    assert (p["learning_rate"], p["label_learning_rate"], p["max_iter"], p["batch_size"]) == (0.2, 0.2, 500, 25)
    settings = {n: presets.__dict__[n]().get_params() for n in FAMILY}
    assert [settings[n]["truncation"] for n in FAMILY] == [None, None, None, None, 15, 15]
    assert [settings[n]["self_labeling"] for n in FAMILY] == [False, True, False, True, True, True]
    assert [settings[n]["recurrent"] for n in FAMILY] == [False, False, True, True, False, True]


def test_a_recurrent_network_has_no_labels_to_exchange(data: tuple[Any, Any, Any]) -> None:
    X, _, few = data
    clf = fast(recurrent=True, max_iter=3, tol=0).fit(X, few)
    with pytest.raises(ValueError, match="call fit instead"):
        clf.fit_labels(few)


INTERRUPTED = """
import sys, warnings
import numpy as np
from tnesi import SimpletronClassifier
rng = np.random.default_rng(0)
X = rng.integers(0, 255, (2000, 60)).astype(np.uint8)
y = np.where(np.arange(2000) < 50, np.arange(2000) % 5, -1)
clf = SimpletronClassifier(600, row_sum=200, tol=0, max_iter=100000, label_max_iter=3, random_state=0, {parameters},
                           callback=lambda r: print("iteration", r["iteration"], flush=True))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    clf.fit(X, y)
assert any("interrupted" in str(w.message) for w in caught), caught
m = clf.mixture_
assert np.isfinite(clf.predict_proba(X)).all() and not m.converged_ and m.n_iter_ < 100000
assert np.isfinite(m.means_).all() and (m.means_ >= 1 - 1e-4).all()
print("usable", m.n_iter_, len(m.history_), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["solver='em'", "search='exact'", "truncation=None", "solver='hebbian'"])
def test_ctrl_c_leaves_a_usable_classifier(parameters: str) -> None:
    code = INTERRUPTED.format(parameters=parameters)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    killer = threading.Timer(120, process.kill)
    killer.start()
    try:
        for line in process.stdout:
            if line.startswith("iteration 2"):
                break
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        asked = time.monotonic()
        rest = process.stdout.read()
        assert process.wait() == 0, rest
        assert "usable" in rest
        assert time.monotonic() - asked < 100  # where all iterations would take hours; machines may be busy
    finally:
        killer.cancel()
        process.stdout.close()


BEFORE_THE_FIRST_ITERATION = """
import numpy as np, tnesi.training.row_sum as row_sum
from tnesi import SimpletronClassifier
rng = np.random.default_rng(0)
X = rng.integers(0, 255, (4000, 60)).astype(np.uint8)
y = np.where(np.arange(4000) < 50, np.arange(4000) % 5, -1)
clf = SimpletronClassifier(100, row_sum=200, max_iter=2, tol=0, label_max_iter=2, random_state=0).fit(X, y)
before = clf.predict(X)
def announced(*arguments, inner=row_sum._posterior_entropy):
    print("choosing", flush=True)
    while True:  # until it is interrupted
        inner(*arguments)
row_sum._posterior_entropy = announced
clf.set_params(row_sum="auto", n_components=900, max_iter=1000)
try:
    clf.fit(X, y)
except KeyboardInterrupt:
    assert (clf.predict(X) == before).all()
    print("as it was", flush=True)
"""


@pytest.mark.slow
def test_ctrl_c_before_the_first_iteration_is_raised_and_loses_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", BEFORE_THE_FIRST_ITERATION], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    killer = threading.Timer(120, process.kill)
    killer.start()
    try:
        assert process.stdout.readline().strip() == "choosing"
        time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        assert "as it was" in process.stdout.read()
        assert process.wait() == 0
    finally:
        killer.cancel()
        process.stdout.close()


def test_ctrl_c_in_the_second_layer_warns(data: tuple[Any, Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, few = data
    clf = fast(label_method="hebbian").fit(X, few)
    passes = []

    def interrupted(*arguments: Any, inner: Any = TopLayer.epoch) -> None:
        passes.append(1)
        if len(passes) == 4:
            raise KeyboardInterrupt
        inner(*arguments)

    monkeypatch.setattr(TopLayer, "epoch", interrupted)
    with pytest.warns(ConvergenceWarning, match="second layer was interrupted"):
        clf.fit_labels(few)
    assert clf.score(X, y) > 0.7


def test_settings_after_fit(data: tuple[Any, Any, Any]) -> None:
    """What was learned stays what it is; how many threads predict may be changed."""
    X, _, few = data
    clf = fast().fit(X, few)
    before = clf.predict_proba(X)
    np.testing.assert_array_equal(clf.set_params(recurrent=True, n_threads=1).predict_proba(X), before)


@pytest.mark.slow
def test_presets_learn_new_labels_as_thoroughly(data: tuple[Any, Any, Any]) -> None:
    X, y, few = data
    clf = presets.t_nesi(n_components=150, row_sum=180, max_iter=200, learning_rate=1.0, random_state=0).fit(X, few)
    first = clf.score(X, y)
    assert clf.fit_labels(few).score(X, y) > first - 0.03
