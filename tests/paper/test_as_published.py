"""The networks of the papers against an independent loop in NumPy, with the same random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

from tnesi.paper import NeuralSimpletron, OnlineRule, presets
from tnesi.paper.protocol import paper_values
from tnesi.training.rules import PASSES, PASSES_WITH_ONE_LABEL

C, TRUNCATION, A, EPOCHS = 24, 5, 180, 220
NETWORKS = {  # truncated, self-labeling, recurrent
    "ff_nesi": (False, False, False),
    "ff_plus_nesi": (False, True, False),
    "r_nesi": (False, False, True),
    "r_plus_nesi": (False, True, True),
    "t_nesi": (True, True, False),
    "truncated_recurrent_nesi": (True, True, True),
}


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    """160 rows of four classes, ten of each labeled."""
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:160], y[:160].copy()
    for k in range(4):
        y[np.flatnonzero(y == k)[10:]] = -1
    return X, y


def generator(seed: int) -> np.random.Generator:
    """Return the generator that a network with `random_state=seed` draws its start and the order of the rows from."""
    inner = check_random_state(int(check_random_state(seed).randint(2**31)))
    inner.randint(2**31)
    return np.random.default_rng(inner.randint(2**31))


def published(
    X: Any, label: Any, truncated: bool, self_labeling: bool, recurrent: bool, epochs: int = EPOCHS, C: int = C
) -> tuple[Any, Any]:
    """Learn W (C x D) and R (K x C) as in the papers: equations 5 to 10 and 18 to 20."""
    (n, d), k, rng = X.shape, label.max() + 1, generator(0)
    y = (A - d) * X / X.sum(axis=1, keepdims=True) + 1
    W = y.mean(axis=0) + 2 * y.std(axis=0) * rng.random((C, d))
    R = np.full((k, C), 1 / C)
    eps_w, eps_r = 0.2 * C / n, 0.2 * k / n if self_labeling else min(0.2 * k / np.sum(label >= 0), 1)
    for _ in range(epochs):
        order = rng.permutation(n)
        for batch in np.split(order, range(25, n, 25)):
            inputs = y[batch] @ np.log(W).T
            if recurrent:
                inputs += np.log(np.where(label[batch, None] >= 0, R[label[batch]], R.sum(axis=0)))
            if truncated:
                inputs[inputs < np.sort(inputs, axis=1)[:, [-TRUNCATION]]] = -np.inf
            s = np.exp(inputs - inputs.max(axis=1, keepdims=True))
            s /= s.sum(axis=1, keepdims=True)
            t = s @ (R / R.sum(axis=0)).T
            best = np.sort(t, axis=1)
            certain = self_labeling & (best[:, -1] - best[:, -2] > 0.6)
            taught = np.where(label[batch] >= 0, label[batch], np.where(certain, t.argmax(axis=1), -1))
            hard = (taught[:, None] == np.arange(k)).astype(float)
            W += eps_w * (s.T @ y[batch] - s.sum(axis=0)[:, None] * W)
            R += eps_r * (hard.T @ s - hard.sum(axis=0)[:, None] * R)
    return W, R


def fitted(name: str, rows: tuple[Any, Any], **changes: Any) -> NeuralSimpletron:
    truncation = {"truncation": TRUNCATION} if NETWORKS.get(name, (False,))[0] else {}
    rule = OnlineRule(max_iter=changes.pop("max_iter", EPOCHS))
    parameters = {"n_components": C, "row_sum": A, "rule": rule, "random_state": 0, **truncation, **changes}
    network: NeuralSimpletron = getattr(presets, name)(**parameters)
    return network.fit(*rows)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_the_published_ones(rows: tuple[Any, Any], name: str) -> None:
    """W and R are those of the loop, to the rounding of float32 over 220 epochs."""
    network = fitted(name, rows)
    W, R = published(*rows, *NETWORKS[name])
    np.testing.assert_allclose(network.mixture_.means_, W, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(network.class_weights_, R, rtol=2e-3, atol=2e-6)


def test_inferred_feedback_is_another_network(rows: tuple[Any, Any]) -> None:
    with_feedback = fitted("r_plus_nesi_with_inferred_feedback", rows, max_iter=30).class_weights_
    assert np.abs(with_feedback - fitted("r_plus_nesi", rows, max_iter=30).class_weights_).max() > 1e-3


@pytest.mark.parametrize("name", ["ff_plus_nesi", "t_nesi"])
def test_networks_with_many_fields(name: str) -> None:
    """More fields than the package always compares: activities are still complete, and searches exact."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:700], np.where(np.arange(700) < 200, y[:700], -1)
    network = fitted(name, (X, y), n_components=600, max_iter=6)
    W, R = published(X, y, *NETWORKS[name], epochs=6, C=600)
    # a row between two fields may choose the other one on another processor, which changes both
    assert np.isclose(network.mixture_.means_, W, rtol=2e-4, atol=2e-4).mean() > 0.99
    assert np.isclose(network.class_weights_, R, rtol=2e-3, atol=2e-6).mean() > 0.99
    y = (A - 64) * X / X.sum(axis=1, keepdims=True) + 1
    inputs = y @ np.log(network.mixture_.means_.astype(float)).T
    if name == "t_nesi":
        assert network.mixture_.model_.search.name == network.mixture_.search == "exact"
        inputs[inputs < np.sort(inputs, axis=1)[:, [-TRUNCATION]]] = -np.inf
    s = np.exp(inputs - inputs.max(axis=1, keepdims=True))
    R = network.class_weights_.astype(float)
    t = s / s.sum(axis=1, keepdims=True) @ (R / R.sum(axis=0)).T
    np.testing.assert_allclose(network.predict_proba(X), t / t.sum(axis=1, keepdims=True), atol=1e-4)


