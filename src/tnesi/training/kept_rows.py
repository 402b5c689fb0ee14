"""Rows of a stream that are kept to relearn the second layer with the current fields.

Learning from few labels takes many rows at once, whose activities change with the fields. A classifier therefore keeps
the labeled rows and a sample of the others (priority sampling). A row has the weight w = 2^(-age / half_life) times its
sample weight, and the priority w / u with u uniform in (0, 1]; the rows of highest priority are kept. Each then has the
weight max(w, tau), where tau is the highest priority that was not kept, so that sums over the kept rows are unbiased
estimates of sums over all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tnesi.model.rows import Matrix, row_hashes
from tnesi.types import Array

_LABELS_LAST = np.log(8)
"""A label is dropped in favor of newer ones of its class when it is three half-lives older."""
_WAITING = 4
"""Rows are selected again after one new row for this many rows that may be kept."""


class Kept(NamedTuple):
    """Rows with their labels.

    Attributes
    ----------
    x : (N, D) array, or csr_array
        Checked rows.
    hashes : (N,) array of uint64
        Hashes of the rows.
    label : (N,) array of int32
        Class numbers, -1 for unlabeled.
    number : (N,) array
        Indices of the rows in the stream.
    log_weight, priority : (N,) arrays
        log w and log (w / u), both relative to the clock.
    born : (N,) array
        The clock at the arrival of each row.
    """

    x: Matrix
    hashes: Array
    label: Array
    number: Array
    log_weight: Array
    priority: Array
    born: Array

    def take(self, which: Array) -> Kept:
        return Kept(self.x[which], *(array[which] for array in self[1:]))


@dataclass
class KeptRows:
    """The kept rows of a stream.

    Attributes
    ----------
    parts : list of Kept
        Rows in order of arrival: those of the last selection, then all later ones.
    clock : float
        -log of the decay of the first row's weight.
    threshold : float
        log tau, relative to the clock.
    n_seen : int
        Number of rows of the stream.
    """

    rng: np.random.Generator
    parts: list[Kept] = field(default_factory=list)
    clock: float = 0.0
    threshold: float = -np.inf
    n_seen: int = 0

    def add(
        self,
        x: Matrix,
        label: Array,
        weight: Array | None,
        half_life: float | None,
        most: int,
        present: Array | None = None,
    ) -> None:
        """Add the rows of a batch; `most` is the number of rows to keep in total.

        `present` is a mask of these rows among the rows of the batch; None means that these are all.
        """
        n = label.size
        total = float(n if weight is None else weight.sum(dtype=np.float64))
        self.clock += 0.0 if half_life is None else total * float(np.log(2)) / half_life
        log_weight = np.full(n, self.clock) + (0.0 if weight is None else np.log(weight.astype(np.float64)))
        priority = log_weight - np.log1p(-self.rng.random(n))
        number = self.n_seen + (np.arange(n) if present is None else np.flatnonzero(present))
        born = np.full(n, self.clock)
        self.parts.append(Kept(x, row_hashes(x, 0, 1), label, number, log_weight, priority, born))
        self.n_seen += n if present is None else present.size
        if sum(part.label.size for part in self.parts[1:]) * _WAITING > most:
            kept, self.threshold = self._chosen(most)
            self.parts = [kept]

    def sample(self, most: int) -> tuple[Kept, Array | None]:
        """Return the kept rows and their relative weights (None: all equal)."""
        kept, threshold = self._chosen(most)
        log_weight = np.maximum(kept.log_weight, threshold)
        log_weight -= log_weight.max()
        return kept, None if (log_weight == 0).all() else np.exp(log_weight).astype(np.float32)

    def renumber(self, place: Array) -> None:
        """Renumber the classes."""
        to = np.append(place, -1).astype(np.int32)
        self.parts = [part._replace(label=to[part.label]) for part in self.parts]

    def renumber_rows(self, number: Array, n_seen: int) -> None:
        """Map the row indices to those of a stream of `n_seen` rows."""
        self.parts = [part._replace(number=number[part.number]) for part in self.parts]
        self.n_seen = n_seen

    def _chosen(self, most: int) -> tuple[Kept, float]:
        """Return the rows to keep, and log tau."""
        x, *others = zip(*self.parts, strict=True)
        rows = _joined(Kept(_stacked(x), *map(np.concatenate, others)))
        labeled = rows.label >= 0
        room = max(most // 2, most - int(np.sum(~labeled)))
        stays = _best(rows, labeled & _newest_labels(rows), room)
        stays |= _best(rows, ~labeled, most - int(stays.sum()))
        gone = rows.priority[~stays & ~labeled]
        return rows.take(stays), max(self.threshold, float(gone.max(initial=-np.inf)))


def _stacked(blocks: Sequence[Matrix]) -> Matrix:
    dense: list[Array] = [block for block in blocks if not sparse.issparse(block)]
    if len(dense) == len(blocks):
        return np.concatenate(dense)
    rows: list[sparse.csr_array] = [sparse.csr_array(block.astype(np.float32)) for block in blocks]
    return sparse.csr_array(sparse.vstack(rows))


def _joined(rows: Kept) -> Kept:
    """Merge equal labeled rows: their weights add up, and the newest label wins."""
    labeled = np.flatnonzero(rows.label >= 0)[::-1]
    _, newest, which = np.unique(rows.hashes[labeled], return_index=True, return_inverse=True)
    if newest.size == labeled.size:
        return rows
    total = np.full(newest.size, -np.inf)
    np.logaddexp.at(total, which, rows.log_weight[labeled])
    log_weight = rows.log_weight.copy()
    log_weight[labeled[newest]] = total
    stays = rows.label < 0
    stays[labeled[newest]] = True
    return rows._replace(log_weight=log_weight).take(stays)


def _best(rows: Kept, among: Array, most: int) -> Array:
    """Return which of some rows to keep: those of highest priority, balanced over the classes."""
    index = np.flatnonzero(among)
    index = index[np.lexsort((-rows.priority[index], rows.label[index]))]
    label = rows.label[index]
    rank = np.arange(index.size) - np.searchsorted(label, label)
    chosen = np.zeros(among.size, bool)
    chosen[index[np.lexsort((-rows.priority[index], rank))[:most]]] = True
    return chosen


def _newest_labels(rows: Kept) -> Array:
    """Return which labels are not much older than the newest label of their class."""
    newest = np.full(rows.label.max(initial=-1) + 2, -np.inf)
    np.maximum.at(newest, rows.label, rows.born)
    out: Array = rows.born >= newest[rows.label] - _LABELS_LAST
    return out
