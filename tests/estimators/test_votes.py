"""The classifier with linear classes: labels that lead, logistic regression, and the vote."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from tnesi import PoissonMixture, SimpletronClassifier, load, save
from tnesi.data import few_labels, open_data
from tnesi.errors import InvalidParameterError
from tnesi.estimators import blocks
from tnesi.execution import spool
from tnesi.labeling.logistic import FORMS

LINEAR = ["leading", "logistic"]
WAYS = ["clusters", "spreading", "leading", "logistic"]
Data = tuple[Any, Any, Any]


def fast(**parameters: Any) -> SimpletronClassifier:
    mixture = PoissonMixture(80, row_sum=180, max_iter=5, tol=0)
    return SimpletronClassifier(mixture, **{"random_state": 0, **parameters})


@pytest.fixture(scope="module")
def data() -> Data:
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y, few_labels(y, 5, np.random.default_rng(0))


@pytest.fixture(scope="module")
def voting(data: Data) -> SimpletronClassifier:
    return fast().fit(data[0], data[2])


@pytest.fixture(scope="module")
def fitted(data: Data, voting: SimpletronClassifier) -> dict[str, SimpletronClassifier]:
    return {"auto": voting} | {way: fast(labeling=way).fit(data[0], data[2]) for way in LINEAR}


def test_a_vote_says_who_votes(voting: SimpletronClassifier, data: Data) -> None:
    X, y, _ = data
    assert voting.labeling_ == "vote"
    assert voting.votes_.keys() <= {*WAYS}
    assert sum(voting.votes_.values()) == pytest.approx(1)
    assert list(voting.votes_.values()) == sorted(voting.votes_.values(), reverse=True)
    assert voting.expected_accuracy_ == pytest.approx(voting.score(X, y), abs=0.2)  # over 20 draws -0.04 +- 0.04


@pytest.mark.parametrize("way", LINEAR)
def test_one_way_alone(fitted: dict[str, SimpletronClassifier], data: Data, way: str) -> None:
    X, y, few = data
    clf = fitted[way]
    assert clf.labeling_ == way
    assert clf.votes_ == {way: 1.0}
    assert clf.score(X, y) > 0.6  # over 20 draws of labels 0.80 +- 0.04 and 0.87 +- 0.02
    np.testing.assert_array_equal(clf.transduction_[few >= 0], few[few >= 0])


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_stored_rows_are_predicted_like_new_ones(fitted: dict[str, SimpletronClassifier], data: Data, way: str) -> None:
    X, _, few = data
    clf, unlabeled = fitted[way], few < 0
    np.testing.assert_allclose(clf.label_distributions_[unlabeled], clf.predict_proba(X)[unlabeled], atol=2e-3)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)
    best = clf.class_weights_.sum(axis=1)
    np.testing.assert_allclose(best[best > 0], 1, rtol=1e-3)


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_forms_of_the_same_rows(fitted: dict[str, SimpletronClassifier], data: Data, way: str) -> None:
    X, _, few = data
    clf, expected = fitted[way], fitted[way].predict_proba(X)
    floats = X.astype(np.float32)
    np.testing.assert_array_equal(clf.predict_proba(floats), expected)
    np.testing.assert_array_equal(fast(labeling=way).fit(floats, few).predict_proba(X), expected)
    thin = fast(labeling=way).fit(sparse.csr_array(floats), few)
    assert np.mean(abs(thin.predict_proba(sparse.csr_array(floats)) - expected).max(axis=1) > 0.01) < 0.002
    assert list(thin.votes_) == list(clf.votes_)
    np.testing.assert_allclose(list(thin.votes_.values()), list(clf.votes_.values()), atol=0.02)


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_threads_do_not_change_a_bit(fitted: dict[str, SimpletronClassifier], data: Data, way: str) -> None:
    X, _, few = data
    clf, many = fitted[way], fast(labeling=way, n_jobs=3).fit(X, few)
    np.testing.assert_array_equal(many.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(many.label_distributions_, clf.label_distributions_)
    assert many.votes_ == clf.votes_
    assert many.expected_accuracy_ == clf.expected_accuracy_


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_the_size_of_blocks_does_not_matter(fitted: dict[str, SimpletronClassifier], data: Data, way: str) -> None:
    clf, X = fitted[way], data[0][:200]
    expected = clf.predict_proba(X)
    for size in (1, 7, 64):
        blocks = [clf.predict_proba(X[start : start + size]) for start in range(0, 200, size)]
        np.testing.assert_array_equal(np.concatenate(blocks), expected)


@pytest.mark.parametrize("way", LINEAR)
def test_weights_are_repetitions(
    data: Data, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """With one form of regression: the shares of several depend on which of the equal rows are held out together."""
    monkeypatch.setattr("tnesi.labeling.voting.FORMS", FORMS[:1])
    X, y = data[0][:400], data[1][:400]
    few, count = few_labels(y, 5, rng), rng.integers(0, 4, 400)
    count[few >= 0] += 1
    weighted = fast(labeling=way).fit(X, few, sample_weight=count)
    repeated = fast(labeling=way).fit(np.repeat(X, count, axis=0), np.repeat(few, count))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_only_proportions_count(fitted: dict[str, SimpletronClassifier], data: Data, way: str) -> None:
    X = data[0][:200].astype(np.float64)
    expected = fitted[way].predict_proba(X)
    for factor in (1 / 255, 1000):
        np.testing.assert_allclose(fitted[way].predict_proba(factor * X), expected, atol=1e-3)


def test_logistic_regression_is_that_of_scikit_learn(fitted: dict[str, SimpletronClassifier], data: Data) -> None:
    """Its forms are averaged: roots of shares or shares, whose variance is 10 or 1 in total."""
    X, _, few = data
    layer = fitted["logistic"].model_.layer
    assert layer is not None
    forms: dict[Any, Any] = {}
    shares = X / X.sum(axis=1, keepdims=True)
    for features in (np.sqrt(shares), shares):
        for variance in (10, 1):
            scaled = features * np.sqrt(variance / features.var(axis=0).sum())
            model = LogisticRegression().fit(scaled[few >= 0], few[few >= 0])
            forms[len(forms)] = model.predict_proba(scaled)
    assert len(layer.votes) > 1
    of_votes = [vote.classes.posterior(X) for vote in layer.votes]  # type: ignore[arg-type]
    for t in of_votes:
        assert min(abs(t - expected).max() for expected in forms.values()) < 5e-3
    expected = sum(vote.share * t for vote, t in zip(layer.votes, of_votes, strict=True))
    np.testing.assert_allclose(fitted["logistic"].predict_proba(X), expected, atol=1e-6)


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_pickles(fitted: dict[str, SimpletronClassifier], data: Data, way: str) -> None:
    X, y, _ = data
    again = pickle.loads(pickle.dumps(fitted[way]))
    np.testing.assert_array_equal(again.predict_proba(X), fitted[way].predict_proba(X))
    assert again.votes_ == fitted[way].votes_
    other = few_labels(y, 2, np.random.default_rng(3))
    expected = fast(labeling=way).fit(X, other)
    np.testing.assert_array_equal(again.fit_labels(other).predict_proba(X), expected.predict_proba(X))
    assert again.votes_ == expected.votes_


def test_pickles_do_not_need_files_of_rows(data: Data, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in a file are not stored; other labels are then learned from activities only."""
    for module in (spool, blocks):
        monkeypatch.setattr(module, "IN_MEMORY", 0)
    X, _, few = data
    np.save(tmp_path / "rows.npy", X)
    clf = fast().fit(open_data(tmp_path / "rows.npy").rows, few)
    assert clf.fit_labels(few).labeling_ == "vote"
    packed, expected = pickle.dumps(clf), clf.predict_proba(X)
    del clf  # and its temporary file
    again = pickle.loads(packed)
    np.testing.assert_array_equal(again.predict_proba(X), expected)
    assert again.fit_labels(few).labeling_ in ("clusters", "spreading")


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_all_zero_rows_count_as_rows_of_ones(data: Data, way: str) -> None:
    X, few = data[0].copy(), data[2]
    zero = np.flatnonzero(few < 0)[:3]
    X[zero] = 0
    with pytest.warns(UserWarning, match="zero"):
        clf = fast(labeling=way).fit(X, few)
    t = clf.predict_proba(np.vstack([np.zeros((1, 64)), np.ones((1, 64))]))
    np.testing.assert_allclose(t[0], t[1], atol=1e-5)
    np.testing.assert_allclose(clf.label_distributions_[zero], np.tile(t[1], (3, 1)), atol=2e-3)


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_two_classes(data: Data, way: str) -> None:
    X, y, _ = data
    for n in (1, 5):
        clf = fast(labeling=way).fit(X, few_labels(y == 0, n, np.random.default_rng(0)), None)
        assert clf.predict_proba(X).shape == (len(X), 2)
        two = np.isin(y, [0, 6])
        few = np.where(two, few_labels(np.where(two, y, 99), n, np.random.default_rng(0)), -1)
        alone = fast(labeling=way).fit(X[two], few[two])
        assert alone.score(X[two], y[two]) > 0.9


