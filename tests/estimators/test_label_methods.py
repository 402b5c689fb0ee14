"""The classifier with each of its label methods."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.estimators.stored_parameters import plain_parameters
from tnesi.labeling import clusters
from tnesi.labeling.labeler import Labeler
from tnesi.model.classes import FieldClasses

METHODS = ["auto", "self-labeling", "clusters", "spreading"]
Data = tuple[Any, Any, Any]


def fast(**parameters: Any) -> SimpletronClassifier:
    return SimpletronClassifier(PoissonMixture(150, row_sum=180), **{"random_state": 0, **parameters})


@pytest.fixture(scope="module")
def data() -> Data:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y, few_labels(y, 10, np.random.default_rng(0))


@pytest.fixture(scope="module")
def fitted(data: Data) -> dict[str, SimpletronClassifier]:
    return {method: fast(labeling=method).fit(data[0], data[2]) for method in METHODS}


@pytest.fixture(scope="module")
def with_unknown(data: Data) -> SimpletronClassifier:
    X, _, few = data
    return fast(unknown_classes=3).fit(X, np.where(few > 6, -1, few))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(fitted: dict[str, SimpletronClassifier], data: Data, method: str) -> None:
    X, y, few = data
    clf = fitted[method]
    assert clf.score(X, y) > 0.9
    assert clf.labeling_ == ("vote" if method == "auto" else method)
    assert clf.class_weights_.shape == (10, 150)
    assert clf.class_sizes_ is None or clf.class_sizes_.sum() == pytest.approx(1)
    np.testing.assert_allclose(clf.class_weights_.sum(axis=1), 1, rtol=1e-3)
    np.testing.assert_array_equal(clf.transduction_[few >= 0], few[few >= 0])
    assert clf.unknown_share_ == 0
    assert ((clf.label_confidence_ >= 0) & (clf.label_confidence_ <= 1)).all()
    assert np.isin(clf.label_rivals_, clf.classes_).all()
    assert (clf.label_rivals_ != clf.classes_).all()


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_sum_to_one(fitted: dict[str, SimpletronClassifier], data: Data, method: str) -> None:
    t = fitted[method].predict_proba(data[0])
    assert (t >= 0).all()
    np.testing.assert_allclose(t.sum(axis=1), 1)
    np.testing.assert_allclose(fitted[method].label_distributions_.sum(axis=1), 1)


@pytest.mark.parametrize("method", METHODS)
def test_new_labels_are_learned_like_the_first(
    fitted: dict[str, SimpletronClassifier], data: Data, method: str
) -> None:
    X, y, few = data
    again = fast(labeling=method).fit(X, few_labels(y, 2, np.random.default_rng(3))).fit_labels(few)
    if method == "self-labeling":  # each fit draws the order of the rows
        assert np.mean(again.predict(X) == fitted[method].predict(X)) > 0.93  # over 20 seeds 0.986 +- 0.009
    else:
        np.testing.assert_array_equal(again.predict_proba(X), fitted[method].predict_proba(X))


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
def test_what_needs_no_labels_does_not_depend_on_the_labels_before(data: Data, method: str) -> None:
    X, y, few = data
    one, other = (fast(labeling=method).fit(X, y) for _ in range(2))
    one.set_params(random_state=1).fit_labels(few_labels(y, 3, np.random.default_rng(3)))
    for clf in (one, other):
        clf.set_params(random_state=2).fit_labels(few)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_new_labels_without_a_seed(data: Data, random_state: Any) -> None:
    X, _, few = data
    clf = fast(random_state=random_state, labeling="clusters").fit(X, few)
    before = clf.predict_proba(X)
    np.testing.assert_array_equal(clf.fit_labels(few).predict_proba(X), before)


@pytest.mark.parametrize("method", METHODS)
def test_pickle_and_clone(fitted: dict[str, SimpletronClassifier], data: Data, method: str) -> None:
    X, y, _ = data
    clf = fitted[method]
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.label_confidence_, clf.label_confidence_)
    assert plain_parameters(clone(clf)) == plain_parameters(clf)
    other = few_labels(y, 2, np.random.default_rng(3))
    expected = fast(labeling=method).fit(X, other).fit_labels(other)
    np.testing.assert_array_equal(again.fit_labels(other).predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
def test_one_label_per_class(data: Data, method: str) -> None:
    X, y, _ = data
    clf = fast(labeling=method).fit(X, few_labels(y, 1, np.random.default_rng(1)))
    assert clf.score(X, y) > 0.4  # over 20 seeds 0.79 +- 0.08, and 0.65 +- 0.04 by clusters
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("method", METHODS)
def test_all_rows_labeled(data: Data, method: str) -> None:
    X, y, _ = data
    clf = fast(labeling=method).fit(X, y)
    assert clf.labeling_ == {"auto": "vote", "self-labeling": "supervised"}.get(method, method)
    assert clf.score(X, y) > 0.93
    np.testing.assert_array_equal(clf.transduction_, y)


def test_supervised_learns_from_labeled_rows_only(data: Data) -> None:
    X, _, few = data
    clf = fast(labeling="supervised").fit(X, few)
    expected = np.stack([clf.activities_[np.flatnonzero(few == k)].mean(axis=0) for k in range(10)])
    np.testing.assert_allclose(clf.class_weights_, expected, atol=1e-6)
    assert clf.labeling_ == "supervised"
    assert clf.fit_labels(few).labeling_ == "supervised"


def test_settings_of_self_labeling(data: Data) -> None:
    X, _, few = data
    usual = fast(labeling="self-labeling").fit(X, few).predict_proba(X)
    np.testing.assert_array_equal(fast(labeling=SelfLabeling()).fit(X, few).predict_proba(X), usual)
    for other in (
        SelfLabeling(threshold=0.9),
        SelfLabeling(learning_rate=1.0),
        SelfLabeling(max_iter=2),
        SelfLabeling(batch_size=300),
    ):
        clf = fast(labeling=other).fit(X, few)
        assert clf.labeling_ == "self-labeling"
        assert (clf.predict_proba(X) != usual).any()


def test_confusion_is_reported(data: Data) -> None:
    """There is one label of each, and that of class 4 is a nine."""
    X, y, few = data
    few = np.where(few == 4, -1, few)
    few[np.flatnonzero(few == 9)[1:]] = -1
    few[np.flatnonzero((y == 9) & (few < 0))[5]] = 4
    clf = fast(labeling="spreading").fit(X, few)
    assert clf.label_confidence_[[4, 9]].max() < 0.8 < clf.label_confidence_[[0, 6]].min()
    assert clf.label_rivals_[[4, 9]].tolist() == [9, 4]


# Unknown classes


def test_unknown_classes(with_unknown: SimpletronClassifier, data: Data) -> None:
    X, y, few = data
    clf = with_unknown
    assert clf.labeling_ == "clusters"
    assert clf.classes_.tolist() == [0, 1, 2, 3, 4, 5, 6, -1]
    assert clf.class_weights_.shape == (8, 150)
    assert clf.predict_proba(X).shape == (len(X), 8)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)
    assert clf.unknown_share_ == pytest.approx(np.mean(clf.transduction_ == -1))
    assert clf.unknown_share_ == pytest.approx(np.mean(y > 6), abs=0.22)  # over 20 seeds 0.24 +- 0.03, of 0.30
    assert np.mean(clf.predict(X) == np.where(y > 6, -1, y)) > 0.74  # 0.90 +- 0.03
    assert clf.label_confidence_.shape == clf.label_rivals_.shape == (7,)
    assert not np.isin(-1, clf.label_rivals_)
    again = clone(clf).fit(X, np.where(few > 6, -1, few)).set_params(unknown_classes=0).fit_labels(few)
    assert again.classes_.tolist() == list(range(10))
    assert again.unknown_share_ == 0


@pytest.mark.parametrize(
    ("names", "unlabeled", "last"),
    [
        (np.array([*"abcdefghij"]), "?", "?"),
        (np.array([*"abcdefghij"]), None, ""),
        (np.array([*"abcdefghij"]), -1, "-1"),
        (np.arange(10), None, -1),
        (np.arange(10), -9, -9),
        (np.arange(10.0), np.nan, -1),
    ],
)
def test_markers_of_unknown_classes(
    with_unknown: SimpletronClassifier, data: Data, names: Any, unlabeled: Any, last: Any
) -> None:
    X, _, few = data
    y = [unlabeled if k < 0 or k > 6 else names[k] for k in few]
    clf = clone(with_unknown).set_params(unlabeled=unlabeled).fit(X, y)
    assert clf.classes_.tolist() == [*names[:7].tolist(), last]
    np.testing.assert_array_equal(clf.predict_proba(X), with_unknown.predict_proba(X))


def test_a_class_that_is_called_like_the_unknown(data: Data) -> None:
    X, _, few = data
    clf = fast(unknown_classes=1, unlabeled=None)
    with pytest.raises(ValueError, match="predicted as -1, which is one of the classes"):
        clf.fit(X, [None if k < 0 else k - 1 for k in few])


def test_weights_count_in_the_share_of_the_unknown(data: Data) -> None:
    X, y, few = data
    weight = np.where(y > 6, 3.0, 1.0)
    clf = fast(unknown_classes=3).fit(X, np.where(few > 6, -1, few), sample_weight=weight)
    assert clf.unknown_share_ == pytest.approx(np.average(clf.transduction_ == -1, weights=weight))


# Parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"labeling": "best"},
            "labeling='best': pass one of 'auto', 'clusters', 'spreading', 'leading', 'logistic', 'self-labeling', "
            "'supervised'",
        ),
        ({"labeling": None}, "labeling=None"),
        ({"labeling": SelfLabeling(threshold=1.5)}, "threshold=1.5: pass a number of at least 0 and at most 1"),
        ({"labeling": SelfLabeling(learning_rate=0)}, "learning_rate=0: pass a number of more than 0"),
        ({"labeling": SelfLabeling(max_iter=0)}, "max_iter=0: pass an integer of at least 1"),
        ({"labeling": SelfLabeling(batch_size=0)}, "batch_size=0: pass an integer of at least 1"),
        ({"unknown_classes": -1}, "unknown_classes=-1: pass an integer of at least 0"),
        ({"unknown_classes": 1.5}, "unknown_classes=1.5"),
        ({"unknown_classes": True}, "unknown_classes=True"),
        *(
            ({"unknown_classes": 2, "labeling": labeling}, "unknown_classes=2 .*pass labeling='clusters' or .*'auto'")
            for labeling in ("spreading", "self-labeling", "supervised", SelfLabeling())
        ),
    ],
)
def test_parameters_that_are_refused(data: Data, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fast(**parameters).fit(data[0], data[2])


# Ctrl-C


@pytest.mark.parametrize(
    "place", [(Labeler, "learn"), (FieldClasses, "learn_epoch"), (clusters, "linear_sum_assignment")]
)
def test_ctrl_c_leaves_a_usable_classifier(data: Data, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]) -> None:
    X, y, few = data
    expected = fast(labeling="clusters").fit(X, few)
    with monkeypatch.context() as patch:
        patch.setattr(*place, Mock(side_effect=KeyboardInterrupt))
        with pytest.warns(
            ConvergenceWarning, match=r"second layer was interrupted.*call fit_labels with the same labels"
        ):
            clf = fast(labeling="clusters").fit(X, few)
    assert clf.labeling_ == ""
    assert clf.score(X, y) > 0.6
    assert clf.classes_.tolist() == list(range(10))
    assert pickle.loads(pickle.dumps(clf)).labeling_ == ""
    np.testing.assert_array_equal(clf.fit_labels(few).predict_proba(X), expected.predict_proba(X))
    assert clf.labeling_ == "clusters"


def test_ctrl_c_while_unknown_classes_are_found(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unknown class is not there yet."""
    X, _, few = data
    monkeypatch.setattr(Labeler, "learn", Mock(side_effect=KeyboardInterrupt))
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        clf = fast(unknown_classes=2).fit(X, few)
    assert clf.classes_.tolist() == list(range(10))
    assert clf.unknown_share_ == 0
    assert np.isfinite(clf.predict_proba(X)).all()


