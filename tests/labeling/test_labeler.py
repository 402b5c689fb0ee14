"""The second layer learns from few labels: by the method that suits the data."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tnesi.labeling import labeler as labeler_module
from tnesi.labeling.labeler import Labeler, _best_steps, _beyond_chance
from tnesi.model.classes import FieldClasses

Planted = Callable[..., Any]


def labeler_of(s: sparse.csr_array, weight: Any = None, seed: int = 0, n_threads: int = 1) -> Labeler:
    return Labeler(s, [s.shape[1]], weight, seed, n_threads)


def error(layer: FieldClasses, s: sparse.csr_array, truth: Any) -> float:
    return 100 * float(np.mean(layer.posterior(s).argmax(axis=1) != truth))


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_are_classes_get_names(planted: Planted, some_labels: Planted, seed: int) -> None:
    s, truth = planted([300] * 5, seed=seed)
    layer, method = labeler_of(s, seed=seed).learn(some_labels(truth, 1, seed), 5, "auto")
    assert method == "clusters"
    assert error(layer, s, truth) < 3


def test_what_labels_say_near_by_counts_half(planted: Planted, some_labels: Planted) -> None:
    s, truth = planted([100, 200, 300], leak=0.4)
    label, labeler = some_labels(truth, 10), labeler_of(s)
    points, each_field = np.flatnonzero(label >= 0), sparse.csr_array(np.eye(s.shape[1], dtype=np.float32))
    found = [
        [way.posterior(each_field) for way in ways] for ways in labeler.spread_layers(points, label[points], 3, 300, 1)
    ]
    (graph,) = labeler.graphs
    shares = graph.spread(s[points], label[points], 3, clamp=1.0, steps=(10, 30, 300), n_threads=1)
    near_by, far = (q / q.sum(axis=1, keepdims=True) for q in shares[1:])
    np.testing.assert_allclose(found[1][1], near_by, atol=1e-6)
    np.testing.assert_allclose(found[2][1], (near_by + far) / 2, atol=1e-6)
    of_one_size = far / (graph.mass @ far)
    of_one_size /= of_one_size.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[2][0], (near_by + of_one_size) / 2, atol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 10])
def test_labels_spread_where_classes_are_long_and_thin(planted: Planted, some_labels: Planted, n: int) -> None:
    s, truth = planted([300] * 10, ring=True, leak=0.05)
    label, labeler = some_labels(truth, n), labeler_of(s)
    layer, method = labeler.learn(label, 10, "auto")
    assert method == "spreading"
    assert error(layer, s, truth) < 3
    if n < 10:  # with ten, warm passes mend what the clusters got wrong
        assert error(labeler.learn(label, 10, "clusters")[0], s, truth) > 2 * error(layer, s, truth)


def test_classes_of_several_clusters(planted: Planted, some_labels: Planted) -> None:
    s, truth = planted([200] * 6)
    layer, method = labeler_of(s).learn(some_labels(truth % 2, 10), 2, "auto")
    assert method == "spreading"
    assert error(layer, s, truth % 2) < 3


@pytest.mark.parametrize("weighted", [False, True])
def test_the_published_rule_has_the_last_word_where_labels_are_many(
    planted: Planted, some_labels: Planted, monkeypatch: pytest.MonkeyPatch, weighted: bool
) -> None:
    """Classes of three clusters each, which overlap at their borders."""
    s, truth = planted([200] * 6, leak=0.6)
    label, weight = some_labels(truth % 2, 30), np.full(truth.size, 2, np.float32) if weighted else None
    refined, method = labeler_of(s, weight).learn(label, 2, "auto")
    monkeypatch.setattr(Labeler, "_refined", lambda *_, **__: None)
    spread, _ = labeler_of(s, weight).learn(label, 2, "auto")
    assert method == "spreading"
    assert error(refined, s, truth % 2) <= error(spread, s, truth % 2)
    assert (refined.r != spread.r).any()
    assert refined.sharpness == 1


@pytest.mark.parametrize(
    ("sizes", "leak", "n"), [([300] * 5, 0.2, 9), ([200] * 4, 1.0, 20), ([800, 400, 200, 100, 40], 0.3, 20)]
)
def test_what_has_spread_stays_where_self_labels_cannot_be_trusted(
    planted: Planted, some_labels: Planted, monkeypatch: pytest.MonkeyPatch, sizes: list[int], leak: float, n: int
) -> None:
    """Few labels, or rows whose self-label changes."""
    s, truth = planted(sizes, leak=leak)
    label = some_labels(truth, n)
    if leak > 0.2:
        monkeypatch.setattr(labeler_module, "TRUST", 1.0)  # any change is too much
    with_rule, _ = labeler_of(s).learn(label, len(sizes), "spreading")
    monkeypatch.setattr(Labeler, "_refined", lambda *_, **__: None)
    np.testing.assert_array_equal(with_rule.r, labeler_of(s).learn(label, len(sizes), "spreading")[0].r)


@pytest.mark.parametrize("sizes", [[800, 400, 200, 100, 40], [400, 400, 400, 20], [800, 800, 40, 40]])
@pytest.mark.parametrize("seed", range(2))
def test_unequal_classes(planted: Planted, some_labels: Planted, sizes: list[int], seed: int) -> None:
    s, truth = planted(sizes, seed=seed)
    layer, _ = labeler_of(s, seed=seed).learn(some_labels(truth, 5, seed), len(sizes), "auto")
    assert error(layer, s, truth) < 4
    by_class = [error(layer, s[truth == k], k) for k in range(len(sizes))]
    assert max(by_class) < 25


@pytest.mark.parametrize(("sizes", "unknown"), [([200] * 5, 1), ([200] * 6, 2), ([300, 300, 200, 150, 200], 1)])
def test_unknown_classes_are_found_and_counted(
    planted: Planted, some_labels: Planted, sizes: list[int], unknown: int
) -> None:
    s, truth = planted(sizes)
    known = len(sizes) - unknown
    label = np.where(truth < known, some_labels(truth, 3), -1)
    layer, method = labeler_of(s).learn(label, known, "auto", unknown)
    assert (method, layer.n_classes) == ("clusters", known + 1)
    assert error(layer, s, np.minimum(truth, known)) < 4
    share = np.mean(layer.posterior(s).argmax(axis=1) == known)
    assert share == pytest.approx(np.mean(truth >= known), abs=0.02)
    assert layer.sizes is not None
    assert layer.sizes[known] == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
def test_wrong_labels(planted: Planted, some_labels: Planted, method: str) -> None:
    s, truth = planted([300] * 5)
    label = some_labels(truth, 10)
    given = np.flatnonzero(label >= 0)
    label[given[::20]] = (label[given[::20]] + 1) % 5  # a twentieth
    layer, _ = labeler_of(s).learn(label, 5, method)
    assert error(layer, s, truth) < 6


@pytest.mark.parametrize(("method", "n"), [("auto", 1), *itertools.product(["clusters", "spreading"], [1, 5])], ids=str)
def test_weights_are_repetitions(planted: Planted, some_labels: Planted, method: str, n: int) -> None:
    """With five labels, the choice depends on which of the equal rows are held out together."""
    s, truth = planted([200] * 4)
    label, count = some_labels(truth, n), np.random.default_rng(0).integers(1, 4, truth.size)
    again = np.repeat(np.arange(truth.size), count)
    weighted, used = labeler_of(s, count.astype(np.float32)).learn(label, 4, method)
    repeated, used_too = labeler_of(s[again]).learn(label[again], 4, method)
    assert used == used_too
    assert np.mean(weighted.posterior(s).argmax(axis=1) == repeated.posterior(s).argmax(axis=1)) > 0.98
    np.testing.assert_allclose(weighted.weights.sum(axis=1), 1, rtol=1e-4)


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
def test_a_committee_of_two(planted: Planted, some_labels: Planted, method: str) -> None:
    one, truth = planted([300] * 5, seed=1)
    two, _ = planted([300] * 5, per_field=6, seed=2)
    both = sparse.csr_array(sparse.hstack([one, two]) / 2).astype(np.float32)
    labeler = Labeler(both, [one.shape[1], two.shape[1]], None, 0)
    layer, _ = labeler.learn(some_labels(truth, 1), 5, method)
    assert len(layer) == both.shape[1]
    np.testing.assert_allclose(layer.weights.sum(axis=1), 1, rtol=1e-4)
    assert error(layer, both, truth) < 2
    assert [graph.mass.size for graph in labeler.graphs] == labeler.n_fields
    assert labeler.mass.sum() == pytest.approx(truth.size, rel=1e-4)


@pytest.mark.parametrize("method", ["clusters", "spreading"])
def test_names_of_classes_do_not_matter(planted: Planted, some_labels: Planted, method: str) -> None:
    s, truth = planted([200] * 4, leak=0.2)
    label, names = some_labels(truth, 4), np.array([2, 0, 3, 1, -1])
    plain, renamed = (labeler_of(s).learn(given, 4, method)[0] for given in (label, names[label].astype(np.int32)))
    same = names[plain.posterior(s).argmax(axis=1)] == renamed.posterior(s).argmax(axis=1)
    assert same.mean() > (0.999 if method == "clusters" else 0.97)  # which labels are left out depends on the names


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
@pytest.mark.parametrize(("n", "ring"), [(1, True), (2, True), (20, False)])
def test_the_same_bits_with_any_number_of_threads(
    planted: Planted, some_labels: Planted, method: str, n: int, ring: bool
) -> None:
    s, truth = planted([300] * 5, ring=ring)
    label = some_labels(truth, n)
    one, *others = (labeler_of(s, n_threads=threads).learn(label, 5, method)[0] for threads in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(one.r, other.r)
        assert one.sharpness == other.sharpness


def test_nothing_spreads_where_clusters_are_clear_and_no_label_can_be_left_out(
    planted: Planted, some_labels: Planted
) -> None:
    s, truth = planted([300] * 5)
    labeler = labeler_of(s)
    assert labeler.learn(some_labels(truth, 1), 5, "auto")[1] == "clusters"
    assert "graphs" not in vars(labeler)


def test_other_labels_use_the_same_clusters_and_graphs(planted: Planted, some_labels: Planted) -> None:
    s, truth = planted([200] * 4)
    labeler = labeler_of(s)
    labeler.learn(some_labels(truth, 1, 0), 4, "auto")
    clusters, graphs = labeler.clusters(4), labeler.graphs
    again = labeler.learn(some_labels(truth, 1, 1), 4, "auto")[0]
    assert labeler.clusters(4) is clusters
    assert labeler.graphs is graphs
    np.testing.assert_array_equal(again.r, labeler_of(s).learn(some_labels(truth, 1, 1), 4, "auto")[0].r)


@pytest.mark.parametrize("n", [2, 10])
def test_probabilities_are_as_certain_as_they_should_be(planted: Planted, some_labels: Planted, n: int) -> None:
    """Classes that overlap much: a quarter of the points has one field of any class."""
    gaps = []
    for seed in range(10):
        s, truth = planted([300] * 4, leak=0.6, seed=seed)
        layer, _ = labeler_of(s).learn(some_labels(truth, n, seed), 4, "spreading")
        t = layer.posterior(s)
        gaps.append(t.max(axis=1).mean() - np.mean(t.argmax(axis=1) == truth))
    assert abs(np.mean(gaps)) < 0.1


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 0, 1, 1, 1], [0, 1, 1, 1, -1, -1]])
def test_hardly_any_points(method: str, labels: list[int]) -> None:
    label = np.array(labels, dtype=np.int32)
    s = sparse.csr_array(np.eye(label.size, 2, dtype=np.float32) + 0.25 * np.ones((label.size, 2), np.float32))
    s = sparse.csr_array(s / s.sum(axis=1)[:, None]).astype(np.float32)
    layer, _ = labeler_of(sparse.csr_array(s)).learn(label, 2, method)
    t = layer.posterior(sparse.csr_array(s))
    assert np.isfinite(t).all()
    np.testing.assert_allclose(t.sum(axis=1), 1)


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
def test_a_single_field(method: str) -> None:
    s = sparse.csr_array(np.ones((8, 1), np.float32))
    layer, _ = labeler_of(s).learn(np.array([0, 1, 2, 0, 1, -1, -1, -1], np.int32), 3, method)
    t = layer.posterior(s)
    np.testing.assert_allclose(t.sum(axis=1), 1)


@pytest.mark.parametrize("method", ["auto", "clusters", "spreading"])
def test_a_label_in_a_field_of_its_own(planted: Planted, some_labels: Planted, method: str) -> None:
    """There is no other evidence for its class; the other classes are not affected."""
    s, truth = planted([200] * 4)
    lonely = sparse.csr_array((np.ones(1, np.float32), ([0], [s.shape[1]])), shape=(1, s.shape[1] + 1))
    s = sparse.csr_array(sparse.vstack([sparse.hstack([s, np.zeros((800, 1), np.float32)]), lonely])).astype(np.float32)
    label = np.append(some_labels(truth, 3), 4).astype(np.int32)
    layer, _ = labeler_of(s).learn(label, 5, method)
    t = layer.posterior(s)
    assert np.isfinite(t).all()
    np.testing.assert_allclose(t.sum(axis=1), 1)
    if method != "clusters":  # which has to give the class a cluster that is another's
        assert error(layer, s[:800], truth) < 3
        assert t[800].argmax() == 4


@pytest.mark.parametrize(("better", "worse", "decides"), [(0, 0, False), (5, 0, False), (20, 0, True), (30, 22, False)])
def test_labels_left_out_decide_beyond_chance(better: int, worse: int, decides: bool) -> None:
    gain = np.repeat([1.0, -1.0, 0.0], [better, worse, 50])
    assert _beyond_chance(gain, 10) == decides
    right = np.stack([gain > 0, gain > 2, gain < 0], axis=1).astype(float)  # after few, more and most steps
    assert _best_steps(right, 10) == (0 if decides else 2)
