"""The vote of several methods: held-out labels, weights, and the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax

from tnesi import PoissonMixture
from tnesi.execution.store import ArrayStore
from tnesi.labeling import voting
from tnesi.labeling.features import Features
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.left_out import LeftOut
from tnesi.labeling.voting import Member, Trial, Voted, vote
from tnesi.model.classes import FieldClasses, sharpened
from tnesi.model.classifier_model import SecondLayer
from tnesi.model.linear_classes import LinearClasses

WAYS = {"clusters", "spreading", "leading", "logistic"}


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, sparse.csr_array]:
    """Return rows of four kinds that overlap, the kinds, and activities of a mixture."""
    rng = np.random.default_rng(0)
    topics = 0.6 / 30 + 0.4 * rng.dirichlet(np.full(30, 0.3), 4)
    truth = rng.integers(4, size=600).astype(np.int32)
    X = np.stack([rng.multinomial(30, topics[k]) for k in truth]).astype(np.float32)
    s = PoissonMixture(50, row_sum=90, max_iter=10, tol=0, random_state=0).fit(X).transform(X)
    return X, truth, sparse.csr_array(s)


def some(truth: Any, n: int, seed: int = 0) -> Any:
    label, rng = np.full(truth.size, -1, np.int32), np.random.default_rng(seed)
    for k in np.unique(truth):
        label[rng.permutation(np.flatnonzero(truth == k))[:n]] = k
    return label


def voted(data: tuple[Any, Any, Any], label: Any, n_classes: int = 4, n_threads: int = 1) -> Voted:
    X, _, s = data
    features = Features(ArrayStore(X), None, 0)
    return vote(Labeler(s, [s.shape[1]], None, 0, n_threads, features), features, label, n_classes)


def posterior(found: Voted, data: tuple[Any, Any, Any], n_classes: int = 4) -> Any:
    X, _, s = data
    fields = FieldClasses.even(s.shape[1], n_classes)
    layer = SecondLayer(fields, np.arange(n_classes), "vote", votes=found.votes, sharpness=found.sharpness)
    return layer.posterior(s, X)


@pytest.mark.parametrize(("n", "least"), [(1, 0.35), (2, 0.6), (5, 0.7), (60, 0.8)])
def test_votes(data: tuple[Any, Any, Any], n: int, least: float) -> None:
    """Over 20 seeds 0.84 +- 0.12, 0.91 +- 0.04, 0.93 +- 0.03 and 0.95 +- 0.02 of the rows are right; chance is 0.25."""
    _, truth, _ = data
    found = voted(data, some(truth, n))
    share = [one.share for one in found.votes]
    assert {one.method for one in found.votes} <= WAYS
    assert share == sorted(share, reverse=True)
    assert sum(share) == pytest.approx(1)
    of_method = {method: sum(one.share for one in found.votes if one.method == method) for method in WAYS}
    assert all(value == 0 or value > 0.005 for value in of_method.values())
    assert found.n_tested == (0 if n == 1 else 4 * n)
    assert 0 <= found.agreement <= 1
    assert 0.05 <= found.accuracy <= 0.99
    t = posterior(found, data)
    assert np.mean(t.argmax(axis=1) == truth) > least
    assert t.max(axis=1).mean() == pytest.approx(found.accuracy, abs=0.01)  # all rows are in the sample


def test_votes_are_an_average(data: tuple[Any, Any, Any]) -> None:
    """The posterior is the mean of all votes, sharpened: computed here without the layer."""
    X, truth, s = data
    draws = (voted(data, some(truth, 3, seed)) for seed in range(20))
    found = next(one for one in draws if len({isinstance(vote.classes, LinearClasses) for vote in one.votes}) == 2)
    log = 0
    for one in found.votes:
        log = log + one.share * one.classes.posterior(X if isinstance(one.classes, LinearClasses) else s)
    power = log**found.sharpness
    np.testing.assert_allclose(posterior(found, data), power / power.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 4])
def test_threads_do_not_change_a_bit(data: tuple[Any, Any, Any], n: int) -> None:
    label = some(data[1], n)
    one, many = voted(data, label), voted(data, label, n_threads=3)
    np.testing.assert_array_equal(posterior(one, data), posterior(many, data))
    assert (one.sharpness, one.accuracy, one.agreement) == (many.sharpness, many.accuracy, many.agreement)


def test_the_order_of_classes_does_not_matter(data: tuple[Any, Any, Any]) -> None:
    label, other = some(data[1], 1), np.array([2, 0, 3, 1, -1], np.int32)
    one, renamed = voted(data, label), voted(data, other[label])
    assert [vote.method for vote in one.votes] == [vote.method for vote in renamed.votes]
    assert renamed.accuracy == pytest.approx(one.accuracy, abs=1e-3)
    t, of_other = posterior(one, data), posterior(renamed, data)
    np.testing.assert_allclose(of_other[:, other[:4]], t, atol=0.01)


def test_all_rows_labeled(data: tuple[Any, Any, Any]) -> None:
    found = voted(data, data[1])
    assert {one.method for one in found.votes} <= {"supervised", "logistic"}
    assert np.mean(posterior(found, data).argmax(axis=1) == data[1]) > 0.85


def test_many_classes_with_one_label_each(data: tuple[Any, Any, Any]) -> None:
    label = np.full(600, -1, np.int32)
    label[:30] = np.random.default_rng(0).permutation(30)
    found = voted(data, label, 30)
    assert found.n_tested == 0
    t = posterior(found, data, 30)
    assert t.shape == (600, 30)
    assert np.isfinite(t).all()


# Held-out labels


def remember(seen: list[Any]) -> Any:
    """Return a learner that predicts the labels of its training rows, and class 0 for all others."""

    def learn(points: Any, label: Any, n_classes: int) -> LinearClasses:
        seen.append(points)
        weights = np.zeros((40, n_classes), np.float32)
        weights[:, 0] = 1
        weights[points, label] += 10
        return LinearClasses("shares", weights, np.zeros(n_classes, np.float32))

    return learn


@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_label_is_held_out_once(monkeypatch: pytest.MonkeyPatch, n_threads: int) -> None:
    """Row i is the i-th unit vector: held-out rows are predicted as class 0."""
    rows, seen = np.eye(40, dtype=np.float32), []
    label = np.where(np.arange(40) < 30, np.arange(40) % 5, -1).astype(np.int32)
    label[29] = -1  # class 4 has five labels, the others six
    features = Features(ArrayStore(rows), None, 0)
    test = LeftOut.of(label, 5, 0)
    monkeypatch.setattr(features, "lead", remember(seen))
    trial = voting._lead(features, test, rows, n_threads)
    assert (trial.held.argmax(axis=1) == 0).all()
    np.testing.assert_allclose(trial.held.sum(axis=1), 1)
    np.testing.assert_array_equal(trial.sample[test.points].argmax(axis=1), test.label)
    assert sorted(len(points) for points in seen) == [*sorted(29 - np.bincount(test.part)), 29]
    learned_from = np.zeros(40, int)
    for points in seen:
        learned_from[points] += 1
    assert (learned_from[test.points] == len(seen) - 1).all()  # all but the round that holds it out
    assert len(test.rounds()) == len(seen) - 1 == 3


def test_a_single_label_of_a_class_is_never_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, seen = np.eye(40, dtype=np.float32), []
    label = np.full(40, -1, np.int32)
    label[:7] = [0, 0, 0, 1, 1, 1, 2]
    test = LeftOut.of(label, 3, 0)
    features = Features(ArrayStore(rows), None, 0)
    monkeypatch.setattr(features, "lead", remember(seen))
    voting._lead(features, test, rows, 1)
    assert all(6 in points for points in seen)


# How votes are combined


def trial(method: str, held: Any, sample: Any) -> Trial:
    classes = LinearClasses("shares", np.zeros((2, 2), np.float32), np.zeros(2, np.float32))
    return Trial(method, [Member(classes, held, sample)])


def combined(*accuracies: float, n: int = 200, agreement: float = 0.0, n_rows: int = 5000) -> Voted:
    """Combine methods that predict the given shares of n held-out labels of each of two classes."""
    rng = np.random.default_rng(0)
    label = np.tile(np.arange(2), n).astype(np.int32)
    test = LeftOut(label, 2, np.arange(2 * n), label, np.zeros(2 * n, int))
    truth, ways = rng.integers(2, size=1000), ["clusters", "spreading", "leading", "logistic"]
    trials = []
    for method, accuracy in zip(ways, accuracies, strict=False):
        right = np.arange(2 * n) < accuracy * 2 * n
        held = np.eye(2)[np.where(right, label, 1 - label)]
        sample = np.where(rng.random(1000) < accuracy, truth, 1 - truth)
        trials.append(trial(method, held, 0.1 + 0.8 * np.eye(2)[sample]))
    return voting._combine(trials, test, agreement, n_rows)


def test_better_ways_have_larger_shares() -> None:
    found = combined(0.6, 0.9, 0.8, 0.7, n=5)
    assert [one.method for one in found.votes] == ["spreading", "leading", "logistic", "clusters"]


def test_shares_without_held_out_labels_are_those_of_the_accuracies() -> None:
    label = np.arange(2, dtype=np.int32)
    test = LeftOut(label, 2, label, label, np.full(2, -1))
    odds = np.array([9.0, 4.0, 7 / 3, 1.5]) ** 2
    held = [np.full((2, 2), 0.5)] * 4
    np.testing.assert_allclose(voting._shares(np.array([0.9, 0.8, 0.7, 0.6]), held, test), odds / odds.sum())


def test_shares_maximize_the_likelihood_of_held_out_labels() -> None:
    """Compared with a general optimizer."""
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=90).astype(np.int32)
    test = LeftOut(label, 3, np.arange(90), label, np.zeros(90, int))
    held = [rng.dirichlet(np.ones(3), 90) for _ in range(3)]
    of_label = np.array([t[np.arange(90), label] for t in held])
    odds = (np.array([0.6, 0.5, 0.7]) / np.array([0.4, 0.5, 0.3])) ** 2
    first = odds / odds.sum()

    def loss(z: Any) -> float:
        w = softmax(z)
        return float(-np.log(w @ of_label).sum() - 30 * first @ np.log(w))

    best = softmax(minimize(loss, np.zeros(3), options={"gtol": 1e-8}).x)
    found = voting._shares(np.array([0.6, 0.5, 0.7]), held, test)
    np.testing.assert_allclose(found, best, atol=2e-3)
    assert abs(found - first).max() > 0.02


@pytest.mark.parametrize("n", [1, 6, 200])
def test_forms_of_regression(n: int) -> None:
    """Where only a small share tells the classes apart, square roots of shares vote, and shares do not."""
    rng = np.random.default_rng(0)
    truth = np.tile(np.arange(2), 300).astype(np.int32)
    small = np.where(truth, 0.012, 0.003) * rng.uniform(0.6, 1.4, 600)
    X = np.column_stack([rng.dirichlet(np.full(5, 3.0), 600), small]).astype(np.float32)
    label = np.where(np.arange(600) < 2 * n, truth, -1).astype(np.int32)
    features = Features(ArrayStore(X), None, 0)
    test = LeftOut.of(label, 2, 0)
    one, many = (voting.regress(features, test, X, n_threads) for n_threads in (1, 3))
    np.testing.assert_array_equal(one.sample, many.sample)
    np.testing.assert_array_equal(one.held, many.held)
    shares: dict[str, float] = {}
    for member in one.members:
        assert isinstance(member.classes, LinearClasses)
        shares[member.classes.transform] = shares.get(member.classes.transform, 0.0) + member.share
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["roots"] == (0.5 if n == 1 else pytest.approx(1, abs=0.5 if n == 6 else 1e-3))
    if n == 200:
        assert np.mean(one.sample.argmax(axis=1) == truth) > 0.95  # over 6 seeds 1.000 +- 0.000


def test_few_labels_choose_in_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many labels, one round is enough to choose the forms, and only these learn again."""
    rng = np.random.default_rng(0)
    truth = np.tile(np.arange(2), 150).astype(np.int32)
    small = np.where(truth, 0.012, 0.003) * rng.uniform(0.6, 1.4, 300)
    X = np.column_stack([rng.dirichlet(np.full(5, 3.0), 300), small]).astype(np.float32)
    counts = []
    for few in (500, 100):
        seen: list[Any] = []
        features = Features(ArrayStore(X), None, 0)
        learn = features.regress
        monkeypatch.setattr(
            features, "regress", lambda *a, seen=seen, learn=learn, **k: seen.append(a) or learn(*a, **k)
        )
        monkeypatch.setattr(voting, "_FEW_LABELS", few)
        kept = len(voting.regress(features, LeftOut.of(truth, 2, 0), X, 1).members)
        counts.append((len(seen), kept))
    (in_all, kept), (in_first, kept_of_first) = counts
    assert in_all == 3 * 4 + kept
    assert in_first == 4 + 3 * kept_of_first < in_all


