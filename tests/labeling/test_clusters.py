"""Clusters are found without labels, and do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.labeling.clusters import agreement, find_clusters, refine


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_found(planted: Callable[..., Any], seed: int) -> None:
    s, truth = planted([300] * 5, seed=seed)
    found = find_clusters(s, None, 5, seed, 1)
    assert found.place.dtype == np.int32
    assert agreement(found.place, truth, 5) > 0.97
    assert found.agreement > 0.97


def test_threads_do_not_matter_but_seeds_do(planted: Callable[..., Any]) -> None:
    s, _ = planted([80] * 10, ring=True)
    one, two, other = (find_clusters(s, None, 10, *given) for given in ((3, 1), (3, 2), (4, 1)))
    np.testing.assert_array_equal(one.place, two.place)
    assert one.agreement == two.agreement
    assert (one.place != other.place).any()


def test_runs_disagree_where_there_are_no_clusters(planted: Callable[..., Any]) -> None:
    s, _ = planted([800])
    assert find_clusters(s, None, 5, 0, 1).agreement < 0.9


def test_points_of_hardly_any_weight_decide_nothing(planted: Callable[..., Any]) -> None:
    s, truth = planted([200, 200, 200, 800, 800])
    heavy = truth < 3
    weight = np.where(heavy, 1.0, 1e-6).astype(np.float32)
    place, without = (find_clusters(s, w, 3, 0, 1).place[heavy] for w in (weight, None))
    assert agreement(place, truth[heavy], 3) > 0.97
    assert agreement(without, truth[heavy], 3) < 0.9  # over 20 seeds at most 0.66


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.permutations(range(5)), st.integers(0, 99))
def test_agreement_does_not_depend_on_names(places: list[int], names: list[int], seed: int) -> None:
    one, rng = np.array(places), np.random.default_rng(seed)
    other, weight = rng.integers(5, size=one.size), rng.random(one.size) + 0.1
    assert agreement(one, np.array(names)[one], 5) == pytest.approx(1)
    value = agreement(one, other, 5, weight)
    assert agreement(one, np.array(names)[other], 5, weight) == pytest.approx(value)
    assert agreement(other, one, 5, weight) == pytest.approx(value)
    assert weight.max() / weight.sum() - 1e-9 <= value <= 1 + 1e-9


def test_refining_hears_the_labels(planted: Callable[..., Any], some_labels: Callable[..., Any]) -> None:
    s, truth = planted([150] * 4)
    place = np.where(np.arange(truth.size) % 10 == 0, (truth + 1) % 4, truth)  # a tenth is in the wrong cluster
    layer = refine(place, s, some_labels(truth, 3), None, 4, 0, 1)
    assert layer.sizes is not None
    assert layer.sizes.sum() == pytest.approx(1)
    assert np.mean(layer.posterior(s).argmax(axis=1) == truth) > 0.97
