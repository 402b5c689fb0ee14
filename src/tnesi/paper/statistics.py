"""Statistics of runs and calibration error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Summary:
    """Mean, standard error and standard deviation of runs; the latter two are NaN for a single run.

    Runs that share a mixture are not independent: the standard error is that of the mixtures, NaN for a single one.
    """

    mean: float
    sem: float
    std: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float], mixtures: Sequence[int] | None = None) -> Summary:
        """Summarize runs; `mixtures` names the mixture of each, by default its own.

        Examples
        --------
        >>> Summary.of([1.0, 3.0])
        Summary(mean=2.0, sem=1.0, std=1.4142135623730951, runs=2)
        >>> Summary.of([1.0, 3.0, 2.0, 4.0], mixtures=[0, 0, 1, 1]).sem
        0.5
        """
        n, mean = len(values), float(np.mean(values))
        std = float(np.std(values, ddof=1)) if n > 1 else math.nan
        _, which = np.unique(range(n) if mixtures is None else mixtures, return_inverse=True)
        deviations = np.bincount(which, np.asarray(values) - mean)  # summed over the runs of a mixture
        m = deviations.size
        sem = math.sqrt(m / (m - 1) * float(np.sum(deviations**2))) / n if m > 1 else math.nan
        return cls(mean, sem, std, n)

    def distance(self, other: Summary) -> float:
        """Return the difference of the means in units of the joint standard error; NaN if unknown."""
        joint = math.hypot(self.sem, other.sem)
        return (self.mean - other.mean) / joint if joint > 0 else math.nan


def exchanged_classes(confusion: npt.ArrayLike) -> tuple[int, int]:
    """Return how many pairs of classes exchange their names, and how many classes are mostly taken for another one.

    Parameters
    ----------
    confusion : (K, K) array
        Numbers of rows by true and predicted class.

    Examples
    --------
    >>> exchanged_classes([[9, 1, 0], [1, 2, 7], [0, 8, 2]])
    (1, 2)
    """
    taken_for = np.asarray(confusion).argmax(axis=1)
    k = np.arange(taken_for.size)
    exchanged = (taken_for[taken_for] == k) & (taken_for != k)
    return int(exchanged.sum()) // 2, int(np.sum(taken_for != k))


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
