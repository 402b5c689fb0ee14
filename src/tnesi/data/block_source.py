"""Rows from a user-supplied iterable of blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np

from tnesi.data.source import BLOCK_ROWS, DataError, Source, check_shape, regroup
from tnesi.model.rows import Matrix
from tnesi.types import Array


class BlockSource(Source):
    """Rows from an iterable of blocks whose total number of rows is known.

    Parameters
    ----------
    blocks : iterable of array-like, or callable
        Blocks of any size, all with the same columns. Pass a function that returns such an iterable to allow more than
        one pass; an iterator allows one, which is enough for `fit`.
    n_rows : int
        Total number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tnesi import PoissonMixture
    >>> rng = np.random.default_rng(0)
    >>> source = BlockSource((rng.poisson(3.0, (100, 8)) + 1 for _ in range(5)), n_rows=500)
    >>> PoissonMixture(10, random_state=0).fit(source).means_.shape
    (10, 8)
    """

    def __init__(self, blocks: Iterable[Any] | Callable[[], Iterable[Any]], n_rows: int) -> None:
        self._again = blocks if callable(blocks) else None
        self._once: Iterator[Any] | None = iter(blocks() if callable(blocks) else blocks)
        if not isinstance(n_rows, Integral):
            raise DataError(
                "{n_rows} is {given!r}", advice="pass the total number of rows", parameter="n_rows", given=n_rows
            )
        first = next(self._once, None)
        if first is None:
            raise DataError("there are no blocks")
        first = _rows(first)
        self._once = itertools.chain([first], self._once)
        self.n_rows, self.n_features = check_shape(n_rows, first.shape[1], "the blocks")
        self.dtype = first.dtype

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        blocks, self._once = self._once, None
        if blocks is None:
            if self._again is None:
                raise DataError(
                    "the blocks can be read only once", advice="pass a function that returns them", parameter="blocks"
                )
            blocks = iter(self._again())
        return regroup((self._checked(_rows(block)) for block in blocks), size)

    def _checked(self, block: Array) -> Array:
        if block.shape[1] != self.n_features:
            raise DataError(
                f"a block has {block.shape[1]} columns, but the first one has {self.n_features}",
                advice="pass blocks with the same columns",
            )
        if self.dtype == np.uint8 and block.dtype not in (np.uint8, np.bool_):
            raise DataError(
                f"a block has type {block.dtype}, but the first one has uint8", advice="convert all to one type"
            )
        return block


class ProgressSource(Source):
    """Another source that reports how many rows have been read."""

    def __init__(self, rows: Source, tell: Callable[[str, int, int | None], None]) -> None:
        self._rows, self._tell = rows, tell
        self.n_rows, self.n_features, self.dtype = rows.n_rows, rows.n_features, rows.dtype
        self.image_shape, self.feature_names = rows.image_shape, rows.feature_names

    def held(self) -> Matrix | None:
        return self._rows.held()

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        done = 0
        for block in self._rows.blocks(size):
            yield block
            done += len(block)
            self._tell("reading rows", done, self.n_rows)


def _rows(block: object) -> Array:
    rows = np.asarray(block)
    if rows.ndim != 2 or rows.dtype.kind not in "buif":
        raise DataError(
            f"a block has shape {rows.shape} and type {rows.dtype}", advice="pass two-dimensional arrays of numbers"
        )
    return rows
