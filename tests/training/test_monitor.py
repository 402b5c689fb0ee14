"""When learning stops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.paper import EM, NeuralSimpletron, OnlineRule, presets
from tnesi.training.monitor import Monitor

ENERGIES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(ENERGIES)
def test_a_tolerance_of_zero_never_stops(energies: list[float]) -> None:
    """Neither when the free energy stays the same nor when it falls."""
    monitor = Monitor(tol=0.0)
    assert not any(monitor.record(energy, 0.0, "exact") for energy in energies)
    assert not monitor.converged
    assert not Monitor(tol=0.0).restore(monitor.history, monitor.objective, monitor.gain, stopped=False)


@given(ENERGIES, st.floats(1e-6, 10))
def test_stops_at_the_first_gain_below_the_tolerance(energies: list[float], tol: float) -> None:
    monitor = Monitor(tol=tol)
    stops = [monitor.record(energy, 0.0, "exact") for energy in energies]
    assert stops == [False, *(np.diff(energies) < tol).tolist()]


@pytest.mark.parametrize("rule", [EM(max_iter=300, tol=0), OnlineRule(max_iter=300)])
def test_all_iterations_are_made(digits: Any, rule: Any) -> None:
    """Long after the free energy has begun to fluctuate (online rule) or to stand still (EM)."""
    network = NeuralSimpletron(5, truncation=5, row_sum=180, rule=rule, random_state=0)
    mixture = network.fit(digits[0][:60], np.full(60, -1)).mixture_
    energy = np.array([record["free_energy"] for record in mixture.history_])
    assert (np.diff(energy) <= 0).any()  # there was a reason to stop
    assert mixture.n_iter_ == 300
    assert not mixture.converged_


def test_presets_make_all_their_epochs(digits: Any) -> None:
    X, y = digits[0][:60], np.where(np.arange(60) < 20, digits[1][:60], -1)
    clf = presets.t_nesi(n_components=6, row_sum=180, random_state=0).fit(X, y)
    assert clf.n_iter_ == clf.rule.passes(2) == 500