# Tiny data


LITTLE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "two points per class": lambda: (np.eye(6)[[0, 0, 1, 1, 2, 2]] + 0.1, [0, -1, 1, -1, 2, -1]),
    "two points": lambda: (np.eye(3)[:2] + 0.1, [0, 1]),
    "constant data": lambda: (np.ones((30, 4)), [0, 1, 2, *[-1] * 27]),
    "duplicates only": lambda: (np.repeat([[1.0, 2, 3], [3, 2, 1]], 20, axis=0), [0, *[-1] * 38, 1]),
    "as many classes as points": lambda: (np.eye(8) + 0.1, np.arange(8)),
    "a class of one far point": lambda: (
        np.vstack([np.random.default_rng(0).random((40, 6)) * [1, 1, 1, 0, 0, 0], [[0, 0, 0, 9, 9, 9]]]),
        [0, 1, *[-1] * 38, 2],
    ),
    "classes that are one": lambda: (np.random.default_rng(0).random((60, 5)), [*range(12), *[-1] * 48]),
}


@pytest.mark.parametrize("kind", LITTLE)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hardly_any_data(kind: str, method: str) -> None:
    X, y = LITTLE[kind]()
    clf = SimpletronClassifier(random_state=0, labeling=method).fit(X, y)
    t = clf.predict_proba(X)
    assert np.isfinite(t).all()
    np.testing.assert_allclose(t.sum(axis=1), 1)
    assert np.isin(clf.predict(X), clf.classes_).all()
    assert np.isfinite(clf.label_confidence_).all()


@pytest.mark.parametrize("kind", LITTLE)
@pytest.mark.parametrize("unknown", [1, 50])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_unknown_classes_than_there_could_be(kind: str, unknown: int) -> None:
    X, y = LITTLE[kind]()
    clf = SimpletronClassifier(random_state=0, unknown_classes=unknown).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)
    assert 0 <= clf.unknown_share_ <= 1
