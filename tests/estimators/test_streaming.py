"""partial_fit of both estimators."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tnesi
from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import Data, few_labels
from tnesi.estimators.stored_parameters import plain_parameters
from tnesi.model_file import ModelFileError


@pytest.fixture(scope="module")
def shuffled() -> tuple[Any, Any, Any, Any]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order].astype(np.uint8), y[order]
    return X[:1397], y[:1397], X[1397:], y[1397:]


def mixture(**parameters: Any) -> PoissonMixture:
    return PoissonMixture(**{"n_components": 120, "row_sum": 180, "random_state": 0, **parameters})


def classifier(half_life: float | None = None, **parameters: Any) -> SimpletronClassifier:
    """Return a classifier; `n_components` and `row_sum` are those of its mixture too."""
    own = {name: parameters.pop(name) for name in ("n_components", "row_sum") if name in parameters}
    return SimpletronClassifier(mixture(half_life=half_life, **own), **{"random_state": 0, **parameters})


def batches(n: int, size: int, first: int = 600, seed: int | None = None) -> list[Any]:
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    return [order[:first], *(order[start : start + size] for start in range(first, n, size))]


def streamed(model: Any, X: Any, y: Any = None, size: int = 100, passes: int = 1) -> Any:
    for seed in range(passes):
        for rows in batches(len(X), size, seed=seed):
            model.partial_fit(X[rows], None if y is None else y[rows])
    return model


def test_many_passes_come_close_to_fit(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, _, X_test, _ = shuffled
    fitted = mixture().fit(X)
    once, often = streamed(mixture(), X), streamed(mixture(), X, passes=10)
    # over 20 seeds the differences are 0.38 +- 0.11, 0.11 +- 0.08 and -0.06 +- 0.07
    assert once.score(X_test) == pytest.approx(fitted.score(X_test), abs=1)
    assert often.score(X_test) == pytest.approx(fitted.score(X_test), abs=0.5)
    assert often.score(X) > fitted.score(X) - 0.3


def test_a_fully_labeled_stream_comes_close_to_fit(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = shuffled
    clf = streamed(classifier(), X, y, passes=5)
    fitted = classifier(labeling="supervised").fit(X, y)
    # over 20 seeds the difference is 0.008 +- 0.010
    assert clf.score(X_test, y_test) > fitted.score(X_test, y_test) - 0.06
    assert clf.labeling_ == "supervised"


@pytest.mark.slow
def test_few_labels_go_nearly_as_far_as_in_fit(shuffled: tuple[Any, Any, Any, Any]) -> None:
    """Mean over draws of labels, which come late."""
    X, y, X_test, y_test = shuffled
    fitted, unlabeled = classifier().fit(X, np.full(1397, -1)), streamed(classifier(), X, passes=3)
    gap = []
    for seed in range(6):
        few = few_labels(y, 10, np.random.default_rng(seed))
        rows = np.flatnonzero(few >= 0)
        clf = pickle.loads(pickle.dumps(unlabeled)).partial_fit(X[rows], y[rows])
        gap.append(fitted.fit_labels(few).score(X_test, y_test) - clf.score(X_test, y_test))
    assert np.mean(gap) < 0.09  # over 20 seeds 0.016 +- 0.014


def test_a_prior_that_outweighs_the_stream_is_refused(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X = shuffled[0]
    model = mixture().fit(X).set_params(prior_strength=1e6)
    with pytest.raises(ValueError, match=r"prior_strength=1e\+06 outweighs the data"):
        model.partial_fit(X[:100])


def test_attributes(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, _, X_test, _ = shuffled
    model = mixture()
    assert model.partial_fit(X[:600]) is model
    assert (model.n_iter_, model.n_samples_seen_, len(model.history_)) == (1, 600, 1)
    expected = model.partial_fit(X[600:700]).score(X[700:800])
    model.partial_fit(X[700:800])
    assert model.lower_bound_ == pytest.approx(expected, abs=1e-3)  # of the batch before it was learned from
    assert [record["rows"] for record in model.history_] == [600, 100, 100]
    assert [record["iteration"] for record in model.history_] == [1, 2, 3]
    assert model.n_samples_seen_ == 800
    assert model.means_.shape == (120, 64)
    np.testing.assert_allclose(model.means_.sum(axis=1), 180, rtol=1e-4)
    assert model.transform(X_test).shape == (400, 120)
    assert model.sample(3)[0].shape == (3, 64)
    before = model.means_
    values = before.copy()
    model.partial_fit(X[800:])
    np.testing.assert_array_equal(before, values)  # earlier results do not change
    assert model.fit(X).n_samples_seen_ == 1397
    np.testing.assert_array_equal(model.means_, mixture().fit(X).means_)


def test_the_first_batch_decides(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X = shuffled[0]
    model = PoissonMixture(random_state=0).partial_fit(X[:600])
    row_sum = model.row_sum_
    assert model.n_components_ == 100
    model.partial_fit(X[600:])
    assert (model.n_components_, model.row_sum_) == (100, row_sum)
    with pytest.raises(ValueError, match="larger first batch"):
        mixture().partial_fit(X[:50])


@pytest.mark.parametrize("kind", [mixture, pytest.param(classifier, marks=pytest.mark.slow)])
def test_the_result_does_not_depend_on_threads_or_on_questions(kind: Any, shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, _ = shuffled
    labels = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    one, other = (streamed(kind(n_jobs=n, n_components=550), X, labels, 300) for n in (1, 2))
    asked = kind(n_jobs=2, n_components=550)
    for rows in batches(len(X), 300, seed=0):
        asked.partial_fit(X[rows], labels[rows]).predict(X_test)
    for again in (other, asked, pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(again.predict(X_test), one.predict(X_test))
        first = [getattr(model, "mixture_", model).means_ for model in (one, again)]
        np.testing.assert_array_equal(*first)


def test_a_pickle_continues_like_the_original(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, _ = shuffled
    clf = classifier(half_life=500).partial_fit(X[:600], y[:600])
    again = pickle.loads(pickle.dumps(clf))
    assert plain_parameters(clone(clf)) == plain_parameters(clf)
    for model in (clf, again):
        model.partial_fit(X[600:900]).partial_fit(X[900:], y[900:])
    np.testing.assert_array_equal(again.predict_proba(X_test), clf.predict_proba(X_test))


@pytest.mark.parametrize("kind", [mixture, classifier])
def test_model_files_predict_the_same_and_cannot_continue(
    kind: Any, shuffled: tuple[Any, Any, Any, Any], tmp_path: Path
) -> None:
    X, y, X_test, _ = shuffled
    model = streamed(kind(half_life=300, n_components=550), X, y, 300)
    tnesi.save(model, tmp_path / "stream.tnesi")
    loaded: Any = tnesi.load(tmp_path / "stream.tnesi")
    assert getattr(loaded, "mixture", loaded).half_life == 300
    np.testing.assert_array_equal(loaded.predict(X_test), model.predict(X_test))
    np.testing.assert_array_equal(getattr(loaded, "mixture_", loaded).score_samples(X_test),
                                  getattr(model, "mixture_", model).score_samples(X_test))  # fmt: skip
    with pytest.raises(ValueError, match="keep the estimator as a pickle"):
        loaded.partial_fit(X, y)
    np.testing.assert_array_equal(loaded.predict(X_test), model.predict(X_test))


def test_single_rows(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = shuffled
    clf = classifier().partial_fit(X[:600], np.where(np.arange(600) < 100, y[:600], -1))
    for i in range(600, 700):
        clf.partial_fit(X[i : i + 1], y[i : i + 1] if i % 2 else None)
    assert clf.n_samples_seen_ == 700
    assert clf.score(X_test, y_test) > 0.85
    only = PoissonMixture(random_state=0).partial_fit(X[:1]).partial_fit(X[1:2])
    assert only.n_components_ == 1


def test_rows_that_are_all_zero(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, _, _ = shuffled
    nothing = np.zeros((3, 64), np.uint8)
    for model in (mixture(), classifier()):
        model.partial_fit(X[:600], y[:600])
        with pytest.warns(UserWarning, match="3 of 3 rows are all zero"):
            model.partial_fit(nothing)
        assert (model.n_samples_seen_, model.n_zero_rows_) == (603, 3)
        model.partial_fit(nothing)  # mentioned once
        assert (model.n_samples_seen_, model.n_zero_rows_) == (606, 6)


def test_other_columns_are_refused(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, _, _ = shuffled
    for model in (mixture(), classifier()):
        model.partial_fit(X[:600], y[:600])
        with pytest.raises(ValueError, match="X has 63 features"):
            model.partial_fit(X[:, 1:], y)


def test_weights(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, _ = shuffled
    count = np.random.default_rng(0).integers(0, 4, 797)
    weighted = classifier().partial_fit(X[:600], y[:600]).partial_fit(X[600:], y[600:], sample_weight=count)
    repeated = classifier().partial_fit(X[:600], y[:600])
    repeated.partial_fit(np.repeat(X[600:], count, axis=0), np.repeat(y[600:], count))
    np.testing.assert_allclose(weighted.mixture_.means_, repeated.mixture_.means_, rtol=1e-4)
    np.testing.assert_allclose(weighted.predict_proba(X_test), repeated.predict_proba(X_test), atol=1e-4)
    assert weighted.n_samples_seen_ == 600 + np.sum(count > 0)


@pytest.mark.parametrize("kind", [mixture, classifier])
def test_going_on_after_fit(kind: Any, shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = shuffled
    labels = np.where(np.arange(1000) % 8 == 0, y[:1000], -1)
    model = kind().fit(X[:1000], labels)
    before = getattr(model, "mixture_", model).score(X_test)
    accuracy = model.score(X_test, y_test)
    for start in range(1000, 1397, 50):
        model.partial_fit(X[start : start + 50])
    assert getattr(model, "mixture_", model).score(X_test) > before
    assert model.n_samples_seen_ == 1397
    if kind is classifier:
        assert model.score(X_test, y_test) > accuracy - 0.05  # over 20 seeds 0.00 +- 0.01
        assert model.kept_rows_.size == 1397
        np.testing.assert_array_equal(model.transduction_[:1000][labels >= 0], labels[labels >= 0])


# Labels


def test_labels_that_come_late_or_never(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = shuffled
    clf = classifier().partial_fit(X[:600]).partial_fit(X[600:], np.full(797, -1))
    assert clf.classes_.size == 0
    with pytest.raises(NotFittedError, match="partial_fit with these rows"):
        clf.predict(X_test)
    rows = [suggestion.row for suggestion in clf.suggest(30)]
    clf.partial_fit(X[rows], y[rows])
    assert clf.score(X_test, y_test) > 0.75  # over 20 seeds 0.91 +- 0.02
    assert clf.n_samples_seen_ == 1427
    with pytest.raises(ValueError, match="to partial_fit instead"):
        clf.fit_labels(y)


def test_classes_grow(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = shuffled
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    clf = classifier(unlabeled="?").partial_fit(X[:600], np.where(y[:600] < 1, names[y[:600]], "?"))
    assert clf.classes_.tolist() == ["zero"]
    with pytest.raises(NotFittedError, match="two classes"):
        clf.predict_proba(X_test)
    clf.partial_fit(X[600:1000], np.where(y[600:1000] < 5, names[y[600:1000]], "?"))
    assert sorted(clf.classes_) == sorted(names[:5])
    some = y_test < 5
    assert clf.score(X_test[some], names[y_test[some]]) > 0.9
    clf.partial_fit(X[1000:], names[y[1000:]])
    assert sorted(clf.classes_) == sorted(names)
    assert clf.score(X_test, names[y_test]) > 0.85
    with pytest.raises(ValueError, match="do not have the type"):
        clf.partial_fit(X[:5], y[:5])


def test_classes_that_are_announced(shuffled: tuple[Any, Any, Any, Any], tmp_path: Path) -> None:
    X, y, X_test, _ = shuffled
    clf = classifier().partial_fit(X[:600], np.where(y[:600] == 3, 3, -1), classes=np.arange(12))
    assert clf.predict_proba(X_test).shape == (400, 12)
    assert set(clf.predict(X_test)) <= {0, 3}  # 0 is the first one, for rows that no label reaches
    labels = np.where(np.arange(797) < 200, y[600:], -1)
    t = clf.partial_fit(X[600:], labels).predict_proba(X_test)
    assert clf.classes_.tolist() == list(range(12))
    np.testing.assert_array_equal(t[:, 10:], 0)
    np.testing.assert_allclose(t.sum(axis=1), 1)
    assert clf.class_weights_.shape[0] == clf.label_confidence_.size == 12
    tnesi.save(clf, tmp_path / "announced.tnesi", training=False)
    loaded: Any = tnesi.load(tmp_path / "announced.tnesi")
    np.testing.assert_array_equal(loaded.predict_proba(X_test), t)
    with pytest.raises(ModelFileError, match="training=False"):
        tnesi.save(clf, tmp_path / "announced.tnesi")


def test_unknown_classes(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, _ = shuffled
    labels = np.where((y < 8) & (np.arange(1397) % 5 == 0), y, -1)
    clf = streamed(classifier(unknown_classes=2), X, labels)
    assert clf.predict_proba(X_test).shape == (400, 9)
    assert clf.classes_.tolist() == [*range(8), -1]
    clf.partial_fit(X[:10], y[:10])
    assert clf.classes_.size >= 8


OF_SECOND_LAYER = (
    "activities_", "class_sizes_", "class_weights_", "kept_rows_", "label_confidence_", "label_distributions_",
    "labeling_", "label_rivals_", "model_", "transduction_", "unknown_share_",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_SECOND_LAYER)
def test_reading_an_attribute_does_not_learn(name: str, shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, _ = shuffled
    clf = classifier().partial_fit(X[:600], np.where(np.arange(600) < 100, y[:600], -1))
    with pytest.raises(NotFittedError, match=r"call settle\(\) first"):
        getattr(clf, name)
    assert clf.mixture_.means_.shape[1] == 64
    clf.settle()
    getattr(clf, name)
    before = clf.predict_proba(X_test)
    clf.partial_fit(X[600:700])
    assert not hasattr(clf, name)
    assert (clf.predict_proba(X_test) != before).any()


def test_rows_kept_are_bounded(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = shuffled
    labels = np.where(np.arange(1397) % 20 == 0, y, -1)
    clf = classifier(keep_rows=500)
    for rows in batches(1397, 100):
        clf.partial_fit(X[rows], labels[rows])
    assert clf.settle().kept_rows_.size == clf.activities_.shape[0] == 500
    assert set(np.flatnonzero(labels >= 0)) <= set(clf.kept_rows_.tolist())
    assert clf.score(X_test, y_test) > 0.8  # over 20 seeds 0.889 +- 0.016
    assert all(suggestion.row in clf.kept_rows_ for suggestion in clf.suggest(5))


def test_a_row_that_comes_again_counts_more_and_has_its_newest_label(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, _, _ = shuffled
    labels = np.where(np.arange(600) < 50, y[:600], -1)
    wrong = np.where(labels >= 0, 9 - labels, -1)
    clf = classifier().partial_fit(X[:600], wrong).partial_fit(X[:600], labels).partial_fit(X[:50], labels[:50])
    given = clf.settle().kept_rows_ >= 1200
    assert (clf.kept_rows_.size, given.sum()) == (1150, 50)
    np.testing.assert_array_equal(clf.transduction_[given], y[:50])
    weight = clf.model_.rows.weight
    assert weight is not None
    np.testing.assert_allclose(weight, np.where(given, 1, 1 / 3), rtol=1e-5)


def test_a_committee(shuffled: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = shuffled
    clf = streamed(classifier(n_mixtures=3, row_sum="auto"), X, few_labels(y, 10, np.random.default_rng(0)), 300)
    assert len({member.row_sum_ for member in clf.mixtures_}) == 1
    assert clf.settle().activities_.shape == (1397, 360)
    assert clf.mixtures_[2].history_[-1]["mixture"] == 3
    assert clf.score(X_test, y_test) > 0.87  # over 20 seeds 0.940 +- 0.011


@pytest.mark.parametrize(("parameters", "advice"), [
    ({"half_life": 0}, "half_life=0"),
    ({"keep_rows": 1}, "keep_rows=1"),
])  # fmt: skip
def test_what_is_refused(shuffled: tuple[Any, Any, Any, Any], parameters: Any, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        classifier(**parameters).partial_fit(shuffled[0], shuffled[1])


@pytest.mark.slow
def test_a_stream_that_changes_is_followed(shuffled: tuple[Any, Any, Any, Any]) -> None:
    """The pixels are permuted: with a half-life the fields follow soon, without one they do not."""
    X, y, X_test, y_test = shuffled
    moved = np.random.default_rng(1).permutation(64)
    few = np.where(np.arange(1397) % 10 == 0, y, -1)
    error = {}
    for half_life in (300, None):
        clf = streamed(classifier(half_life=half_life, labeling="spreading"), X, few, passes=3)
        assert clf.score(X_test, y_test) > 0.87  # over 20 seeds 0.933 +- 0.011
        for seed in range(2):
            for rows in batches(1397, 100, 100, seed):
                clf.partial_fit(X[rows][:, moved], few[rows])
        error[half_life] = 1 - clf.score(X_test[:, moved], y_test)
    assert error[300] < 0.22  # over 12 seeds 0.125 +- 0.019
    assert error[None] > error[300]  # by 0.48 +- 0.09


INTERRUPTED = """
import numpy as np
from tnesi import PoissonMixture
X = np.random.default_rng(0).integers(0, 255, (40000, 60)).astype(np.uint8)
m = PoissonMixture(900, row_sum=200, random_state=0).partial_fit(X[:2000])
seen = m.n_samples_seen_
try:
    while True:
        print("batch", flush=True)
        m.partial_fit(X)
        seen += len(X)
