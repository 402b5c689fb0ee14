"""What a search has to provide: `find`, and what it wants to do at certain points of learning.

Learning calls the methods in this order::

    fields = search.arrange(fields)          once, before learning
    search.begin(fields)                     then find() for all rows (and improve(), if `searches_twice`)
    search.improve(fields, rows, prior, out) in every iteration, after the fields changed
    search.build_lists(ids, n_fields)        whenever needs_lists() says so, from a sample of the rows
    search.prepare(fields, ids, quality)     once, after learning, if `learns_from_rows`

The methods with a body suit a search that looks at all fields in every iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior
from tnesi.model.rows import Rows
from tnesi.types import Array


@dataclass
class Search(ABC):
    """A search for the best fields of rows.

    Attributes
    ----------
    truncation : int
        C', the number of fields to find.
    n_threads : int
    lists : array of shape (C, n) or None
        What it has learned about each field. Model files store it and `doubtful_below`, checkpoints it and `age`.
    age : int
        Number of iterations since the lists were built.
    doubtful_below : float or None
        Free energy, up to a constant, below which a row is searched for more thoroughly.
    name : str
        Its name in records and model files.
    uses_blas : bool
        Whether it calls BLAS, which must then run in one thread.
    truncated : bool
        Whether it works on some rows at a time. The others need all rows in memory.
    learns_from_rows : bool
        Whether `prepare` must be called.
    """

    truncation: int
    n_threads: int
    lists: Array | None = None
    age: int = field(default=0, repr=False)
    doubtful_below: float | None = None
    name: ClassVar[str]
    uses_blas: ClassVar[bool] = False
    truncated: ClassVar[bool] = True
    learns_from_rows: ClassVar[bool] = False

    @abstractmethod
    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        """Return the best fields of rows seen for the first time, and their activities."""

    def improve(self, fields: Fields, rows: Rows, prior: Prior | None, out: Activities) -> None:
        """Update the fields of rows after the fields changed."""
        out.put(slice(None), self.find(fields, rows, prior))

    def arrange(self, fields: Fields) -> Fields:
        """Return the fields in the order that suits the search."""
        return fields

    def begin(self, fields: Fields) -> None:
        """Forget the lists, to prepare for other rows."""
        self.lists = self.doubtful_below = None

    @property
    def searches_twice(self) -> bool:
        """Whether the initial search is repeated once there are lists."""
        return False

    def needs_lists(self) -> bool:
        """Count an iteration; return whether the lists must be rebuilt after it."""
        return False

    def build_lists(self, ids: Array, n_fields: int) -> None:
        """Build the lists from the fields of some rows."""
        self.age = 0

    def frozen(self, n_fields: int) -> Search:
        """Return a search whose `improve` leaves the fields of rows as they are."""
        return self

    def prepare(self, fields: Fields, ids: Array, quality: Array) -> None:
        """Prepare for new rows after learning, from the fields of some rows and how well these explain them."""
        self.begin(fields)

    def restored(self, fields: Fields) -> Self:
        """Return a search with the same values, and with what it derives from the fields."""
        return self
