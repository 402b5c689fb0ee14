"""Linear classes from stored rows: which rows they learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tnesi.execution.store import ArrayStore
from tnesi.labeling import features as features_module
from tnesi.labeling.features import Features
from tnesi.labeling.logistic import Form
from tnesi.model.linear_classes import LinearClasses


@pytest.fixture(scope="module")
def documents() -> tuple[Any, Any]:
    """Return rows of four kinds as uint8, and the kinds."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.3), 4)
    truth = rng.integers(4, size=400).astype(np.int32)
    return np.stack([rng.multinomial(40, topics[k]) for k in truth]).astype(np.uint8), truth


def features_of(X: Any, weight: Any = None, seed: int = 0) -> Features:
    return Features(ArrayStore(X), weight, seed)


def learned(features: Features, way: str, points: Any, label: Any) -> LinearClasses:
    if way == "lead":
        return features.lead(points, label, 4)
    return features.regress(points, label, 4, Form("roots" if way == "roots" else "shares", 10.0))


def some(truth: Any, n: int) -> Any:
    """Return n rows of each class, in ascending order."""
    rng = np.random.default_rng(1)
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(truth == k))[:n] for k in range(4)]))


def test_few_rows_are_all_in_the_sample(documents: tuple[Any, Any]) -> None:
    np.testing.assert_array_equal(features_of(documents[0]).sample, np.arange(400))


@pytest.mark.parametrize(("stored", "size"), [(1, 20_000), (200, 5_242), (50_000, 2_000)])
def test_the_sample_has_a_limited_number_of_values(stored: int, size: int) -> None:
    """Fewer wide rows are used; the same seed draws the same ones."""

    class Store:
        n_rows, row_values, in_memory = 30_000, float(stored), True

        def read(self, place: slice) -> Any:
            raise AssertionError

        def take(self, index: Any) -> Any:
            raise AssertionError

    one, again, other = (Features(Store(), None, seed).sample for seed in (3, 3, 4))
    assert one.size == size
    assert (np.diff(one) > 0).all()
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@pytest.mark.parametrize("way", ["lead", "roots", "shares"])
@pytest.mark.parametrize("weighted", [False, True])
def test_forms_of_the_same_rows(documents: tuple[Any, Any], way: str, weighted: bool) -> None:
    X, truth = documents
    weight = np.random.default_rng(2).integers(1, 4, 400).astype(np.float32) if weighted else None
    points = some(truth, 2)
    expected = learned(features_of(X, weight), way, points, truth[points]).posterior(X)
    floats = X.astype(np.float32)
    np.testing.assert_array_equal(
        learned(features_of(floats, weight), way, points, truth[points]).posterior(floats), expected
    )
    thin = sparse.csr_array(floats)
    found = learned(features_of(thin, weight), way, points, truth[points]).posterior(thin)
    np.testing.assert_allclose(found, expected, atol=5e-3)


@pytest.mark.parametrize("way", ["lead", "roots", "shares"])
def test_weights_are_repetitions(documents: tuple[Any, Any], way: str) -> None:
    X, truth = documents
    count = np.random.default_rng(2).integers(1, 4, 400)
    points = some(truth, 3)
    weighted = learned(features_of(X, count.astype(np.float32)), way, points, truth[points])
    given = np.zeros(400, bool)
    given[points] = True
    repeated_points = np.flatnonzero(np.repeat(given, count))
    repeated = features_of(np.repeat(X, count, axis=0))
    other = learned(repeated, way, repeated_points, np.repeat(truth, count)[repeated_points])
    np.testing.assert_allclose(weighted.posterior(X), other.posterior(X), atol=5e-3)


@pytest.mark.parametrize("way", ["lead", "roots", "shares"])
def test_labeled_rows_outside_the_sample_count(
    documents: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(features_module, "_FEWEST_ROWS", 50)
    monkeypatch.setattr(features_module, "_MOST_ROWS", 50)
    X, truth = documents
    features = features_of(X)
    outside = np.setdiff1d(np.arange(400), features.sample)
    points = outside[some(truth[outside], 1)]
    classes = learned(features, way, points, truth[points])
    np.testing.assert_array_equal(classes.posterior(X[points]).argmax(axis=1), truth[points])
    assert np.mean(classes.posterior(X).argmax(axis=1) == truth) > 0.95  # over 20 seeds 1.000 +- 0.000


@pytest.mark.parametrize("way", ["lead", "roots", "shares"])
def test_a_rare_class_stays_where_labels_are_too_many(
    documents: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Only a random part of very many labels is used, but some of each class."""
    monkeypatch.setattr(features_module, "_MOST_LABELS", 60)
    X, truth = documents
    kept = np.delete(np.arange(400), np.flatnonzero(truth == 1)[1:])
    for seed in range(5):
        classes = learned(features_of(X[kept], seed=seed), way, np.arange(kept.size), truth[kept])
        assert classes.n_classes == 4
        guess = classes.posterior(X[kept]).argmax(axis=1)
        assert np.mean(guess == truth[kept]) > 0.8  # over 100 seeds 0.999 +- 0.010
        if way == "lead":
            assert guess[truth[kept] == 1].tolist() == [1]


def test_what_needs_no_labels_does_not_depend_on_the_order_of_calls(documents: tuple[Any, Any]) -> None:
    X, truth = documents
    points, later = some(truth, 1), some(truth, 5)
    one, other = features_of(X), features_of(X)
    first = learned(one, "lead", points, truth[points])
    learned(other, "roots", later, truth[later])
    other.lead(later, truth[later] % 2, 2)
    np.testing.assert_array_equal(learned(other, "lead", points, truth[points]).weights, first.weights)
