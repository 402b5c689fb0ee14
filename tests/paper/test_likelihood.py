"""Figure 4 by the published rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from tnesi.data import load_named
from tnesi.paper import read_protocol, reproduce
from tnesi.paper.protocol import Task
from tnesi.paper.summary import summarize


def test_curves_of_the_published_rule(tmp_path: Path) -> None:
    protocol = read_protocol("mnist-likelihood", solver="hebbian", quick=True, runs=1, passes=5)
    small = {"n_components": 40, "row_sum": 180, "max_iter": 5}
    tasks = (Task("digits", "Digits", ("digits",)),)
    protocol = replace(protocol, tasks=tasks, parameters=small, truncations=(1, 5, "all"), sample_rows=300)
    folder = reproduce(protocol, tmp_path)
    ends = {row["truncation"]: row for row in summarize(folder)}
    assert set(ends) == {1, 5, "all"}
    for record in folder.records:
        assert [point["iteration"] for point in record["curve"]] == [1, 2, 3, 4, 5]
        assert [point["iteration"] for point in record["curve"] if "held_out" in point] == [1, 2, 5]
    first = {record["truncation"]: record["curve"][0]["log_likelihood"] for record in folder.records}
    assert first[1] > first["all"]  # likelihood rises faster with smaller C'
    assert ends[5]["error"]["mean"] < 30


def test_the_likelihood_of_test_rows_is_exact(tmp_path: Path) -> None:
    """It is that of the network with the same random numbers, over all fields."""
    protocol = read_protocol("mnist-likelihood", solver="hebbian", quick=True, runs=1, passes=3)
    small = {"n_components": 30, "row_sum": 180, "max_iter": 3}
    tasks = (Task("digits", "Digits", ("digits",)),)
    protocol = replace(protocol, tasks=tasks, parameters=small, truncations=(5,), sample_rows=300)
    point = reproduce(protocol, tmp_path).records[0]["curve"][-1]
    data = load_named("digits")
    assert data.test is not None
    rng = np.random.default_rng(0)
    X, test = data.X.astype(float), data.test.X.astype(float)
    y = 116 * X / X.sum(axis=1, keepdims=True) + 1
    W = y.mean(axis=0) + 2 * y.std(axis=0) * rng.random((30, 64))
    for _ in range(3):
        order = rng.permutation(len(y))
        for batch in np.split(order, range(25, len(y), 25)):
            inputs = y[batch] @ np.log(W).T
            inputs[inputs < np.sort(inputs, axis=1)[:, [-5]]] = -np.inf
            s = np.exp(inputs - inputs.max(axis=1, keepdims=True))
            s /= s.sum(axis=1, keepdims=True)
            W += 0.2 * 30 / len(y) * (s.T @ y[batch] - s.sum(axis=0)[:, None] * W)
    test = 116 * test / test.sum(axis=1, keepdims=True) + 1
    expected = logsumexp(test @ np.log(W).T - W.sum(axis=1), axis=1) - gammaln(test + 1).sum(axis=1) - np.log(30)
    assert point["held_out"] == pytest.approx(expected.mean(), abs=2e-3)


def test_partial_e_steps_are_not_what_the_figure_compares() -> None:
    with pytest.raises(ValueError, match="compares exact E-steps"):
        read_protocol("mnist-likelihood", solver="hebbian-partial")
