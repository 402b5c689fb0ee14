"""Neighborhood search: a point looks only at the fields near its best one. Its cost does not grow with C.

Every field has a list of the fields that share most points with it (they were together in some K^(n)). The points
whose best field is c look at the list of c and at their own K^(n), so K^(n) never gets worse and the free energy
never falls (the criterion of the paper's eq. 15). The lists are made anew from the activities every third iteration;
that costs N C'^2 counts and no arithmetic on the data at all. Points of one field are taken together, as a
small dense product whose rows stay in cache.

Where nothing is known of a point yet, a coarse mixture of about 2 sqrt(C) cells over the fields finds the
neighborhood: a point looks at the fields of its two best cells. One that is explained badly by what it found there
(worse than nearly all training points) looks at more of them: it is such points whose best field lies elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tnesi import kernels
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior
from tnesi.model.rows import Rows
from tnesi.search.exact import best_of_all
from tnesi.types import Array

N_NEIGHBORS = 64
"""Length of a field's list."""
ALL_BELOW = 512
"""With so few fields the neighborhood is all of them."""
_LISTS_LAST = 3
"""Iterations after which the lists are made anew."""
_CELLS_PER_ROOT = 2
_CELL_ITERATIONS = 3
_CELLS_PER_FIELD = 3
_NEAR, _FAR = 2, 9
"""Cells that every point looks at, and those that a doubtful one looks at."""
_DOUBTFUL_SHARE = 0.04
"""Points are doubtful that are explained worse than all but this share of the training points."""
_DOUBTFUL_AT_START = 0.5


def look(
    fields: Fields, rows: Rows, prior: Prior | None, group: Array, lists: Array, out: Activities, n_threads: int
) -> None:
    """Improve `out` by the fields in ``lists[group[n]]`` for each point n."""
    kernels.search_groups(
        rows.arrays,
        rows.scale,
        fields.log_w,
        fields.base(prior),
        None if prior is None else prior.row,
        np.ascontiguousarray(group),
        lists,
        out.ids,
        out.s,
        out.log_sum,
        n_threads,
    )


def look_at_all(fields: Fields, rows: Rows, prior: Prior | None, truncation: int, n_threads: int) -> Activities:
    """Return the best of all fields; for few fields as fast as BLAS, and the same bits in any company."""
    if rows.is_sparse:
        return best_of_all(fields, rows, prior, truncation, n_threads)
    out = Activities.empty(len(rows), truncation)
    everything = np.arange(len(fields), dtype=np.int32)[None]
    look(fields, rows, prior, np.zeros(len(rows), np.int32), everything, out, n_threads)
    return out


@dataclass(frozen=True)
class Cells:
    """A coarse mixture over the fields: where to start looking.

    Attributes
    ----------
    centers : Fields
    lists : (n_cells, longest) array of int32
        The fields of each cell, -1 for an empty place. A field is in several cells.
    """

    centers: Fields
    lists: Array

    @classmethod
    def over(cls, fields: Fields, n_threads: int) -> Cells:
        """Learn the cells from the fields as data, by a few iterations of EM."""
        as_data = fields.as_rows()
        n_cells = min(len(fields), int(_CELLS_PER_ROOT * len(fields) ** 0.5))
        width = min(_CELLS_PER_FIELD, n_cells)
        centers = fields.take(np.linspace(0, len(fields) - 1, n_cells).astype(int))
        for _ in range(_CELL_ITERATIONS):
            activities = look_at_all(centers, as_data, None, width, n_threads)
            centers, _ = centers.m_step(as_data, None, activities, n_threads)
        member = look_at_all(centers, as_data, None, width, n_threads).ids
        order = np.argsort(member.ravel(), kind="stable")
        cell = member.ravel()[order]
        place = np.arange(cell.size) - np.searchsorted(cell, cell)
        lists = np.full((n_cells, int(place.max()) + 1), -1, np.int32)
        lists[cell, place] = order // width
        return cls(centers, lists)

    def order(self, fields: Fields, n_threads: int) -> Array:
        """Return the fields in an order that puts like ones together: by cell, the cells along a chain."""
        own = self.nearest(fields.as_rows(), n_threads)[:, 0]
        likeness = self.centers.inputs(self.centers.as_rows(), n_threads) + self.centers.log_w_sum
        rank = np.zeros(len(self.centers), int)
        here = 0
        for i in range(len(rank)):
            rank[here] = i
            likeness[:, here] = -np.inf
            here = int(likeness[here].argmax())
        return np.argsort(rank[own], kind="stable")

    def renumbered(self, order: Array) -> Cells:
        """Return the same cells for fields that were put in another order."""
        place = np.empty(order.size + 1, np.int32)
        place[order], place[-1] = np.arange(order.size), -1
        return Cells(self.centers, place[self.lists])

    def nearest(self, rows: Rows, n_threads: int) -> Array:
        """Return the few best cells of each point, best first."""
        return look_at_all(self.centers, rows, None, min(_FAR, len(self.centers)), n_threads).ids


