"""Neighborhood search: a row is only compared with fields near its best one. The cost does not grow with C.

Every field has a list of its neighbors, the fields that share most rows with it (they occur together in some K^(n)).
Rows whose best field is c are compared with the list of c and their own K^(n), so K^(n) never gets worse and the free
energy never decreases (the criterion of the paper's eq. 15). The lists are rebuilt from the activities every third
iteration, which takes N C'^2 counts and no arithmetic on the data. Rows with the same best field are processed
together, as a small dense product that stays in cache.

New rows have no best field yet. A coarse mixture of about 2 sqrt(C) cells over the fields finds their neighborhood: a
row is compared with the fields of its two best cells. If these explain it badly (worse than nearly all training rows),
it is compared with the fields of more cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tnesi import kernels
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior
from tnesi.model.rows import Rows
from tnesi.search.base import Search
from tnesi.search.exact import best_of_all
from tnesi.types import Array

N_NEIGHBORS = 64
"""Length of a field's list."""
ALL_BELOW = 512
"""Up to this number of fields, all are compared."""
_LISTS_LAST = 3
"""Iterations after which the lists are rebuilt."""
_CELLS_PER_ROOT = 2
_CELL_ITERATIONS = 3
_CELLS_PER_FIELD = 3
_NEAR, _FAR = 2, 9
"""Cells that are searched for every row, and for doubtful rows."""
_DOUBTFUL_SHARE = 0.04
"""Share of the training rows below whose free energy a row is doubtful."""
_DOUBTFUL_AT_START = 0.5


def search_lists(
    fields: Fields, rows: Rows, prior: Prior | None, group: Array, lists: Array, out: Activities, n_threads: int
) -> None:
    """Improve `out` with the fields in ``lists[group[n]]`` for each row n."""
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


def search_all(fields: Fields, rows: Rows, prior: Prior | None, truncation: int, n_threads: int) -> Activities:
    """Return the best of all fields; as fast as BLAS for few fields, and bits do not depend on the other rows."""
    if rows.is_sparse:
        return best_of_all(fields, rows, prior, truncation, n_threads)
    out = Activities.empty(len(rows), truncation)
    everything = np.arange(len(fields), dtype=np.int32)[None]
    search_lists(fields, rows, prior, np.zeros(len(rows), np.int32), everything, out, n_threads)
    return out


