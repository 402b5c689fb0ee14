"""Accuracy on MNIST with the defaults: the figures that a release must reach (``make bench`` takes more seeds)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tnesi import SimpletronClassifier, load
from tnesi.data import Data, few_labels
from tnesi.search.exact import ExactSearch

pytestmark = pytest.mark.slow


@pytest.fixture
def learned(mnist_model: Path) -> SimpletronClassifier:
    return load(mnist_model)


def error(classifier: SimpletronClassifier, mnist: Data) -> float:
    return 100 * (1 - float(classifier.score(mnist.test.X, mnist.test.y)))


@pytest.fixture(scope="module")
def with_all_labels(mnist_model: Path, mnist: Data) -> tuple[SimpletronClassifier, float]:
    """Return the classifier learned from all labels, and its error."""
    fitted = load(mnist_model).fit_labels(mnist.y)
    return fitted, error(fitted, mnist)


def test_all_labels(with_all_labels: tuple[SimpletronClassifier, float]) -> None:
    fitted, found = with_all_labels
    assert fitted.mixture_.n_components_ == 10_000
    assert fitted.mixture_.converged_
    assert found < 3.2


def test_neighborhood_prediction_is_as_good_as_exact(
    with_all_labels: tuple[SimpletronClassifier, float], mnist: Data
) -> None:
    fitted, found = with_all_labels
    mixture = replace(fitted.mixture_.model_, search=ExactSearch(fitted.mixture_.truncation_, 2))
    exact = SimpletronClassifier.from_model(replace(fitted.model_, mixtures=(mixture,)), fitted.mixtures_)
    assert found == pytest.approx(error(exact, mnist), abs=0.15)  # -0.03 to 0.11, by seed


@pytest.mark.parametrize(("per_class", "most"), [(10, 4.2), (300, 3.8)])
def test_few_labels(learned: SimpletronClassifier, mnist: Data, per_class: int, most: float) -> None:
    fitted = learned.fit_labels(few_labels(mnist.y, per_class, np.random.default_rng(0)))
    assert error(fitted, mnist) < most


def test_ten_questions(learned: SimpletronClassifier, mnist: Data) -> None:
    """The rows that `suggest` returns cover all classes."""
    y = np.full(len(mnist.y), -1)
    rows = [one.row for one in learned.suggest(10)]
    y[rows] = mnist.y[rows]
    fitted = learned.fit_labels(y)
    assert fitted.classes_.size == 10
    assert error(fitted, mnist) < 4.6