@dataclass
class NeighborSearch:
    """Lists of near fields, and the search over them."""

    truncation: int
    n_threads: int
    n_neighbors: int = N_NEIGHBORS
    lists: Array | None = None
    doubtful_below: float | None = None
    age: int = field(default=0, repr=False)
    _cells: Cells | None = field(default=None, repr=False)
    name = "neighbors"
    uses_blas = False

    def arrange(self, fields: Fields) -> Fields:
        """Put like fields next to each other in memory: a list's rows are then in the cache already."""
        if len(fields) <= ALL_BELOW:
            return fields
        cells = Cells.over(fields, self.n_threads)
        order = cells.order(fields, self.n_threads)
        self._cells = cells.renumbered(order)
        return fields.take(order)

    def begin(self, fields: Fields) -> None:
        """Prepare for points of which nothing is known."""
        self.lists = self.doubtful_below = None
        if self._cells is None:
            self.make_cells(fields)

    @property
    def looks_twice(self) -> bool:
        """Whether points that have been found look again when there are lists."""
        return self._cells is not None

    def improve(self, fields: Fields, rows: Rows, prior: Prior | None, out: Activities) -> None:
        """Renew K^(n) after the fields changed, never to a worse one."""
        if self.lists is None:
            out.put(slice(None), self.find(fields, rows, prior))
        else:
            look(fields, rows, prior, out.best, self.lists, out, self.n_threads)

    def that_stays(self, n_fields: int) -> NeighborSearch:
        """Return a search that finds the same fields again: where there are lists, one with empty ones."""
        return self if self.lists is None else replace(self, lists=np.full((n_fields, 1), -1, np.int32))

    def wants_lists(self) -> bool:
        """Count an iteration; return whether the lists have to be made anew after it."""
        if self.lists is None:
            return False
        self.age += 1
        return self.age >= _LISTS_LAST

    def remember(self, ids: Array, n_fields: int) -> None:
        """Make the lists anew from the fields of some points: near are the fields that share points."""
        lists = np.empty((n_fields, self.n_neighbors), np.int32)
        kernels.build_lists(np.ascontiguousarray(ids), lists, self.n_threads)
        self.lists, self.age = lists, 0
        self._cells = None  # the fields are about to move

    def settle(self, fields: Fields, sample: Activities, constant: Array) -> None:
        """Keep what new points will need, at the end of learning; `constant` has sum_d log y_d! of the sample."""
        self.renew(fields, sample.ids, sample.log_sum - constant)

    def renew(self, fields: Fields, ids: Array, quality: Array) -> None:
        """Do so for fields that go on learning: from the fields of some points, and how well these are explained."""
        if len(fields) > ALL_BELOW:
            self.remember(ids, len(fields))
            self.doubtful_below = float(np.quantile(quality, _DOUBTFUL_SHARE))
        self.make_cells(fields)

    def make_cells(self, fields: Fields) -> None:
        """Make the cells from which new points start, where there are many fields."""
        if len(fields) > ALL_BELOW:
            self._cells = Cells.over(fields, self.n_threads)

    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        """Return K^(n) of new points: by the cells, then by the lists."""
        if len(fields) <= ALL_BELOW:
            return look_at_all(fields, rows, prior, self.truncation, self.n_threads)
        assert self._cells is not None
        out = Activities.empty(len(rows), self.truncation)
        cells = self._cells.nearest(rows, self.n_threads)
        for cell in cells.T[:_NEAR]:
            look(fields, rows, prior, cell, self._cells.lists, out, self.n_threads)
        self._look_further(fields, rows, prior, cells, self._cells.lists, out)
        if self.lists is not None:
            look(fields, rows, prior, out.best, self.lists, out, self.n_threads)
        return out

    def _look_further(
        self, fields: Fields, rows: Rows, prior: Prior | None, cells: Array, lists: Array, out: Activities
    ) -> None:
        # how well the points are explained: their free energy, up to what all have in common
        quality = out.log_sum - rows.log_factorials(self.n_threads)
        bar = np.quantile(quality, _DOUBTFUL_AT_START) if self.doubtful_below is None else self.doubtful_below
        doubtful = np.flatnonzero(quality < bar)
        some, prior = rows.take(doubtful), None if prior is None else prior.take(doubtful)
        found = Activities(out.ids[doubtful], out.s[doubtful], out.log_sum[doubtful])
        for cell in cells[doubtful].T[_NEAR:]:
            look(fields, some, prior, cell, lists, found, self.n_threads)
        out.ids[doubtful], out.s[doubtful], out.log_sum[doubtful] = found.ids, found.s, found.log_sum
