"""Statistics of runs and calibration error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Summary:
    """Mean, standard error and standard deviation of runs; the latter two are NaN for a single run."""

    mean: float
    sem: float
    std: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Summarize runs.

        Examples
        --------
        >>> Summary.of([1.0, 3.0])
        Summary(mean=2.0, sem=1.0, std=1.4142135623730951, runs=2)
        """
        n = len(values)
        std = float(np.std(values, ddof=1)) if n > 1 else math.nan
        return cls(float(np.mean(values)), std / math.sqrt(n), std, n)

    def distance(self, other: Summary) -> float:
        """Return the difference of the means in units of the joint standard error; NaN if unknown."""
        joint = math.hypot(self.sem, other.sem)
        return (self.mean - other.mean) / joint if joint > 0 else math.nan


def calibration_error(probability: npt.ArrayLike, right: npt.ArrayLike, n_bins: int = 15) -> float:
    """Return the expected calibration error, the mean difference between probability and accuracy.

    Parameters
    ----------
    probability : (N,) array
        Probabilities of the predicted classes.
    right : (N,) array of bool
        Whether the predictions are correct.
    n_bins : int
        Number of bins of equal width.

    Examples
    --------
    >>> calibration_error([0.8, 0.8, 0.8, 0.8], [True, True, True, False])
    0.05...
    """
    probability, right = np.asarray(probability, float), np.asarray(right, float)
    bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, probability - right)).sum() / probability.size)
