"""Fits report their iterations to the callbacks of scikit-learn 1.9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.model_selection import SemiSupervisedKFold

callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")

X, TRUTH = (values[:300] for values in load_digits(return_X_y=True))
Y = np.where(np.arange(300) < 100, TRUTH, -1)


class Recorder:
    """A callback that records its calls and stops a fit after some iterations."""

    def __init__(self, stop_after: int = 10**6) -> None:
        self.heard: list[str] = []
        self.seen: list[Any] = []
        self.stop_after = stop_after

    def setup(self, estimator: Any, context: Any) -> None:
        self.heard.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.heard.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any, *, X: Any, y: Any, fitted_estimator: Any) -> bool:
        self.heard.append(f"end {context.task_name}")
        self.seen.append((X, y, fitted_estimator))
        return self.heard.count("end iteration") >= self.stop_after


class Spreading(Recorder):
    """The same, for an estimator inside another one."""

    max_propagation_depth = None


def test_iterations_are_subtasks_of_a_fit() -> None:
    recorder = Recorder()
    mixture = PoissonMixture(20, random_state=0).set_callbacks(recorder).fit(X)
    n = len(mixture.history_)
    assert recorder.heard == ["setup", "begin fit", *["begin iteration", "end iteration"] * n, "end fit", "teardown"]


def test_a_callback_gets_the_data_and_the_fitted_estimator() -> None:
    recorder = Recorder()
    clf = SimpletronClassifier(PoissonMixture(30), random_state=0).set_callbacks(recorder).fit(X, Y)
    rows, labels, fitted = recorder.seen[-1]
    assert rows is X
    assert labels is Y
    np.testing.assert_array_equal(fitted.predict_proba(X), clf.predict_proba(X))


def test_a_callback_can_stop_a_fit() -> None:
    mixture = PoissonMixture(30, tol=0, random_state=0).set_callbacks(Recorder(stop_after=3)).fit(X)
    assert len(mixture.history_) == 3


def test_callbacks_do_not_change_the_result() -> None:
    plain = SimpletronClassifier(PoissonMixture(30), n_mixtures=2, random_state=0).fit(X, Y)
    recorder = Recorder()
    watched = SimpletronClassifier(PoissonMixture(30), n_mixtures=2, random_state=0).set_callbacks(recorder).fit(X, Y)
    np.testing.assert_array_equal(plain.predict_proba(X), watched.predict_proba(X))
    assert recorder.heard.count("end iteration") == sum(len(mixture.history_) for mixture in watched.mixtures_)


def test_a_failing_fit_tears_down() -> None:
    recorder = Recorder()
    clf = SimpletronClassifier(random_state=0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="Negative"):
        clf.fit(-X, Y)
    assert recorder.heard == ["setup", "begin fit", "teardown"]


@pytest.mark.slow
def test_a_grid_search_passes_callbacks_on() -> None:
    recorder = Spreading()
    search = GridSearchCV(
        SimpletronClassifier(PoissonMixture(30), random_state=0),
        {"mixture__truncation": [5, 10]},
        cv=SemiSupervisedKFold(2),
    )
    search.set_callbacks(recorder).fit(X, Y)
    assert recorder.heard.count("setup") == recorder.heard.count("teardown") == 1
    assert recorder.heard.count("end iteration") > 5 * 3
