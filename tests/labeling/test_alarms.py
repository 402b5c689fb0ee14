"""Warnings about results that should not be trusted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture
from tnesi.labeling.alarms import alarms
from tnesi.model.classes import FieldClasses
from tnesi.model.classifier_model import ClassifierModel, SecondLayer


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
