"""A random sample of the rows of a stream, of a size that does not grow with it."""

from __future__ import annotations

import numpy as np

from tnesi.encoders.columns import Table
from tnesi.types import Array


class RowSample:
    """A uniform sample: every row gets a random number, and the rows with the smallest numbers are kept.

    Parameters
    ----------
    size : int
        Maximum number of rows.
    seed : int

    Attributes
    ----------
    rows : Table
        The sample, in the order of the stream.
    n_seen : int
        Number of rows so far.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.n_seen = size, 0
        self.rows = Table([], 0, named=False)
        self._random = np.random.default_rng(seed)
        self._numbers: Array = np.empty(0)

    def add(self, block: Table) -> None:
        """Take the rows of a block into account, which has the columns of earlier ones."""
        numbers = self._random.random(block.n_rows)
        if self.n_seen == 0:
            rows = block
        else:
            rows = _joined(self.rows, block)
            numbers = np.concatenate([self._numbers, numbers])
        if rows.n_rows > self.size:
            kept = np.sort(np.argpartition(numbers, self.size - 1)[: self.size])
            rows, numbers = rows.take(kept), numbers[kept]
        self.rows, self._numbers = rows, numbers
        self.n_seen += block.n_rows


def _joined(sample: Table, block: Table) -> Table:
    if not sample.named and len(block.columns) != len(sample.columns):
        raise ValueError(
            f"X has {len(block.columns)} features, but TableEncoder is expecting {len(sample.columns)} features "
            "as input."
        )
    given = {column.name: column for column in block.columns}
    lacking = [column.name for column in sample.columns if column.name not in given]
    if lacking:
        raise ValueError(f"The block lacks the columns {', '.join(map(repr, lacking[:10]))} of earlier ones.")
    columns = [column.followed_by(given[column.name]) for column in sample.columns]
    return Table(columns, sample.n_rows + block.n_rows, sample.named)