def test_a_way_that_is_far_behind_does_not_vote() -> None:
    assert {one.method for one in combined(0.95, 0.97, 0.55, 0.96).votes} == {"clusters", "spreading", "logistic"}


def test_more_held_out_labels_count_more() -> None:
    """With many labels the best method decides; with few, prior odds and agreement matter, too."""
    shares = []
    for n in (2, 20):
        found = combined(0.5, 0.5, 1.0, 0.5, n=n)
        shares.append({one.method: one.share for one in found.votes}["leading"])
    assert shares[0] < 0.9 < 0.98 < shares[1]


def test_the_estimate_is_the_accuracy_on_held_out_labels() -> None:
    assert combined(0.8, 0.8).accuracy == pytest.approx(0.8, abs=0.03)
    assert combined(1.0, 1.0).accuracy == 0.99


def test_the_agreement_of_runs_counts_where_there_are_many_rows() -> None:
    label = np.repeat(np.arange(2), 3).astype(np.int32)
    test = LeftOut(label, 2, np.arange(6), label, np.full(6, -1))
    sample = sharpened(np.random.default_rng(0).dirichlet([1, 1], 500), 3)
    alike = np.r_[sample[:25, ::-1], sample[25:]]
    shares = []
    for named, agreement, n_rows in [
        (alike, 0.99, 5000),
        (alike, 0.99, 500),
        (alike, 0.9, 5000),
        (sample[::-1], 0.99, 5000),  # spreading says something else
    ]:
        ways = [trial("clusters", np.zeros((6, 2)), named), trial("spreading", np.zeros((6, 2)), sample)]
        found = voting._combine(ways, test, agreement, n_rows)
        shares.append({one.method: one.share for one in found.votes}.get("clusters", 0.0))
    assert shares[0] > 0.5
    assert shares[1] == shares[2] < 0.5
    assert shares[3] < 0.1
