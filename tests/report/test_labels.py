"""The result of labeling in words."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.errors import DoubtfulResultWarning
from tnesi.report.labels import METHODS, Doubt, class_names, class_shares, doubts, second_layer_lines


@pytest.fixture
def model(digits: Any) -> SimpletronClassifier:
    X, y = digits
    few = np.where((np.arange(len(y)) < 200) & (y < 8), y, -1)
    return SimpletronClassifier(PoissonMixture(60, row_sum=180), unknown_classes=2, random_state=0).fit(X, few)


def test_doubts_are_pairs(model: SimpletronClassifier) -> None:
    sure = np.array([0.9, 0.5, 1.0, 0.3, 0.79, 0.5, 0.3, 0.8])
    model._confident = sure, np.array([1, 5, 0, 6, 3, 1, 3, 0])
    assert doubts(model) == [Doubt(3, 6, 0.3), Doubt(1, 5, 0.5), Doubt(4, 3, 0.79)]
    said = second_layer_lines(model)
    assert "3 and 6 may be swapped (confidence 0.30): label one more row of each." in said
    model._confident = np.full(8, 0.1), np.array([7, 0, 1, 2, 3, 4, 5, 6])
    assert second_layer_lines(model)[-1] == "3 more pairs of classes may be swapped."


def test_unknown_classes_and_sizes(model: SimpletronClassifier) -> None:
    assert class_names(model) == [*"01234567", "unknown"]
    said = " ".join(second_layer_lines(model))
    assert "The labels name clusters of similar rows (clusters)." in said
    assert f"{100 * model.unknown_share_:.1f} % of the rows belong to unknown classes." in said
    shares = class_shares(model)
    assert shares is not None
    names, counts = np.unique(model.transduction_, return_counts=True)
    np.testing.assert_allclose(shares[:-1], counts[1:] / counts.sum())  # the unknown are -1, and the last class
    assert names.tolist() == [-1, *range(8)]
    assert f"The smallest class has {100 * shares.min():.1f} % of the rows (" in said
    assert f"the largest {100 * shares.max():.1f} % of the rows (" in said


@pytest.mark.parametrize("method", ["self-labeling", "spreading", "supervised", ""])
def test_methods(model: SimpletronClassifier, method: str) -> None:
    value = replace(model.model_, layer=replace(model.model_.layer, method=method))
    assert len(second_layer_lines(SimpletronClassifier.from_model(value, model.mixtures_))) >= 2
    value = replace(value, rows=None, label=None)  # as in a file without the training rows
    assert len(second_layer_lines(SimpletronClassifier.from_model(value, model.mixtures_))) == 1


def test_a_dominant_class_is_reported() -> None:
    """A class that takes most rows although it has few labels; not one that has most of the labels."""
    X = np.random.default_rng(0).poisson(np.repeat([[9, 1, 1], [1, 9, 1]], [190, 10], axis=0)) + 1
    mixture = PoissonMixture(4, truncation=None, row_sum=40, random_state=0)
    balanced, fair = np.full(200, -1), np.r_[np.zeros(190), np.ones(10)].astype(int)
    balanced[:2], balanced[-2:] = 0, 1
    with pytest.warns(DoubtfulResultWarning, match="of the rows became '0'"):
        model = SimpletronClassifier(mixture, labeling="supervised", random_state=0).fit(X, balanced)
    assert any(re.match(r"Warning: .* % of the rows became '0'", line) for line in second_layer_lines(model))
    assert not any("Warning" in line for line in second_layer_lines(model, with_alarms=False))
    said = second_layer_lines(SimpletronClassifier(mixture, labeling="supervised", random_state=0).fit(X, fair))
    assert not any("Warning" in line for line in said)


def test_votes_are_named_with_their_shares(digits: Any) -> None:
    X, y = digits
    few = np.where(np.arange(len(y)) < 100, y, -1)
    clf = SimpletronClassifier(PoissonMixture(60, row_sum=180, max_iter=5, tol=0), random_state=0).fit(X, few)
    said = second_layer_lines(clf)[0]
    parts = [f"{method} {100 * share:.0f} %" for method, share in clf.votes_.items()]
    assert said == f"Several methods vote on the class of a row: {', '.join(parts)}."
    alone = second_layer_lines(clf.set_params(labeling="logistic").fit_labels(few))[0]
    assert alone == METHODS["logistic"]
    assert all(line.endswith(".") for line in METHODS.values())
