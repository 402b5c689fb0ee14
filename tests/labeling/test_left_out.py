"""Labels are held out in turn, and each class always keeps one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.labeling.left_out import LeftOut

label_sets = st.lists(st.integers(-1, 4), min_size=5, max_size=120).map(lambda found: np.array([*range(5), *found]))


@given(label_sets, st.integers(0, 99))
def test_parts_are_of_all_classes(label: Any, seed: int) -> None:
    test = LeftOut.of(label, 5, seed)
    np.testing.assert_array_equal(test.label, label[test.points])
    np.testing.assert_array_equal(test.points, np.flatnonzero(label >= 0))
    count = np.bincount(test.label, minlength=5)
    assert ((test.part == -1) == (count == 1)[test.label]).all()
    rounds = test.rounds()
    for out, rest in rounds:
        assert (out != rest).all()
        assert out.any()
        assert np.bincount(test.label[rest], minlength=5).min() > 0
        in_part = np.bincount(test.label[out], minlength=5)
        assert (np.abs(in_part - count / len(rounds))[count > 1] < 1).all()
    left_out = sum(out.astype(int) for out, _ in rounds)
    np.testing.assert_array_equal(left_out, (test.part >= 0).astype(int))


def test_the_only_label_of_a_class_is_never_left_out() -> None:
    assert LeftOut.of(np.array([0, 1, -1, 2]), 3, 0).rounds() == []
    test = LeftOut.of(np.array([0, 1, 1, 2]), 3, 0)
    assert [test.label[out].tolist() for out, _ in test.rounds()] == [[1], [1]]


def test_the_same_seed_leaves_out_the_same() -> None:
    label = np.arange(60) % 4
    one, same, other = (LeftOut.of(label, 4, seed).part for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_labels_of_one_stretch_are_left_out_row_by_row() -> None:
    """The first round has the last rows."""
    label = np.r_[np.full(40, -1), np.arange(60) % 4, np.full(40, -1)]
    np.testing.assert_array_equal(LeftOut.of(label, 4, 0).part, np.repeat([2, 1, 0], 20))
    label = np.full(100, -1)
    label[[3, 10, 11, 40, 42, 49]], label[[4, 5]] = 0, 1
    assert LeftOut.of(label, 2, 0).part.tolist() == [1, 1, 0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("before", [0.0, 0.5, 1.0])
def test_expected_accuracy_is_between_what_was_believed_and_what_was_seen(before: float) -> None:
    alone = LeftOut.of(np.arange(3), 3, 0)
    assert alone.expected(np.zeros(3), before) == before
    many = LeftOut.of(np.arange(3000) % 3, 3, 0)
    right = (np.arange(3000) % 10 < 8).astype(float)
    seen = right[many.part >= 0].mean()
    assert seen == pytest.approx(0.8, abs=0.03)
    assert many.expected(right, before) == pytest.approx(seen, abs=3e-3)


def test_preference() -> None:
    few, many = (LeftOut.of(np.arange(n * 3) % 3, 3, 0) for n in (1, 100))
    none = np.zeros(3)
    assert few.prefers(none, 0.99, none, 0.9)
    assert not few.prefers(none, 0.9, none, 0.99)
    good, better = np.arange(300) < 200, np.arange(300) < 250
    assert many.prefers(better.astype(float), 0.5, good.astype(float), 0.5)
    assert not many.prefers(good.astype(float), 0.99, better.astype(float), 0.9)
    by_chance = np.where(np.arange(300) % 2, good, np.arange(300) >= 97).astype(float)  # 3 more, but very different
    assert by_chance.sum() > good.sum()
    assert not many.prefers(by_chance, 0.5, good.astype(float), 0.5)


def test_of_many_labels_a_third_is_left_out_once() -> None:
    label = np.arange(1000) % 4
    test = LeftOut.of(label.astype(np.int32), 4, 0)
    [(out, rest)] = test.rounds()
    assert (np.bincount(label[out]) == 84).all()
    assert (out != rest).all()
    assert len(LeftOut.of(label[:796].astype(np.int32), 4, 0).rounds()) == 3
    assert len(LeftOut.of((np.arange(1000) % 10).astype(np.int32), 10, 0).rounds()) == 1
    assert len(LeftOut.of((np.arange(999) % 10).astype(np.int32), 10, 0).rounds()) == 3