except KeyboardInterrupt:
    assert m.n_samples_seen_ in (seen, seen + len(X)) and m.history_[-1]["rows"] in (2000, len(X))
    assert np.isfinite(m.score(X[:100])) and np.isfinite(m.means_).all()
    m.partial_fit(X[:10])
    print("usable", flush=True)
"""


@pytest.mark.slow
def test_ctrl_c_waits_for_the_batch() -> None:
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    killer = threading.Timer(120, process.kill)
    killer.start()
    try:
        assert process.stdout.readline().strip() == "batch"
        assert process.stdout.readline().strip() == "batch"
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        assert "usable" in process.stdout.read()
        assert process.wait() == 0
    finally:
        killer.cancel()
        process.stdout.close()


@pytest.mark.slow
def test_one_pass_over_mnist(mnist: Data) -> None:
    y = few_labels(mnist.y, 10, np.random.default_rng(0))
    clf = SimpletronClassifier(PoissonMixture(10_000, row_sum=900), random_state=0)
    for rows in batches(60_000, 2000, 20_000):
        clf.partial_fit(mnist.X[rows], y[rows])
    assert mnist.test is not None
    assert clf.mixture_.score(mnist.test.X) > -835.64 - 0.1  # that of fit
    assert 1 - clf.score(mnist.test.X, mnist.test.y) < 0.045  # 0.034 by fit


@pytest.mark.parametrize(("labeling", "learned"), [("supervised", "supervised"), ("spreading", "spreading")])
def test_a_stream_is_labeled_by_the_method_that_is_asked_for(shuffled: Any, labeling: str, learned: str) -> None:
    X, y = shuffled[0][:600], np.where(np.arange(600) < 40, shuffled[1][:600], -1)
    assert classifier(labeling=labeling).partial_fit(X, y).settle().labeling_ == learned


def test_a_stream_learns_from_rows_without_labels(shuffled: Any) -> None:
    X, y = shuffled[0][:600], np.where(np.arange(600) < 40, shuffled[1][:600], -1)
    assert classifier().partial_fit(X, y).settle().labeling_ != "supervised"
