"""MixtureModel: a learned mixture as a value."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior
from tnesi.model.free_energy import FreeEnergy, log_sum_of_joints
from tnesi.model.rows import Matrix, Rows, normalize
from tnesi.types import Array


class RowSearch(Protocol):
    """A search for the best fields of rows; :mod:`tnesi.search` has the implementations, which are dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    name: ClassVar[str]
    uses_blas: ClassVar[bool]
    n_threads: int
    lists: Array | None
    doubtful_below: float | None

    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        """Return the best fields of rows and their activities."""


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """A learned mixture.

    Attributes
    ----------
    fields : Fields
        W, C x D.
    row_sum : float
        A, the sum to which rows are normalized.
    truncation : int
        C', the number of fields that may explain a row.
    search : RowSearch
        The search for these fields.
    """

    fields: Fields
    row_sum: float
    truncation: int
    search: RowSearch

    @property
    def n_fields(self) -> int:
        return len(self.fields)

    @property
    def n_features(self) -> int:
        return int(self.fields.w.shape[1])

    def with_threads(self, n_threads: int) -> Self:
        """Return the same model with another number of threads."""
        return replace(self, search=replace(self.search, n_threads=n_threads))

    def activate(self, X: Matrix, prior: Prior | None = None) -> tuple[Rows, Activities]:
        """Normalize checked rows; return them with their activities."""
        rows = normalize(X, self.row_sum)
        with single_threaded_blas() if self.search.uses_blas else nullcontext():
            return rows, self.search.find(self.fields, rows, prior)

    def free_energy(self, rows: Rows, activities: Activities) -> Array:
        """Return the free energy of each row in nats, a lower bound of its log-likelihood."""
        energy = FreeEnergy.of(rows, None, -np.log(self.n_fields), self.search.n_threads)
        return energy.samples(log_sum_of_joints(self.fields, activities, self.row_sum))

    def sample(self, n: int, random: np.random.RandomState) -> tuple[Array, Array]:
        """Draw rows: a field at random, then Poisson counts around it. Return the counts and the fields."""
        fields = random.randint(self.n_fields, size=n)
        return random.poisson(self.fields.w[fields]).astype(np.float64), fields
