"""Calibrated probabilities have the requested certainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.labeling.calibration import sharpness_for


def certainty(t: Any, power: float) -> float:
    log = power * np.log(np.maximum(t, 1e-30))
    sharp = np.exp(log - log.max(axis=1, keepdims=True))
    return float(np.mean(sharp.max(axis=1) / sharp.sum(axis=1)))


@given(st.integers(0, 999), st.integers(2, 12), st.floats(0.01, 5), st.floats(0, 1))
def test_the_mean_of_the_largest_is_the_accuracy(seed: int, n_classes: int, spread: float, accuracy: float) -> None:
    t = np.random.default_rng(seed).dirichlet(np.full(n_classes, spread), 50)
    power = sharpness_for(t, accuracy)
    low, high = certainty(t, 1e-2), certainty(t, 1e4)
    if low < accuracy < high:  # else it cannot be reached
        assert certainty(t, power) == pytest.approx(accuracy, abs=1e-3)
    else:
        assert certainty(t, power) == pytest.approx(low if accuracy <= low else high, abs=1e-3)


def test_it_is_one_for_probabilities_that_are_right() -> None:
    t = np.array([[0.9, 0.1], [0.7, 0.3]])
    assert sharpness_for(t, 0.8) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("t", [np.eye(3), np.full((4, 3), 1 / 3)])
@pytest.mark.parametrize("accuracy", [0.0, 0.6, 1.0])
def test_what_no_power_changes(t: Any, accuracy: float) -> None:
    assert 0 < sharpness_for(t, accuracy) < np.inf
