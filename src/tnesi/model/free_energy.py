"""The truncated free energy (eq. 13), a lower bound of the log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.model.rows import Rows
from tnesi.types import Array


@dataclass
class FreeEnergy:
    """Truncated free energy in nats per row (eq. 13): log-sums of I_c plus terms that do not depend on the field."""

    constant: Array
    weight: Array | None

    @classmethod
    def of(cls, rows: Rows, weight: Array | None, log_prior: float, n_threads: int) -> FreeEnergy:
        """Compute the constants; `log_prior` is -log C, or -log K if the second layer provides the rest."""
        return cls(log_prior - rows.row_sum - rows.log_factorials(n_threads), weight)

    def samples(self, log_sum: Array) -> Array:
        return log_sum.astype(np.float64) + self.constant

    def mean(self, log_sum: Array) -> float:
        return float(np.average(self.samples(log_sum), weights=self.weight))


def log_sum_of_joints(fields: Fields, activities: Activities, row_sum: float) -> Array:
    """Return the log-sums with -sum_d W_cd of each field in place of the -A that `FreeEnergy` uses.

    Both are the same after an M-step; under the Hebbian rule the fields only approximately sum to A.
    """
    excess = np.where(activities.s > 0, fields.w_sum[activities.ids].astype(np.float64) - row_sum, np.inf)
    least = excess.min(axis=1, keepdims=True)
    out: Array = activities.log_sum - least[:, 0] + np.log((activities.s * np.exp(least - excess)).sum(axis=1))
    return out
