"""Spreading labels over the graph of fields is equivalent to EM with soft labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.polynomial.chebyshev import chebval
from scipy import sparse

from tnesi.labeling import graph as graph_module
from tnesi.labeling.graph import FieldGraph

Array = Any


def activities_of(n: int, n_fields: int, seed: int, density: float = 0.4) -> sparse.csr_array:
    """Return random activities: rows sum to 1, and every field is active somewhere."""
    rng = np.random.default_rng(seed)
    s = rng.random((n, n_fields)) * (rng.random((n, n_fields)) < density)
    s[np.arange(n), np.arange(n) % n_fields] += 0.1
    return sparse.csr_array((s / s.sum(axis=1, keepdims=True)).astype(np.float32))


def spread(s: sparse.csr_array, label: Array, weight: Array | None, clamp: float, steps: list[int]) -> list[Array]:
    points = np.flatnonzero(label >= 0)
    near = s[points]
    if weight is not None:
        near = sparse.csr_array(sparse.diags_array(np.sqrt(weight[points])) @ near)
    return FieldGraph.of(s, weight).spread(near, label[points], 3, clamp=clamp, steps=steps, n_threads=1)


def plain(s: Array, label: Array, weight: Array, clamp: float, steps: int) -> Array:
    """EM: t of a point is the mean of its fields, but for the labels; q of a field is the mean of its points."""
    given, q = label >= 0, np.full((s.shape[1], 3), 1 / 3)
    for _ in range(steps):
        t = s @ q
        t[given] = clamp * np.eye(3)[label[given]] + (1 - clamp) * t[given]
        q = (s * weight[:, None]).T @ t / (s.T @ weight)[:, None]
    return q


@pytest.fixture
def every_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "_WEAKEST_LINK", 0.0)


@pytest.mark.parametrize("clamp", [0.04, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [0.05, 0.4])
@pytest.mark.usefixtures("every_link")
def test_it_is_em_with_soft_labels(clamp: float, weighted: bool, density: float, rng: np.random.Generator) -> None:
    s = activities_of(60, 12, 0, density)
    label = np.where(np.arange(60) < 9, np.arange(60) % 3, -1)
    weight = rng.integers(1, 5, 60).astype(np.float32) if weighted else None
    for steps, found in zip([1, 4, 30, 300], spread(s, label, weight, clamp, [1, 4, 30, 300]), strict=True):
        each = np.ones(60) if weight is None else weight.astype(np.float64)
        expected = plain(s.toarray().astype(np.float64), label, each, clamp, steps)
        np.testing.assert_allclose(found, expected, atol=2e-5)


@given(st.integers(0, 1000), st.floats(0.01, 1), st.booleans(), st.integers(1, 200))
def test_shares_sum_to_one(seed: int, clamp: float, weighted: bool, steps: int) -> None:
    rng = np.random.default_rng(seed)
    s = activities_of(40, 9, seed)
    label = rng.integers(-1, 3, 40)
    label[:3] = range(3)
    weight = rng.integers(1, 9, 40).astype(np.float32) if weighted else None
    (q,) = spread(s, label, weight, clamp, [steps])
    assert (q >= 0).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-3)


@given(st.integers(1, 400))
def test_few_terms_come_close_to_many_steps(steps: int) -> None:
    (series,) = graph_module._series((steps,))
    assert series.size < 2 + 3.5 * np.sqrt(steps)
    x = np.linspace(0, 1, 101)
    np.testing.assert_allclose(chebval(2 * x - 1, series), sum(x**i for i in range(steps)), atol=2e-4, rtol=1e-6)


def test_what_weak_links_carry_stays() -> None:
    """Without its weak links the graph still has sqrt(mass) as its stationary vector: nothing is lost."""
    rng = np.random.default_rng(0)
    s = rng.random((300, 20)) ** 60  # one field dominates
    s = sparse.csr_array((s / s.sum(axis=1, keepdims=True)).astype(np.float32))
    graph = FieldGraph.of(s, None)
    assert graph.links.nnz < 400
    np.testing.assert_allclose(graph.links @ np.sqrt(graph.mass), np.sqrt(graph.mass), rtol=1e-4)


def sharp_activities(n: int, n_fields: int, seed: int, sharpness: float) -> sparse.csr_array:
    """Return activities of which one is nearly all of a row: the graph falls into islands."""
    rng = np.random.default_rng(seed)
    place, center = rng.random(n)[:, None], np.linspace(0, 1, n_fields)
    s = np.exp(-sharpness * np.abs(place - center))
    s[s < np.sort(s, axis=1)[:, [-4]]] = 0
    return sparse.csr_array((s / s.sum(axis=1, keepdims=True)).astype(np.float32))


@given(st.integers(0, 1000), st.floats(1, 3000), st.booleans())
def test_spreading_stays_stable(seed: int, sharpness: float, weighted: bool) -> None:
    """Eigenvalues outside of [0, 1] would make the polynomials diverge."""
    s = sharp_activities(80, 15, seed, sharpness)
    weight = np.random.default_rng(seed).integers(1, 9, 80).astype(np.float32) if weighted else None
    graph = FieldGraph.of(s, weight)
    links, root = graph.links.toarray().astype(np.float64), np.sqrt(graph.mass)
    np.testing.assert_allclose(links, links.T, atol=1e-6)
    np.testing.assert_allclose(links @ root, root, rtol=1e-4, atol=1e-5)
    near = (s.toarray() * np.sqrt(1 if weight is None else weight[:, None]) / np.maximum(root, 1e-12))[::2]
    for clamped in (0 * links, graph.pace * near.T @ near):
        value = np.linalg.eigvalsh(links - clamped)
        assert value[0] > -1e-5
        assert value[-1] < 1 + 1e-5


@example(56, 505.0, 1.0)  # a field with so little mass that all its links are weak
@example(56, 505.0, 0.03125)
@given(st.integers(0, 1000), st.floats(1, 3000), st.floats(0.01, 1))
def test_many_steps_do_not_explode(seed: int, sharpness: float, clamp: float) -> None:
    s = sharp_activities(80, 15, seed, sharpness)
    (q,) = spread(s, np.where(np.arange(80) % 2, np.arange(80) % 3, -1), None, clamp, [2000])
    assert q.max() < 1 + 2e-3
    np.testing.assert_allclose(q[q.any(axis=1)].sum(axis=1), 1, atol=2e-3)


def test_labels_reach_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows along a line with little overlap and a label at each end: each half gets the label of its end."""
    s = sharp_activities(400, 20, 0, 2000.0)
    place = s.toarray().argmax(axis=1)
    label = np.full(400, -1)
    label[[np.argmax(place == 0), np.argmax(place == 19)]] = [0, 1]

    def decided(steps: int) -> Array:
        (q,) = spread(s, label, None, 1.0, [steps])
        assert q[0, 0] > 0.5
        assert q[19, 1] > 0.5
        return np.sign(np.round(q[:, 0] - q[:, 1], 4))

    assert (np.delete(decided(3000), [9, 10]) == np.repeat([1, -1], 9)).all()
    monkeypatch.setattr(graph_module, "_LEAST_LEAVING", 0.0)
    assert not decided(3000)[3:17].any()