def test_number_of_passes() -> None:
    """500, and 2,000 with one label per class."""
    assert (PASSES, PASSES_WITH_ONE_LABEL) == (500, 2000)
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:30], y[:30].copy()
    one = np.full(30, -1)
    one[[np.flatnonzero(y == k)[0] for k in range(3)]] = range(3)
    two = np.where(np.arange(30) < 9, y, -1)
    make = presets.t_nesi(n_components=4, truncation=2, row_sum=180, random_state=0)
    assert make.fit(X, one).n_iter_ == 2000
    assert make.fit(X, two).n_iter_ == 500
    assert make.fit(X, np.full(30, -1)).n_iter_ == 500


def test_published_parameters() -> None:
    for name, (truncated, self_labeling, recurrent) in NETWORKS.items():
        p = getattr(presets, name)().get_params()
        assert (p["n_components"], p["row_sum"], p["threshold"]) == (10_000, 900, 0.6)
        assert (p["truncation"], p["self_labeling"], p["recurrent"]) == (
            15 if truncated else None,
            self_labeling,
            recurrent,
        )
        assert not p["inferred_feedback"]
        assert p["rule"] == OnlineRule(None, 25, 0.2, 0.2, "exact")


TABLE_1 = """
ff+-NeSi 10.91 0.86 8.64 4.96 0.08 0.82 4.08 0.02 0.17 4.00 0.01 0.12 3.85 0.01 0.11 3.27 0.01 0.08
t-NeSi 7.22 0.53 5.33 3.93 0.08 0.24 3.69 0.03 0.11 3.71 0.02 0.06 3.56 0.03 0.11 2.93 0.03 0.08
"""
TABLE_2 = """
digits ff+-NeSi 7.56 1.79 6.20 0.16 6.02 0.08 6.02 0.12 5.70 0.03 5.11 0.01
digits t-NeSi 5.71 0.42 5.26 0.23 4.84 0.02 4.86 0.03 4.84 0.02 4.50 0.01
letters ff+-NeSi 55.70 0.62 46.22 0.43 44.24 0.23 43.69 0.21 42.96 0.28 34.66 0.05
letters t-NeSi 52.14 1.07 45.62 0.43 41.87 0.32 41.75 0.36 41.13 0.30 33.34 0.04
"""


@pytest.mark.parametrize(("table", "printed", "n_names"), [("mnist-table", TABLE_1, 1), ("nist-table", TABLE_2, 2)])
def test_values_of_the_paper_are_copied_without_a_typo(table: str, printed: str, n_names: int) -> None:
    keys = ("mean", "sem", "std") if table == "mnist-table" else ("mean", "sem")
    found: dict[tuple[str, ...], list[float]] = {}
    for row in paper_values(table):
        if not row["sem"]:  # of another method, on another page
            continue
        name = (row["method"],) if n_names == 1 else (row["task"], row["method"])
        found.setdefault(name, []).extend(float(row[key]) for key in keys)
    for line in printed.strip().splitlines():
        words = line.split()
        assert found[tuple(words[:n_names])] == [float(word) for word in words[n_names:]]
