"""Cross-validation with unlabeled rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.model_selection import SemiSupervisedKFold, labeled_scorer


def fast(**parameters: Any) -> SimpletronClassifier:
    return SimpletronClassifier(PoissonMixture(60, row_sum=180, max_iter=10, tol=0), random_state=0, **parameters)


@pytest.fixture
def few(digits: tuple[Any, Any]) -> tuple[Any, Any]:
    X, y = digits
    return X[:600], np.where(np.arange(600) < 150, y[:600], -1)


@given(st.integers(2, 5), st.booleans(), st.integers(0, 2**32 - 1), st.sampled_from([-1, None, "?"]))
def test_folds(n_splits: int, shuffle: bool, seed: int, marker: Any) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.concatenate([np.repeat([0, 1, 2], n_splits + 2), np.full(20, -1)]))
    y = np.array([marker if code < 0 else f"c{code}" for code in codes], dtype=object)
    folds = SemiSupervisedKFold(n_splits, shuffle=shuffle, random_state=seed if shuffle else None, unlabeled=marker)
    tested = []
    for train, test in folds.split(np.zeros((len(y), 2)), y):
        assert set(codes[test]) == {0, 1, 2}  # every class, and no unlabeled row
        assert set(np.flatnonzero(codes < 0)) <= set(train)
        assert sorted([*train, *test]) == list(range(len(y)))
        tested.extend(test)
    assert sorted(tested) == np.flatnonzero(codes >= 0).tolist()  # every labeled row once
    assert folds.get_n_splits() == n_splits


def test_cross_validation(few: tuple[Any, Any]) -> None:
    X, y = few
    clf, folds = fast(), SemiSupervisedKFold(3)
    scores = cross_val_score(clf, X, y, cv=folds)
    for score, (train, test) in zip(scores, folds.split(X, y), strict=True):
        assert score == accuracy_score(y[test], clf.fit(X[train], y[train]).predict(X[test]))
    search = GridSearchCV(clf, {"mixture__search": ["exact", "neighbors"]}, cv=folds).fit(X, y)  # here the same
    assert -1 not in search.best_estimator_.classes_
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores.mean())


def test_unlabeled_rows_are_not_scored(few: tuple[Any, Any]) -> None:
    """scikit-learn's own folds test on unlabeled rows too; the score is about the others, and says so."""
    X, y = few
    clf = fast().fit(X, y)
    with pytest.warns(UserWarning, match=r"450 of 600 rows have no label.*SemiSupervisedKFold"):
        score = clf.score(X, y)
    assert score == clf.score(X[:150], y[:150])
    weight = np.arange(600.0)
    with pytest.warns(UserWarning, match="have no label"):
        assert clf.score(csr_array(X), y, weight) == clf.score(X[:150], y[:150], weight[:150])
    with pytest.raises(ValueError, match="no row has a label"):
        clf.score(X, np.full(600, -1))
    with pytest.warns(UserWarning, match="have no label"):
        assert clf.score(X, pd.Series(y, dtype="Int64").replace(-1, pd.NA)) == score


def test_the_class_of_the_unknown_is_scored(few: tuple[Any, Any]) -> None:
    X, y = few
    known = np.where(y < 9, y, -1)
    clf = fast(unknown_classes=1).fit(X, known)
    assert clf.score(X[:150], known[:150]) == accuracy_score(known[:150], clf.predict(X[:150]))


def test_scorers_leave_unlabeled_rows_out(few: tuple[Any, Any]) -> None:
    X, y = few
    clf = fast().fit(X, y)
    predicted = clf.predict(X)
    for scoring in (None, "accuracy"):
        assert labeled_scorer(scoring)(clf, X, y) == accuracy_score(y[:150], predicted[:150])
    assert cross_val_score(clf, X, y, cv=3, scoring=labeled_scorer("f1_macro")).shape == (3,)
    weight = np.arange(600.0)
    weighted = labeled_scorer("accuracy")(clf, X, y, sample_weight=weight)
    assert weighted == accuracy_score(y[:150], predicted[:150], sample_weight=weight[:150])
    assert pickle.loads(pickle.dumps(labeled_scorer("accuracy")))(clf, X, y) == clf.score(X[:150], y[:150])
    with pytest.raises(ValueError, match=r"no row to score has a label.*SemiSupervisedKFold"):
        labeled_scorer()(DummyClassifier().fit(X, y), X, np.full(600, -1))


def test_labels_are_needed() -> None:
    with pytest.raises(ValueError, match="pass y"):
        next(SemiSupervisedKFold().split(np.ones((4, 2))))


def test_labels_among_missing_ones_are_scored(digits: tuple[Any, Any]) -> None:
    """An array of objects is what remains of integers beside None."""
    X, y = digits[0][:300], np.array([int(k) if i % 2 else None for i, k in enumerate(digits[1][:300])], dtype=object)
    model = SimpletronClassifier(PoissonMixture(60, row_sum=180), random_state=0)
    for scoring in (None, labeled_scorer("accuracy")):
        found = cross_val_score(model, X, y, cv=SemiSupervisedKFold(2), scoring=scoring, error_score="raise")
        assert (found > 0.5).all()  # chance is 0.1


@pytest.fixture
def routing() -> Any:
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_a_pipeline(few: tuple[Any, Any]) -> None:
    X, y = few
    weight = np.where(np.arange(600) < 300, 2.0, 1.0)
    clf = fast().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    pipe = make_pipeline(MinMaxScaler(), clf).fit(X, y, sample_weight=weight)
    scaled = pipe[0].transform(X)
    np.testing.assert_array_equal(pipe[-1].predict_proba(scaled), fast().fit(scaled, y, weight).predict_proba(scaled))
    labeled, share = y >= 0, np.linspace(0, 1, 600)
    expected = accuracy_score(y[labeled], pipe.predict(X[labeled]), sample_weight=share[labeled])
    assert pipe.score(X[labeled], y[labeled], sample_weight=share[labeled]) == pytest.approx(expected)


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_to_the_labeled_rows(few: tuple[Any, Any]) -> None:
    X, y = few
    weight = np.random.default_rng(0).uniform(0, 1, 600)
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    clf = fast().set_fit_request(sample_weight=False)
    folds = SemiSupervisedKFold(2)
    found = cross_validate(clf, X, y, params={"sample_weight": weight}, cv=folds, scoring=labeled_scorer(scorer))
    for score, (train, test) in zip(found["test_score"], folds.split(X, y), strict=True):
        predicted = fast().fit(X[train], y[train]).predict(X[test])
        assert score == pytest.approx(accuracy_score(y[test], predicted, sample_weight=weight[test]))
