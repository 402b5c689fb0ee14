"""Accuracy on MNIST with the defaults: the figures that a release must reach (``make bench`` takes more seeds)."""

from __future__ import annotations

import numpy as np
import pytest

from tnesi import SimpletronClassifier
from tnesi.data import Data, few_labels
from tnesi.search.exact import ExactSearch

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fitted(mnist: Data) -> SimpletronClassifier:
    return SimpletronClassifier(random_state=0).fit(mnist.X, mnist.y)


def error(classifier: SimpletronClassifier, mnist: Data) -> float:
    return 100 * (1 - float(classifier.score(mnist.test.X, mnist.test.y)))


def test_all_labels(fitted: SimpletronClassifier, mnist: Data) -> None:
    assert fitted.mixture_.n_components_ == 10_000
    assert fitted.mixture_.converged_
    assert error(fitted, mnist) < 3.2


def test_neighbourhood_prediction_is_as_good_as_exact(fitted: SimpletronClassifier, mnist: Data) -> None:
    found = error(fitted, mnist)
    mixture = fitted.mixture_
    neighbours, mixture._search = mixture._search, ExactSearch(mixture.truncation_, 2)
    try:
        assert found == pytest.approx(error(fitted, mnist), abs=0.15)  # -0.03 to 0.11, by seed
    finally:
        mixture._search = neighbours


@pytest.mark.parametrize(("per_class", "most"), [(10, 4.2), (300, 3.8)])
def test_few_labels(fitted: SimpletronClassifier, mnist: Data, per_class: int, most: float) -> None:
    fitted.fit_labels(few_labels(mnist.y, per_class, np.random.default_rng(0)))
    assert error(fitted, mnist) < most
