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
from tnesi.training.self_labeling import ClassLearner


def fast(**parameters: Any) -> SimpletronClassifier:
    return SimpletronClassifier(PoissonMixture(150, row_sum=180), random_state=0).set_params(**parameters)


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


def test_unlabeled_rows_help(data: tuple[Any, Any, Any]) -> None:
    X, y, few = data
    with_it, without = fast().fit(X, few), fast(labeling="supervised").fit(X, few)
    gains = []
    for seed in range(5):
        few = few_labels(y, 3, np.random.default_rng(seed))
        gains.append(with_it.fit_labels(few).score(X, y) - without.fit_labels(few).score(X, y))
    assert np.mean(gains) > 0.01  # over 20 seeds 0.066 +- 0.011


def test_rows_that_no_label_reaches(data: tuple[Any, Any, Any]) -> None:
    """Such rows get probability 1 / K for each class, and the first class."""
    X, y, _ = data
    two = np.full(len(y), -1)
    two[np.flatnonzero(y == 3)[0]], two[np.flatnonzero(y == 0)[0]] = 3, 0
    clf = fast(labeling="supervised", mixture__truncation=2).fit(X, two)
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
    clf = fast(labeling="supervised").fit(X, y)
    expected = np.stack([clf.activities_[np.flatnonzero(y == k)].mean(axis=0) for k in range(10)])
    np.testing.assert_allclose(clf.class_weights_, expected, atol=1e-6)


INTERRUPTED = """
import sys, warnings
import numpy as np
from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier
from tnesi.execution import Local
from tnesi.paper import NeuralSimpletron, OnlineRule
rng = np.random.default_rng(0)
X = rng.integers(0, 255, (2000, 60)).astype(np.uint8)
y = np.where(np.arange(2000) < 50, np.arange(2000) % 5, -1)
run = Local(callback=lambda r: print("iteration", r["iteration"], flush=True))
def by_em(**parameters):
    mixture = PoissonMixture(600, row_sum=200, tol=0, max_iter=100000, execution=run, **parameters)
    return SimpletronClassifier(mixture, labeling=SelfLabeling(max_iter=3), random_state=0)
def online():
    return NeuralSimpletron(600, row_sum=200, rule=OnlineRule(max_iter=100000), execution=run, random_state=0)
clf = {make}
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
@pytest.mark.parametrize("make", ["by_em()", "by_em(search='exact')", "by_em(truncation=None)", "online()"])
def test_ctrl_c_leaves_a_usable_classifier(make: str) -> None:
    code = INTERRUPTED.format(make=make)
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
        assert time.monotonic() - asked < 100  # all iterations would take hours; the machine may be busy
    finally:
        killer.cancel()
        process.stdout.close()


BEFORE_THE_FIRST_ITERATION = """
import numpy as np, tnesi.training.row_sum as row_sum
from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier
rng = np.random.default_rng(0)
X = rng.integers(0, 255, (4000, 60)).astype(np.uint8)
y = np.where(np.arange(4000) < 50, np.arange(4000) % 5, -1)
mixture = PoissonMixture(100, row_sum=200, max_iter=2, tol=0)
clf = SimpletronClassifier(mixture, labeling=SelfLabeling(max_iter=2), random_state=0).fit(X, y)
before = clf.predict(X)
def announced(*arguments, inner=row_sum._posterior_entropy):
    print("choosing", flush=True)
    while True:  # until it is interrupted
        inner(*arguments)
row_sum._posterior_entropy = announced
clf.set_params(mixture__row_sum="auto", mixture__n_components=900, mixture__max_iter=1000)
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
    clf = fast(labeling="self-labeling").fit(X, few)
    passes = []

    def interrupted(*arguments: Any, inner: Any = ClassLearner.epoch) -> None:
        passes.append(1)
        if len(passes) == 4:
            raise KeyboardInterrupt
        inner(*arguments)

    monkeypatch.setattr(ClassLearner, "epoch", interrupted)
    with pytest.warns(ConvergenceWarning, match="second layer was interrupted"):
        clf.fit_labels(few)
    assert clf.score(X, y) > 0.7


def test_settings_after_fit(data: tuple[Any, Any, Any]) -> None:
    """Changed parameters do not change what was learned; only the number of threads applies."""
    X, _, few = data
    clf = fast().fit(X, few)
    before = clf.predict_proba(X)
    np.testing.assert_array_equal(clf.set_params(mixture__n_components=7, n_jobs=1).predict_proba(X), before)


def test_the_mixture_decides_what_the_classifier_leaves_open(
    fitted: SimpletronClassifier, data: tuple[Any, Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    X, _, few = data
    mixture = PoissonMixture(150, row_sum=180, random_state=0, n_jobs=1, verbose=1)
    before = mixture.get_params()
    clf = SimpletronClassifier(mixture).fit(X, few)
    np.testing.assert_array_equal(clf.predict_proba(X), fitted.predict_proba(X))
    assert clf.mixture_.n_jobs == 1
    assert "free energy" in capsys.readouterr().out
    assert (mixture.get_params(), mixture.__sklearn_is_fitted__()) == (before, False)
    other = SimpletronClassifier(mixture, random_state=1, n_jobs=2).fit(X, few).mixture_
    assert other.n_jobs == 2
    assert not np.array_equal(other.means_, clf.mixture_.means_)
