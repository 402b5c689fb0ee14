"""Results that look doubtful are reported, each for its own reason; sound ones are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.errors import DoubtfulResultWarning
from tnesi.labeling.alarms import alarms, contradicted
from tnesi.model.classes import FieldClasses
from tnesi.model.classifier_model import ClassifierModel, SecondLayer
from tnesi.report.labels import second_layer_lines


def fast(**parameters: Any) -> SimpletronClassifier:
    return SimpletronClassifier(PoissonMixture(80, row_sum=180, max_iter=5, tol=0), random_state=0, **parameters)


@pytest.fixture(scope="module")
def all_digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def halves() -> tuple[Any, Any]:
    """Rows of two clear clusters, and classes that have nothing to do with them but with another column."""
    rng = np.random.default_rng(0)
    cluster, y = rng.integers(2, size=(2, 600))
    X = rng.poisson(np.where(np.arange(20) % 2 == cluster[:, None], 30, 10), (600, 20))
    X[:, 0] = np.where(y, 28, 14)
    return X, y


@pytest.mark.parametrize("n", [3, 10])
def test_sound_results_raise_no_alarm(all_digits: tuple[Any, Any], n: int) -> None:
    X, y = all_digits
    for seed in range(3):
        clf = fast().fit(X, few_labels(y, n, np.random.default_rng(seed)))
        assert alarms(clf.model_) == []


@pytest.mark.parametrize(
    ("labeling", "reason"),
    [("clusters", "labels contradict confident"), ("clusters", "plain classifier"), ("leading", "plain classifier")],
)
def test_classes_that_are_no_clusters(halves: tuple[Any, Any], labeling: Any, reason: str) -> None:
    X, y = halves
    few = few_labels(y, 20, np.random.default_rng(0))
    with pytest.warns(DoubtfulResultWarning, match=reason):
        clf = fast(labeling=labeling).fit(X, few)
    assert clf.score(X, y) < 0.85
    assert any(line.startswith("Warning") and reason in line for line in second_layer_lines(clf))
    sound = clf.set_params(labeling="auto").fit_labels(few)
    assert sound.score(X, y) > 0.9
    assert alarms(sound.model_) == []


def test_wrong_labels_are_named(all_digits: tuple[Any, Any]) -> None:
    """A third of the labels are those of other rows."""
    X, y = all_digits
    few = few_labels(y, 10, np.random.default_rng(0))
    points = np.random.default_rng(1).permutation(np.flatnonzero(few >= 0))[:40]
    few[points] = (few[points] + 1) % 10
    with pytest.warns(DoubtfulResultWarning, match=r"of 100 labels contradict confident .* row \d+, \d+, \d+\)"):
        clf = fast(labeling="clusters").fit(X, few)
    assert np.isin(contradicted(clf.model_), points).mean() > 0.8


# The estimate alone


@pytest.fixture(scope="module")
def model(digits: tuple[Any, Any]) -> ClassifierModel:
    mixture = PoissonMixture(4, random_state=0).fit(digits[0][:100]).model_
    layer = SecondLayer(FieldClasses.even(4, 2), np.array(["a", "b"]), "vote", accuracy=0.3)
    return ClassifierModel((mixture,), layer)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ([0, 1, -1, -1], "Up to about 70 % of the predictions may be wrong"),
        ([0, 0, 1, -1], "About 70 % of the predictions are probably wrong"),
        ([0, 1, 1, -1], "About 70 % of the predictions are probably wrong"),
        (None, "Up to about 70 % of the predictions may be wrong"),
    ],
)
def test_several_labels_of_a_class_make_an_estimate_sure(model: ClassifierModel, label: Any, said: str) -> None:
    (alarm,) = alarms(replace(model, label=None if label is None else np.array(label, np.int32)))
    assert alarm.startswith(said)


def test_sound_results_give_no_alarm(model: ClassifierModel) -> None:
    assert model.layer is not None
    assert alarms(replace(model, layer=replace(model.layer, accuracy=0.9))) == []
    assert alarms(replace(model, layer=None)) == []
