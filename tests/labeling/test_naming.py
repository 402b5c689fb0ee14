"""Naming does not depend on the order of clusters, and doubts are probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tnesi.labeling.naming import confidence, doubts, evidence, name_clusters, shares_of, surroundings

fits = arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(6, 9)), elements=st.floats(-200, 0))


def test_the_best_assignment_is_one_to_one() -> None:
    """Both classes fit cluster 0 best; the one with a good second choice gets that."""
    fit = np.log([[0.9, 0.09, 0.01], [0.6, 0.39, 0.01]])
    assert name_clusters(fit).tolist() == [0, 1]
    assert name_clusters(fit[::-1]).tolist() == [1, 0]


@given(fits, st.randoms(use_true_random=False))
def test_names_of_clusters_and_classes_do_not_matter(fit: Any, random: Any) -> None:
    rows, columns = ([*range(n)] for n in fit.shape)
    random.shuffle(rows)
    random.shuffle(columns)
    cluster_of, moved = name_clusters(fit), name_clusters(fit[np.ix_(rows, columns)])
    assert len(set(cluster_of)) == len(fit)
    total = fit[np.arange(len(fit)), cluster_of].sum()
    assert fit[rows, np.array(columns)[moved]].sum() == pytest.approx(total)
    expected = doubts(fit, cluster_of)[np.ix_(rows, rows)]
    place = np.argsort(columns)[cluster_of[rows]]
    np.testing.assert_allclose(doubts(fit[np.ix_(rows, columns)], place), expected)


@given(fits)
def test_doubts(fit: Any) -> None:
    found = doubts(fit, name_clusters(fit))
    assert ((found >= 0) & (found <= 0.5 + 1e-9)).all()  # nothing is more probable than the best assignment
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    assert not np.diag(found).any()


def test_evidence_adds_up() -> None:
    around = np.array([[0.8, 0.2], [0.5, 0.5], [0.0, 1.0]])
    fit = evidence(around, np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(fit[0], np.log(around[0] + 1e-3) + np.log(around[1] + 1e-3))
    assert np.isfinite(fit).all()


def test_surroundings_are_shares(planted: Callable[..., Any]) -> None:
    s, truth = planted([100, 50, 50], leak=0.3)
    around = surroundings(s[::7], shares_of(s, truth, 4))
    np.testing.assert_allclose(around.sum(axis=1), 1)
    assert not around[:, 3].any()
    assert (around.argmax(axis=1) == truth[::7]).mean() > 0.9


def test_an_outlier_is_read_from_its_wider_neighborhood() -> None:
    """A point that is nearly alone in its best field, the other one being of cluster 1."""
    from scipy import sparse

    s = sparse.csr_array(np.array([[0.99, 0.01], [0, 1], [0, 1], [0, 1]], np.float32))
    around = surroundings(s[:1], shares_of(s, np.array([0, 1, 1, 1]), 2))
    np.testing.assert_allclose(around, [[(1 + 0.25) / 2, 0.75 / 2]])


def test_confidence(planted: Callable[..., Any], some_labels: Callable[..., Any]) -> None:
    found = []
    for seed in range(10):
        s, truth = planted([100, 100, 100, 100], leak=0.02, seed=seed)
        label = some_labels(truth, 1, seed)
        sure, rivals = confidence(s, truth, label, 4)
        assert (sure > 0.99).all()
        assert (rivals != np.arange(4)).all()
        label[np.flatnonzero(label == 2)] = -1
        label[np.flatnonzero(truth == 3)[50]] = 2  # the only label of 2 is a 3
        sure, rivals = confidence(s, truth, label, 4)
        found.append([sure[[0, 1]].min(), sure[[2, 3]].max(), rivals[[2, 3]].tolist() == [3, 2]])
    known, swapped, named = np.mean(found, axis=0)  # over 20 seeds of one draw 0.97 +- 0.03, 0.5 +- 0.2 and 0.95
    assert known > 0.9
    assert swapped < 0.8
    assert named > 0.6


def test_confidence_beside_an_unknown_class(planted: Callable[..., Any], some_labels: Callable[..., Any]) -> None:
    s, truth = planted([100, 100, 100])
    label = np.where(truth == 2, -1, some_labels(truth, 2))
    sure, rivals = confidence(s, truth, label, 2)
    assert sure.shape == (2,)
    assert (sure > 0.99).all()
    assert rivals.tolist() == [1, 0]
