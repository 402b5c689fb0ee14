from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture
from tnesi.data import BlockSource, DataError
from tnesi.data.block_source import ProgressSource

X = np.random.default_rng(0).poisson(3.0, (100, 6)) + 1


def blocks() -> Any:
    return (X[i : i + 7] for i in range(0, 100, 7))


def test_a_function_can_be_asked_again() -> None:
    source = BlockSource(blocks, 100)
    for size in (1, 10, 1000):
        read = list(source.blocks(size))
        np.testing.assert_array_equal(np.concatenate(read), X)
        assert max(map(len, read)) == min(size, 100)


def test_an_iterator_can_be_read_once() -> None:
    source = BlockSource(blocks(), 100)
    np.testing.assert_array_equal(source.load(), X)
    with pytest.raises(DataError, match="only once"):
        source.load()


def test_learning_from_blocks() -> None:
    found = PoissonMixture(5, random_state=0).fit(BlockSource(blocks(), 100))
    expected = PoissonMixture(5, random_state=0).fit(X)
    np.testing.assert_array_equal(found.means_, expected.means_)
    with pytest.raises(ValueError, match="pass the correct number of rows"):
        PoissonMixture(5).fit(BlockSource(blocks(), 99))


def test_bad_blocks() -> None:
    with pytest.raises(DataError, match="no blocks"):
        BlockSource([], 5)
    with pytest.raises(DataError, match="two-dimensional arrays of numbers"):
        BlockSource([np.zeros(3)], 5)
    with pytest.raises(DataError, match="two-dimensional arrays of numbers"):
        BlockSource([np.array([["a"]])], 5)
    with pytest.raises(DataError, match="0 rows"):
        BlockSource([X], 0)


def test_progress() -> None:
    told: list[Any] = []
    source = ProgressSource(BlockSource(blocks, 100), lambda *what: told.append(what))
    np.testing.assert_array_equal(source.load(), X)
    assert told == [("reading rows", 100, 100)]
    list(source.blocks(50))
    assert told[1:] == [("reading rows", 50, 100), ("reading rows", 100, 100)]


def test_all_blocks_are_like_the_first() -> None:
    with pytest.raises(DataError, match="has type float64, but the first one has uint8"):
        PoissonMixture(5).fit(BlockSource([X[:50].astype(np.uint8), X[50:] + 0.5], 100))
    with pytest.raises(DataError, match="has 5 columns, but the first one has 6"):
        PoissonMixture(5).fit(BlockSource([X[:50], X[50:, :5]], 100))
    with pytest.raises(DataError, match="n_rows is None: pass the total"):
        BlockSource([X], None)  # type: ignore[arg-type]
