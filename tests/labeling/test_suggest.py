"""What to label next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.naming import confidence
from tnesi.labeling.suggest import Known, Suggestion, audit, explore, settle, suggest
from tnesi.paper import NeuralSimpletron

Planted = Callable[..., Any]


def labeler_of(s: sparse.csr_array, weight: Any = None, seed: int = 0) -> Labeler:
    return Labeler(s, [s.shape[1]], weight, seed, 1)


def known_of(labeler: Labeler, label: Any, n_classes: int) -> Known:
    """Return the state of a classifier after learning."""
    t = labeler.learn(label, n_classes, "auto")[0].posterior(labeler.activities)
    t[label >= 0] = np.eye(n_classes)[label[label >= 0]]
    sure, rivals = confidence(labeler.activities, t.argmax(axis=1), label, n_classes)
    return Known(label, np.arange(n_classes), t, sure, rivals)


def rows_of(suggestions: list[Suggestion]) -> list[int]:
    return [suggestion.row for suggestion in suggestions]


def classifier(**parameters: Any) -> SimpletronClassifier:
    return SimpletronClassifier(PoissonMixture(150, row_sum=180), **{"random_state": 0, **parameters})


@pytest.fixture(scope="module")
def unlabeled() -> SimpletronClassifier:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return classifier().fit(X, np.full(len(y), -1))


@pytest.mark.parametrize("seed", range(5))
def test_one_row_of_each_cluster(planted: Planted, seed: int) -> None:
    s, truth = planted([300] * 6, seed=seed)
    found = suggest(labeler_of(s, seed=seed), Known.nothing(truth.size), 6)
    assert sorted(truth[rows_of(found)]) == list(range(6))
    assert all("without a label" in one.reason and one.classes == () for one in found)


def test_large_clusters_first(planted: Planted) -> None:
    s, truth = planted([500, 100, 300])
    found = suggest(labeler_of(s), Known.nothing(truth.size), 3)
    assert truth[rows_of(found)].tolist() == [0, 2, 1]
    assert [int(one.reason.split()[3]) for one in found] == pytest.approx([500, 300, 100], abs=20)


def test_rows_are_typical(planted: Planted) -> None:
    """Suggestions avoid rows with fields of other clusters and rows with fields of their own."""
    s, truth = planted([200] * 4, leak=0.3)
    own = sparse.eye_array(20, format="csr", dtype=np.float32)  # twenty outliers
    s = sparse.csr_array(sparse.block_diag([s, own]))
    cluster = sparse.csr_array((np.ones(800), (np.arange(800), truth)), shape=(820, 4))
    share = (s.T != 0).astype(float) @ cluster
    for n in (4, 6):
        for row in rows_of(suggest(labeler_of(s), Known.nothing(820), n))[:4]:
            assert row < 800
            assert share[s[[row]].indices].toarray().argmax(axis=1).tolist() == [truth[row]] * 4


def test_clusters_without_a_label_come_first(planted: Planted) -> None:
    s, truth = planted([200] * 5)
    label = np.full(truth.size, -1, np.int32)
    label[[10, 210, 410]] = truth[[10, 210, 410]]  # none of the last two
    found = suggest(labeler_of(s), known_of(labeler_of(s), label, 3), 2)
    assert sorted(truth[rows_of(found)]) == [3, 4]


def test_where_classes_compete(planted: Planted) -> None:
    """Two classes share a cluster: suggestions come from there once there are labels everywhere."""
    s, cluster = planted([200] * 4, leak=0)
    label = np.full(800, -1, np.int32)
    for k in range(4):
        label[200 * k : 200 * k + 50] = k
    label[600:650:2] = 2
    t = np.full((800, 4), 0.01)
    t[np.arange(800), cluster] = 0.97
    t[cluster == 3] = [0, 0, 0.45, 0.55]
    t[label >= 0] = np.eye(4)[label[label >= 0]]
    known = Known(label, np.array(list("abcd")), t, np.ones(4), np.array(list("badc")))
    (found,) = suggest(labeler_of(s), known, 1, n_parts=4)  # in more parts there may be some without a label
    assert cluster[found.row] == 3
    assert found.classes == ("d", "c")
    assert found.reason.startswith("between d and c: about ")


def test_exploring_looks_where_no_label_is(planted: Planted) -> None:
    """Rows predicted as a class with few labels come first: they are more likely to hide another class."""
    s, truth = planted([200] * 5)
    label = np.full(truth.size, -1, np.int32)
    label[[0, 1, 2, 3, 4, 5, 200, 400]] = [0] * 6 + [1, 2]
    t = np.eye(3)[np.where(truth == 3, 0, np.where(truth == 4, 1, truth % 3))]
    known = Known(label, np.arange(3), t, np.ones(3), np.arange(3))
    found = explore(labeler_of(s), known, 5, n_parts=5)
    assert truth[rows_of(found)].tolist()[:2] == [4, 3]
    assert all("without a label" in one.reason for one in found)
    assert {truth[row] for row in rows_of(found)} == {3, 4}
    assert not explore(labeler_of(s), known, 0, n_parts=5)


def test_settling_looks_where_two_classes_compete(planted: Planted) -> None:
    """A best class far ahead of two others is more doubtful than two equal ones, but more often right."""
    s, truth = planted([200] * 3)
    labeler = Labeler(s, [s.shape[1]], None, 0)
    place = labeler.clusters(3).place
    posterior = np.where((place == place[0])[:, None], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3])
    label = np.full(truth.size, -1)
    label[[1, 201, 401]] = 0, 1, 2
    known = Known(label, np.arange(3), posterior, np.ones(3), np.array([1, 2, 0]))
    first, *_ = settle(labeler, known, 3, n_parts=3)
    assert place[first.row] == place[0]


def test_settling_looks_where_rows_are_undecided(planted: Planted) -> None:
    """Undecided rows count for each label of their part and the next one; names are no longer suggested."""
    s, truth = planted([200] * 4)
    label = np.full(truth.size, -1, np.int32)
    label[200:210] = 1
    label[[0, 600]] = 0
    t = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [1, 0]])[truth]
    known = Known(label, np.array(["a", "b"]), t, np.full(2, 0.3), np.array(["b", "a"]))
    found = settle(labeler_of(s), known, 3, n_parts=4)
    assert truth[rows_of(found)].tolist() == [2, 0, 1]
    assert found[0].classes == ("b", "a")
    assert found[0].reason.startswith("between b and a: about 8")
    assert all("undecided" in one.reason for one in found)
    assert settle(labeler_of(s), Known.nothing(truth.size), 3, n_parts=4) == []


def test_chance_asks_classes_with_many_rows_for_each_label(planted: Planted) -> None:
    s, truth = planted([400, 200, 100])
    labeler, label = labeler_of(s), np.full(700, -1, np.int32)
    label[[0, 400, 600, 601]] = [0, 1, 2, 2]
    known = Known(label, np.array(["a", "b", "c"]), np.eye(3)[truth], np.ones(3), np.array(["b", "a", "a"]))
    found = audit(labeler, known, 7)
    # rows for each label and the next: 200, 100 and 33, then 133, 100 and 33, and so forth
    assert truth[rows_of(found)].tolist() == [0, 0, 0, 1, 0, 0, 1]
    assert found == audit(labeler, known, 7)
    assert "400 rows predicted as a" in found[0].reason
    everything = audit(labeler, known, 1000, exclude=rows_of(found))
    assert set(rows_of(everything)) == set(range(700)) - {0, 400, 600, 601, *rows_of(found)}
    assert len(everything) == 700 - 4 - 7


def test_doubtful_names(planted: Planted) -> None:
    s, truth = planted([200] * 3)
    label = np.full(600, -1, np.int32)
    label[[0, 200, 400]] = [0, 1, 2]
    t = np.eye(3)[truth]
    found = suggest(labeler_of(s), Known(label, np.arange(3), t, np.array([0.6, 0.6, 1]), np.array([1, 0, 0])), 2)
    assert {one.classes for one in found} == {(0, 1), (1, 0)}
    assert truth[rows_of(found)].tolist() in ([0, 1], [1, 0])
    assert "predicted as 0, which may be 1" in found[0].reason


@pytest.mark.slow
@given(n=st.integers(1, 130), n_labels=st.integers(0, 40), seed=st.integers(0, 3))
def test_new_rows_only(planted: Planted, some_labels: Planted, n: int, n_labels: int, seed: int) -> None:
    s, truth = planted([40, 40, 20], seed=seed)
    labeler, known = labeler_of(s), Known.nothing(100)
    if n_labels:
        known = known_of(labeler, some_labels(truth, n_labels, seed), 3)
    rows = rows_of(suggest(labeler, known, n))
    assert len(set(rows)) == len(rows) <= n
    assert (known.label[rows] < 0).all()
    assert rows == rows_of(suggest(labeler_of(s), known, n))
    if n_labels == 0:
        assert len(rows) == min(n, 100)


def test_nothing_left(planted: Planted) -> None:
    s, truth = planted([20, 20])
    known = Known(truth, np.arange(2), np.eye(2)[truth], np.ones(2), np.array([1, 0]))
    assert suggest(labeler_of(s), known, 5) == []


def test_weights_count_rows(planted: Planted) -> None:
    """The small cluster is the large one when its rows weigh more."""
    s, truth = planted([300, 200])
    weight = np.where(truth == 1, 5, 1).astype(np.float32)
    (found,) = suggest(labeler_of(s, weight), Known.nothing(500), 1)
    assert truth[found.row] == 1
    assert "about 1,0" in found.reason or "about 99" in found.reason


def test_fields_that_all_rows_have(rng: np.random.Generator) -> None:
    """Without truncation every row has all fields."""
    s = np.where(np.arange(200)[:, None] % 2 == [0, 0, 1, 1], 1.0, 1e-6) * rng.uniform(0.5, 1, (200, 4))
    s = sparse.csr_array((s / s.sum(axis=1, keepdims=True)).astype(np.float32))
    rows = rows_of(suggest(labeler_of(s), Known.nothing(200), 2))
    assert sorted(row % 2 for row in rows) == [0, 1]


def test_from_no_labels_to_a_classifier(unlabeled: SimpletronClassifier, digits: Any) -> None:
    X, truth = digits
    assert unlabeled.classes_.size == 0
    y = np.full(len(truth), -1)
    found = unlabeled.suggest()
    assert found == classifier().fit(X, y).suggest(10)
    assert len(found) == 10
    clf, scores = classifier().fit(X, y), []
    for _ in range(3):
        rows = rows_of(clf.suggest(10))
        assert (y[rows] == -1).all()
        y[rows] = truth[rows]
        scores.append(clf.fit_labels(y).score(X, truth))
    assert scores[-1] > 0.8  # over 20 seeds 0.93 +- 0.02
    np.testing.assert_array_equal(clf.predict(X), classifier().fit(X, y).predict(X))
    at_random = []
    for seed in range(5):
        few = np.where(np.random.default_rng(seed).permutation(len(truth)) < 10, truth, -1)
        at_random.append(clf.fit_labels(few).score(X, truth))
    assert scores[0] > np.mean(at_random) + 0.1


def test_what_needs_labels_says_so(unlabeled: SimpletronClassifier, digits: Any) -> None:
    for action in (
        lambda: unlabeled.predict(digits[0]),
        lambda: unlabeled.predict_proba(digits[0]),
        lambda: unlabeled.score(*digits),
        lambda: unlabeled.transduction_,
    ):
        with pytest.raises(NotFittedError, match=r"no labels yet.*suggest.*fit_labels"):
            action()
    assert not hasattr(unlabeled, "transduction_")
    with pytest.raises(AttributeError, match="no attribute 'color_'"):
        _ = unlabeled.color_
    with pytest.raises(NotFittedError, match="not fitted yet"):
        classifier().suggest()
    with pytest.raises(ValueError, match="n=0"):
        unlabeled.suggest(0)


def test_labels_of_an_earlier_fit_are_forgotten(digits: Any) -> None:
    X, y = digits[0][:300], digits[1][:300]
    clf = classifier().fit(X, y).fit(X, np.full(300, -1))
    with pytest.raises(NotFittedError, match="no labels yet"):
        clf.predict(X)


def test_a_recurrent_network_needs_labels(digits: Any) -> None:
    with pytest.raises(ValueError, match="y has no labels"):
        NeuralSimpletron(150, row_sum=180, recurrent=True).fit(digits[0], np.full(len(digits[1]), -1))


@pytest.mark.parametrize("parameters", [{"labeling": "self-labeling"}, {"labeling": "supervised"}, {"n_mixtures": 3}])
def test_other_classifiers(digits: Any, parameters: dict[str, Any]) -> None:
    X, truth = digits[0][:500], digits[1][:500]
    clf, y = classifier(**parameters).fit(X, np.full(500, None)), np.full(500, None)
    for _ in range(2):
        rows = rows_of(clf.suggest(10))
        y[rows] = truth[rows]
        clf.fit_labels(y)
    assert sum(value is not None for value in y) == 20
    assert (
        clf.score(X, truth) > 0.4
    )  # over 20 seeds 0.90 +- 0.08 by self-labeling, at least 0.59; 0.84 +- 0.02 supervised


def test_rows_are_those_given(digits: Any) -> None:
    """Rows of weight 0 are absent, but counted; labels may be given for all rows, or for those present."""
    X, truth = digits[0][:600], digits[1][:600]
    weight = np.where(np.arange(600) % 3 == 0, 0, 2)
    clf = classifier().fit(X, np.full(600, -1), sample_weight=weight)
    rows = rows_of(clf.suggest(30))
    assert max(rows) >= 400
    assert all(row % 3 for row in rows)
    y = np.full(600, -1)
    y[rows] = truth[rows]
    expected = clf.fit_labels(y[weight > 0]).predict_proba(X)
    y[0] = 77  # of an absent row
    np.testing.assert_array_equal(clf.fit_labels(y).predict_proba(X), expected)
    assert not set(rows) & set(rows_of(clf.suggest(30)))
    with pytest.raises(ValueError, match="400 rows"):
        clf.fit_labels(y[:599])


def test_names_and_unknown_classes(digits: Any) -> None:
    """Rows of no known class are suggested."""
    X, truth = digits
    y = few_labels(np.where(truth < 7, truth.astype(str), None), 5, np.random.default_rng(0), unlabeled=None)
    asked_for = []
    for seed in range(4):
        found = classifier(unknown_classes=3, unlabeled=None, random_state=seed).fit(X, y).suggest(8)
        asked_for.append(len({7, 8, 9} & set(truth[rows_of(found)])))
        assert all(isinstance(name, str) and name < "7" for one in found for name in one.classes)
    assert sum(asked_for) >= 9  # of 40 mixtures 34 find all three, and 6 find two


def test_settling_counts_labels_of_the_first_class(planted: Planted) -> None:
    s, truth = planted([200] * 4)
    label = np.full(truth.size, -1, np.int32)
    label[200:210] = 0
    t = np.array([[0.9, 0.1], [0.55, 0.45], [0.4, 0.6], [1, 0]])[truth]
    known = Known(label, np.array(["a", "b"]), t, np.full(2, 0.3), np.array(["b", "a"]))
    assert truth[settle(labeler_of(s), known, 3, n_parts=4)[0].row] == 2


def test_there_are_as_many_parts_as_labels_and_questions(planted: Planted) -> None:
    s, truth = planted([100] * 8)
    label = np.full(truth.size, -1)
    label[[0, 100, 200, 300, 400]] = 0
    label[[500]] = 1
    t = np.eye(2)[np.where(truth < 5, 0, 1)] * 0.8 + 0.1
    known = Known(label, np.arange(2), t, np.ones(2), np.array([1, 0]))
    labeler = labeler_of(s)
    assert suggest(labeler, known, 2) == suggest(labeler, known, 2, n_parts=8)
    assert suggest(labeler, known, 2) != suggest(labeler, known, 2, n_parts=3)
