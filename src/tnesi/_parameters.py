"""One place in which parameters and input are checked; errors say what to do next."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_non_negative, validate_data

Array = npt.NDArray[Any]


def check_integer(name: str, value: Any, minimum: int, alternatives: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
        raise ValueError(f"{name}={value!r}: pass an integer of at least {minimum}{alternatives}")


def check_real(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> None:
    fits = isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high
    if not fits or (open_low and float(value) == low):
        least = "more than" if open_low else "at least"
        most = "" if high == np.inf else f" and at most {high:g}"
        raise ValueError(f"{name}={value!r}: pass a number of {least} {low:g}{most}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: pass one of {', '.join(map(repr, choices))}")


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Array:
    """Return `X` as an array of uint8, float32 or float64, finite and non-negative."""
    checked: Array = validate_data(estimator, X, reset=reset, dtype=[np.float64, np.float32, np.uint8], order="C")
    if checked.shape[1] == 1:
        raise ValueError("n_features = 1: a row is normalised to a constant sum, so it needs at least two features")
    if checked.dtype != np.uint8:
        name = type(estimator).__name__
        check_non_negative(checked, f"{name} (the model is one of counts and intensities; shift or clip the data)")
    return checked


def check_weights(sample_weight: Any, X: Array) -> Array | None:
    """Return the weights as float32, or None where they are all 1."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return weight.astype(np.float32)
