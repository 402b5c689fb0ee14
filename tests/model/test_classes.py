from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tnesi.model import classes
from tnesi.model.classes import FieldClasses, margins, sums_by_class


@pytest.fixture
def activities(rng: np.random.Generator) -> sparse.csr_array:
    s = rng.dirichlet(np.full(8, 0.2), 60).astype(np.float32)
    s[s < 0.05] = 0
    return sparse.csr_array(s / s.sum(axis=1, keepdims=True))


def test_average_is_the_mean_of_the_activities(activities: sparse.csr_array, rng: np.random.Generator) -> None:
    taught = rng.integers(-1, 3, 60).astype(np.int32)
    weight = rng.integers(1, 4, 60).astype(np.float32)
    r = FieldClasses.average(activities, taught, weight, 3).weights
    for k in range(3):
        chosen = taught == k
        expected = np.average(activities.toarray()[chosen], axis=0, weights=weight[chosen])
        np.testing.assert_allclose(r[k], expected, atol=1e-6)
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-5)


def test_the_online_rule_keeps_rows_normalized(activities: sparse.csr_array, rng: np.random.Generator) -> None:
    layer = FieldClasses.even(8, 3)
    label = rng.integers(-1, 3, 60).astype(np.int32)
    for rate in (0.001, 0.1, 5.0):
        layer.learn_epoch(
            activities, label, None, rng.permutation(60), batch_size=7, rate=rate, threshold=0.5, self_label=True
        )
        np.testing.assert_allclose(layer.weights.sum(axis=1), 1, rtol=1e-4)
        assert (layer.weights >= 0).all()


def test_posterior_where_no_class_has_reached() -> None:
    layer = FieldClasses.average(sparse.csr_array(np.eye(4, dtype=np.float32)), np.array([0, 1, -1, -1]), None, 2)
    t = layer.posterior(sparse.csr_array(np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0.5, 0.5, 0]])))
    np.testing.assert_allclose(t, [[1, 0], [0.5, 0.5], [0, 1]])


def test_threshold_is_strict() -> None:
    """A row exactly at the threshold is not self-labeled."""
    activities = sparse.csr_array(np.array([[0.75, 0.25]], np.float32))
    for threshold, expected in ((0.5, -1), (0.49, 0)):
        layer = FieldClasses.even(2, 2)
        layer.r[:, :2] = np.eye(2)
        taught = layer.learn_epoch(
            activities,
            np.array([-1], np.int32),
            None,
            np.array([0]),
            batch_size=1,
            rate=0.1,
            threshold=threshold,
            self_label=True,
        )
        assert taught.tolist() == [expected]


def test_prior_table(activities: sparse.csr_array) -> None:
    layer = FieldClasses.average(activities, np.arange(60, dtype=np.int32) % 3, None, 3)
    table = layer.prior_table()
    assert np.isfinite(table).all()
    np.testing.assert_allclose(np.exp(table[0]), layer.weights.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(np.exp(table[1:]), layer.weights, rtol=1e-5, atol=1e-12)


def test_weights_that_decay_to_nothing_do_no_harm() -> None:
    """Fields without rows lose their class weights; they must neither win nor become NaN."""
    activities = sparse.csr_array(np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.4, 0.1]], np.float32))
    layer = FieldClasses.even(3, 2)
    label = np.array([0, 1, -1], np.int32)
    for _ in range(400):
        taught = layer.learn_epoch(
            activities, label, None, np.arange(3), batch_size=3, rate=0.9, threshold=0.95, self_label=True
        )
        assert np.isfinite(layer.r).all()
        assert taught.tolist() == [0, 1, -1]
    np.testing.assert_allclose(layer.weights, [[1, 0, 0], [0, 1, 0]], atol=1e-6)


def test_sizes_are_those_of_the_rows_learned_from(activities: sparse.csr_array, rng: np.random.Generator) -> None:
    taught = rng.integers(-1, 3, 60).astype(np.int32)
    weight = rng.integers(1, 4, 60).astype(np.float32)
    layer = FieldClasses.average(activities, taught, weight, 3, sized=True)
    assert layer.sizes is not None
    expected = np.bincount(taught[taught >= 0], weight[taught >= 0])
    np.testing.assert_allclose(layer.sizes, expected / expected.sum(), atol=1e-4)
    nobody = FieldClasses.average(activities, np.full(60, -1, np.int32), None, 3, sized=True)
    np.testing.assert_allclose(nobody.sizes, 1 / 3)


def test_shares_of_the_fields(rng: np.random.Generator) -> None:
    """Class weights reproduce the given p(k | c); fields without shares belong to no class."""
    shares, mass = rng.dirichlet(np.ones(3), 8), rng.random(8) + 0.1
    each_field = sparse.csr_array(np.eye(8, dtype=np.float32))
    layer = FieldClasses.from_shares(5 * shares, mass)
    np.testing.assert_allclose(layer.posterior(each_field), shares, atol=1e-6)
    np.testing.assert_allclose(layer.sizes, mass @ shares / mass.sum())
    np.testing.assert_allclose(layer.weights.sum(axis=1), 1, rtol=1e-5)
    shares[2] = 0
    np.testing.assert_allclose(FieldClasses.from_shares(shares, mass).posterior(each_field)[2], 1 / 3)


@pytest.mark.parametrize("sharpness", [1e-2, 0.5, 3.0, 1e4])
def test_sharpness_is_a_power(activities: sparse.csr_array, rng: np.random.Generator, sharpness: float) -> None:
    weights = rng.dirichlet(np.ones(8), 3)
    plain, sharp = (FieldClasses.from_weights(weights, sharpness=s).posterior(activities) for s in (1.0, sharpness))
    np.testing.assert_array_equal(sharp.argmax(axis=1), plain.argmax(axis=1))
    log = sharpness * np.log(plain)
    expected = np.exp(log - log.max(axis=1, keepdims=True))
    np.testing.assert_allclose(sharp, expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize("counted", [False, True])
def test_sums_by_class(activities: sparse.csr_array, rng: np.random.Generator, counted: bool) -> None:
    place = rng.integers(-1, 4, 60)
    found = sums_by_class(activities, None if counted else activities.data, place, 5)
    dense = activities.toarray()
    dense = (dense > 0).astype(float) if counted else dense
    np.testing.assert_allclose(found, np.stack([dense[place == k].sum(axis=0) for k in range(5)], axis=1), rtol=1e-6)


@pytest.mark.parametrize("counted", [True, False])
def test_sums_in_chunks_have_the_same_bits(
    activities: sparse.csr_array, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    place = rng.integers(-1, 3, activities.shape[0])
    values = None if counted else activities.data
    expected = sums_by_class(activities, values, place, 3)
    monkeypatch.setattr(classes, "_CHUNK", 7)
    np.testing.assert_array_equal(sums_by_class(activities, values, place, 3), expected)


def test_margins() -> None:
    np.testing.assert_allclose(margins(np.array([[0.2, 0.7, 0.1], [0.5, 0.5, 0.0], [1, 0, 0]])), [0.5, 0, 1])