def test_a_hub_of_many_islands_does_not_stop_the_others() -> None:
    """Many islands at one field do not shorten the steps much."""
    n = 500
    s = np.zeros((4 * n + 8, n + 3), np.float32)
    s[np.arange(4 * n), np.arange(4 * n) % n] = 1
    s[: 4 * n, n] = 1e-9  # all islands are nearest to this one
    s[4 * n :, n : n + 3] = 1 / 3
    graph = FieldGraph.of(sparse.csr_array(s), None)
    assert graph.links[[n + 1], [n + 2]] > 0.25
    assert graph.links[[0], [n]] > 0


def test_bridges_lead_to_fields_with_mass() -> None:
    """Fields with almost no activity are nearer, but carry no labels."""
    s = np.zeros((20, 5), np.float32)
    s[:10] = [1, 1e-6, 1e-6, 1e-6, 1e-9]
    s[10:, 4] = 1
    links = FieldGraph.of(sparse.csr_array(s), None).links
    assert links[[0], [4]] > 0.005


def test_bridges_are_found_a_few_fields_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    s = sharp_activities(300, 40, 3, 900.0)
    whole = FieldGraph.of(s, None).links.toarray()
    monkeypatch.setattr(graph_module, "_ISLANDS", 7)
    np.testing.assert_array_equal(FieldGraph.of(s, None).links.toarray(), whole)
    monkeypatch.setattr(graph_module, "_DENSE", 0.0)
    np.testing.assert_allclose(FieldGraph.of(s, None).links.toarray(), whole, atol=1e-6)


@pytest.mark.parametrize("sharpness", [0.0, 900.0])
@pytest.mark.parametrize("density", [0.05, 0.4])
def test_weights_are_repetitions(rng: np.random.Generator, density: float, sharpness: float) -> None:
    s = sharp_activities(50, 10, 1, sharpness) if sharpness else activities_of(50, 10, 1, density)
    count = rng.integers(1, 4, 50)
    repeated = sparse.csr_array(s.toarray()[np.repeat(np.arange(50), count)])
    weighted, many = FieldGraph.of(s, count.astype(np.float32)), FieldGraph.of(repeated, None)
    np.testing.assert_allclose(weighted.mass, many.mass, rtol=1e-5)
    np.testing.assert_allclose(weighted.links.toarray(), many.links.toarray(), atol=1e-5)
    label = np.where(np.arange(50) < 9, np.arange(50) % 3, -1)
    (a,) = spread(s, label, count.astype(np.float32), 0.3, [50])
    (b,) = spread(repeated, np.repeat(label, count), None, 0.3, [50])
    np.testing.assert_allclose(a, b, atol=1e-4)


def test_dense_blocks_are_the_sparse_product(monkeypatch: pytest.MonkeyPatch) -> None:
    s = activities_of(250, 30, 2)
    monkeypatch.setattr(graph_module, "_BLOCK", 100)
    dense = FieldGraph.of(s, None)
    monkeypatch.setattr(graph_module, "_DENSE", 2)
    np.testing.assert_allclose(dense.links.toarray(), FieldGraph.of(s, None).links.toarray(), atol=1e-6)


def test_a_field_that_no_point_has() -> None:
    s = sparse.csr_array(np.hstack([activities_of(20, 4, 3).toarray(), np.zeros((20, 1), np.float32)]))
    (q,) = spread(s, np.where(np.arange(20) < 3, np.arange(20), -1), None, 1.0, [20])
    assert np.isfinite(q).all()
    assert not q[4].any()
