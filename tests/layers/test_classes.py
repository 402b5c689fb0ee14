from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tnesi.layers.classes import Classes


@pytest.fixture
def activities(rng: np.random.Generator) -> sparse.csr_array:
    s = rng.dirichlet(np.full(8, 0.2), 60).astype(np.float32)
    s[s < 0.05] = 0
    return sparse.csr_array(s / s.sum(axis=1, keepdims=True))


def test_average_is_the_mean_of_the_activities(activities: sparse.csr_array, rng: np.random.Generator) -> None:
    taught = rng.integers(-1, 3, 60).astype(np.int32)
    weight = rng.integers(1, 4, 60).astype(np.float32)
    r = Classes.average(activities, taught, weight, 3).weights
    for k in range(3):
        chosen = taught == k
        expected = np.average(activities.toarray()[chosen], axis=0, weights=weight[chosen])
        np.testing.assert_allclose(r[k], expected, atol=1e-6)
    np.testing.assert_allclose(r.sum(axis=1), 1, rtol=1e-5)


def test_the_online_rule_keeps_rows_normalised(activities: sparse.csr_array, rng: np.random.Generator) -> None:
    layer = Classes.even(8, 3)
    label = rng.integers(-1, 3, 60).astype(np.int32)
    for rate in (0.001, 0.1, 5.0):
        layer.learn_epoch(
            activities, label, None, rng.permutation(60), batch_size=7, rate=rate, threshold=0.5, self_label=True
        )
        np.testing.assert_allclose(layer.weights.sum(axis=1), 1, rtol=1e-4)
        assert (layer.weights >= 0).all()


def test_posterior_where_no_class_has_reached() -> None:
    layer = Classes.average(sparse.csr_array(np.eye(4, dtype=np.float32)), np.array([0, 1, -1, -1]), None, 2)
    t = layer.posterior(sparse.csr_array(np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0.5, 0.5, 0]])))
    np.testing.assert_allclose(t, [[1, 0], [0.5, 0.5], [0, 1]])


def test_threshold_is_strict() -> None:
    """A point exactly at the threshold does not teach."""
    activities = sparse.csr_array(np.array([[0.75, 0.25]], np.float32))
    for threshold, expected in ((0.5, -1), (0.49, 0)):
        layer = Classes.even(2, 2)
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
    layer = Classes.average(activities, np.arange(60, dtype=np.int32) % 3, None, 3)
    table = layer.prior_table()
    assert np.isfinite(table).all()
    np.testing.assert_allclose(np.exp(table[0]), layer.weights.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(np.exp(table[1:]), layer.weights, rtol=1e-5, atol=1e-12)


def test_weights_that_decay_to_nothing_do_no_harm() -> None:
    """Fields that nobody visits lose their class weights; they must neither win nor turn into NaN."""
    activities = sparse.csr_array(np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.4, 0.1]], np.float32))
    layer = Classes.even(3, 2)
    label = np.array([0, 1, -1], np.int32)
    for _ in range(400):
        taught = layer.learn_epoch(
            activities, label, None, np.arange(3), batch_size=3, rate=0.9, threshold=0.95, self_label=True
        )
        assert np.isfinite(layer.r).all()
        assert taught.tolist() == [0, 1, -1]
    np.testing.assert_allclose(layer.weights, [[1, 0, 0], [0, 1, 0]], atol=1e-6)