def test_many_classes_with_one_label_each() -> None:
    """No label can be held out: the votes depend on how often the methods agree."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.3), 30)
    y = rng.permutation(np.repeat(np.arange(30), 30))
    X = np.stack([rng.multinomial(100, topics[k]) for k in y])
    clf = SimpletronClassifier(random_state=0).fit(X, few_labels(y, 1, rng))
    assert clf.classes_.size == 30
    assert 0.05 <= clf.expected_accuracy_ <= 0.99
    assert clf.score(X, y) > 0.85  # over 20 seeds 1.00 +- 0.00
    assert np.isfinite(clf.predict_proba(X)).all()


def test_all_rows_labeled(data: Data) -> None:
    X, y, _ = data
    clf = fast().fit(X[:1400], y[:1400])
    assert clf.votes_.keys() <= {"supervised", "logistic"}
    assert clf.score(X[1400:], y[1400:]) > 0.85
    assert clf.expected_accuracy_ == pytest.approx(clf.score(X[1400:], y[1400:]), abs=0.1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_a_file_keeps_every_bit(
    fitted: dict[str, SimpletronClassifier], data: Data, tmp_path: Any, way: str, training: bool
) -> None:
    X, _, few = data
    save(fitted[way], tmp_path / "model.tnesi", training=training)
    loaded = load(tmp_path / "model.tnesi")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted[way].predict_proba(X))
    assert loaded.votes_ == fitted[way].votes_
    assert loaded.expected_accuracy_ == fitted[way].expected_accuracy_
    assert loaded.labeling_ == fitted[way].labeling_
    if not training:
        return
    np.testing.assert_array_equal(loaded.label_distributions_, fitted[way].label_distributions_)
    if way == "auto":  # a file has the activities only
        assert loaded.fit_labels(few).labeling_ in ("clusters", "spreading")
        assert loaded.votes_ == {}
        return
    with pytest.raises(InvalidParameterError, match=f"labeling='{way}' needs the rows themselves"):
        loaded.fit_labels(few)


# Streams


def test_a_stream_votes(data: Data) -> None:
    X, y, few = data
    clf = fast()
    for start in range(0, len(X), 600):
        clf.partial_fit(X[start : start + 600], few[start : start + 600])
    assert clf.settle().labeling_ == "vote"
    assert sum(clf.votes_.values()) == pytest.approx(1)
    assert clf.score(X, y) > 0.7  # over 20 draws of labels 0.91 +- 0.02


@pytest.mark.parametrize("way", LINEAR)
def test_a_fully_labeled_stream_learns_its_labels(data: Data, way: str) -> None:
    X, y, _ = data
    clf = fast(labeling=way).partial_fit(X[:900], y[:900]).partial_fit(X[900:], y[900:]).settle()
    assert clf.labeling_ == way
    assert clf.score(X, y) > 0.8


@pytest.mark.parametrize("way", ["auto", *LINEAR])
def test_a_class_without_labels_is_never_predicted(data: Data, way: str) -> None:
    X, _, few = data
    few = np.where(few == 4, -1, few)
    clf = fast(labeling=way).partial_fit(X, few, classes=np.arange(10))
    t = clf.predict_proba(X)
    assert clf.classes_.tolist() == list(range(10))
    assert (t[:, 4] == 0).all()
    assert (clf.label_distributions_[:, 4] == 0).all()
    np.testing.assert_allclose(t.sum(axis=1), 1)
    others = np.delete(np.arange(10), 4)
    without = fast(labeling=way).partial_fit(X, few)
    np.testing.assert_allclose(t[:, others], without.predict_proba(X), atol=1e-5)


# The vote beside its parts


def documents(rng: np.random.Generator) -> tuple[Any, Any]:
    """Classes are clusters: every class has its own words."""
    topics = 0.5 / 30 + 0.5 * rng.dirichlet(np.full(30, 0.3), 4)
    y = rng.integers(4, size=500)
    return np.stack([rng.multinomial(60, topics[k]) for k in y]), y


def customers(rng: np.random.Generator) -> tuple[Any, Any]:
    """Classes are not clusters: they shift a few columns, and much else varies without them."""
    y = rng.integers(2, size=500)
    other = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 30))
    shift = np.where(np.arange(30) < 10, 1.0, 0.0) * (y[:, None] - 0.5)
    return rng.poisson(np.exp(1.5 + 0.8 * other / np.sqrt(3) + shift)) + np.eye(1, 30, dtype=int), y


@pytest.mark.slow
def test_the_vote_is_never_far_from_the_best() -> None:
    """Each single method is far behind the best one on some data; the vote is not."""
    behind = []
    for make in (documents, customers):
        for n in (1, 10):
            errors = np.zeros((20, 1 + len(WAYS)))
            for seed in range(20):
                rng = np.random.default_rng(seed)
                X, y = make(rng)
                few = few_labels(y, n, rng)
                clf = SimpletronClassifier(PoissonMixture(60, max_iter=10, tol=0), random_state=seed).fit(X, few)
                scores = [clf.set_params(labeling=way).fit_labels(few).score(X, y) for way in ["auto", *WAYS]]
                errors[seed] = 100 - 100 * np.array(scores)
            mean = errors.mean(axis=0)
            behind.append(mean - mean[1:].min())
    # points behind the best way: documents 0.4 and 0.1 with 1 and 10 labels per class, customers -0.1 and 1.7, with
    # standard errors of at most 1.5
    of_vote, *of_ways = np.max(behind, axis=0)
    assert of_vote < 6
    assert min(of_ways) > 2.5  # clusters 27, spreading 11, leading 41, logistic 4.6 (of documents; se 0.5)
