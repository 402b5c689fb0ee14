"""Mean, standard error and standard deviation of runs, and their distance from the paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    """Of a number of runs; `sem` and `std` are NaN for a single one."""

    mean: float
    sem: float
    std: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Summarise runs.

        Examples
        --------
        >>> Summary.of([1.0, 3.0])
        Summary(mean=2.0, sem=1.0, std=1.4142135623730951, runs=2)
        """
        n = len(values)
        std = float(np.std(values, ddof=1)) if n > 1 else math.nan
        return cls(float(np.mean(values)), std / math.sqrt(n), std, n)

    def distance(self, other: Summary) -> float:
        """Return the difference of the means in units of the joint standard error; NaN where one is unknown."""
        joint = math.hypot(self.sem, other.sem)
        return (self.mean - other.mean) / joint if joint > 0 else math.nan