@dataclass(frozen=True)
class Cells:
    """A coarse mixture over the fields, where the search for new rows starts.

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
        """Learn the cells from the fields as data, with a few iterations of EM."""
        as_data = fields.as_rows()
        n_cells = min(len(fields), int(_CELLS_PER_ROOT * len(fields) ** 0.5))
        width = min(_CELLS_PER_FIELD, n_cells)
        centers = fields.take(np.linspace(0, len(fields) - 1, n_cells).astype(int))
        for _ in range(_CELL_ITERATIONS):
            activities = search_all(centers, as_data, None, width, n_threads)
            centers, _ = centers.m_step(as_data, None, activities, n_threads)
        member = search_all(centers, as_data, None, width, n_threads).ids
        order = np.argsort(member.ravel(), kind="stable")
        cell = member.ravel()[order]
        place = np.arange(cell.size) - np.searchsorted(cell, cell)
        lists = np.full((n_cells, int(place.max()) + 1), -1, np.int32)
        lists[cell, place] = order // width
        return cls(centers, lists)

    def order(self, fields: Fields, n_threads: int) -> Array:
        """Return an order of the fields that puts similar ones together: by cell, with the cells along a chain."""
        own = self.nearest(fields.as_rows(), n_threads)[:, 0]
        similarity = self.centers.inputs(self.centers.as_rows(), n_threads) + self.centers.log_w_sum
        rank = np.zeros(len(self.centers), int)
        here = 0
        for i in range(len(rank)):
            rank[here] = i
            similarity[:, here] = -np.inf
            here = int(similarity[here].argmax())
        return np.argsort(rank[own], kind="stable")

    def renumbered(self, order: Array) -> Cells:
        """Return the same cells for reordered fields."""
        place = np.empty(order.size + 1, np.int32)
        place[order], place[-1] = np.arange(order.size), -1
        return Cells(self.centers, place[self.lists])

    def nearest(self, rows: Rows, n_threads: int) -> Array:
        """Return the few best cells of each row, best first."""
        return search_all(self.centers, rows, None, min(_FAR, len(self.centers)), n_threads).ids


@dataclass
class NeighborSearch(Search):
    """Search over lists of neighboring fields."""

    n_neighbors: int = N_NEIGHBORS
    _cells: Cells | None = field(default=None, repr=False)
    name = "neighbors"
    learns_from_rows = True

    def arrange(self, fields: Fields) -> Fields:
        """Put similar fields next to each other in memory, so that the fields of a list share cache lines."""
        if len(fields) <= ALL_BELOW:
            return fields
        cells = Cells.over(fields, self.n_threads)
        order = cells.order(fields, self.n_threads)
        self._cells = cells.renumbered(order)
        return fields.take(order)

    def begin(self, fields: Fields) -> None:
        """Forget the lists, and make cells if `arrange` has not made them."""
        super().begin(fields)
        if self._cells is None:
            self._cells = self._new_cells(fields)

    @property
    def searches_twice(self) -> bool:
        """Whether the initial search is repeated once there are lists."""
        return self._cells is not None

    def improve(self, fields: Fields, rows: Rows, prior: Prior | None, out: Activities) -> None:
        """Update K^(n) after the fields changed; it never gets worse."""
        if self.lists is None:
            out.put(slice(None), self.find(fields, rows, prior))
        else:
            search_lists(fields, rows, prior, out.best, self.lists, out, self.n_threads)

    def frozen(self, n_fields: int) -> NeighborSearch:
        """Return a search with empty lists, if there are lists."""
        return self if self.lists is None else replace(self, lists=np.full((n_fields, 1), -1, np.int32))

    def needs_lists(self) -> bool:
        """Count an iteration; return whether the lists must be rebuilt after it."""
        if self.lists is None:
            return False
        self.age += 1
        return self.age >= _LISTS_LAST

    def build_lists(self, ids: Array, n_fields: int) -> None:
        """Build the lists from the fields of some rows: neighbors are fields that share rows."""
        lists = np.empty((n_fields, self.n_neighbors), np.int32)
        kernels.build_lists(np.ascontiguousarray(ids), lists, self.n_threads)
        self.lists, self.age = lists, 0
        self._cells = None  # outdated once the fields change

    def prepare(self, fields: Fields, ids: Array, quality: Array) -> None:
        """Prepare for new rows after learning, from the fields of some rows and how well these explain them."""
        if len(fields) > ALL_BELOW:
            self.build_lists(ids, len(fields))
            self.doubtful_below = float(np.quantile(quality, _DOUBTFUL_SHARE))
        self._cells = self._new_cells(fields)

    def restored(self, fields: Fields) -> NeighborSearch:
        """Return a search with the same lists, and the cells of the fields."""
        return replace(self, _cells=self._new_cells(fields))

    def _new_cells(self, fields: Fields) -> Cells | None:
        """Return the cells that the search for new rows starts from, if there are many fields."""
        return Cells.over(fields, self.n_threads) if len(fields) > ALL_BELOW else None

    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        """Return K^(n) of new rows: from the cells, then from the lists."""
        if len(fields) <= ALL_BELOW:
            return search_all(fields, rows, prior, self.truncation, self.n_threads)
        assert self._cells is not None
        out = Activities.empty(len(rows), self.truncation)
        cells = self._cells.nearest(rows, self.n_threads)
        for cell in cells.T[:_NEAR]:
            search_lists(fields, rows, prior, cell, self._cells.lists, out, self.n_threads)
        self._search_doubtful(fields, rows, prior, cells, self._cells.lists, out)
        if self.lists is not None:
            search_lists(fields, rows, prior, out.best, self.lists, out, self.n_threads)
        return out

    def _search_doubtful(
        self, fields: Fields, rows: Rows, prior: Prior | None, cells: Array, lists: Array, out: Activities
    ) -> None:
        # how well the fields explain the rows: their free energy, up to a constant
        quality = out.log_sum - rows.log_factorials(self.n_threads)
        bar = np.quantile(quality, _DOUBTFUL_AT_START) if self.doubtful_below is None else self.doubtful_below
        doubtful = np.flatnonzero(quality < bar)
        some, prior = rows.take(doubtful), None if prior is None else prior.take(doubtful)
        found = Activities(out.ids[doubtful], out.s[doubtful], out.log_sum[doubtful])
        for cell in cells[doubtful].T[_NEAR:]:
            search_lists(fields, some, prior, cell, lists, found, self.n_threads)
        out.ids[doubtful], out.s[doubtful], out.log_sum[doubtful] = found.ids, found.s, found.log_sum
