"""Validation of parameters and input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_non_negative, validate_data

from tnesi.errors import InvalidDataError, InvalidParameterError
from tnesi.model.rows import Matrix
from tnesi.system.devices import Device, is_tensor, on_host
from tnesi.system.interrupt import delay_interrupt
from tnesi.types import Array

MOST_FEATURES = 2**31 - 1


def check_integer(name: str, value: Any, minimum: int, alternatives: str = "", *, most: int | None = None) -> None:
    fits = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= minimum
    too_many = fits and most is not None and int(value) > most
    if not fits or too_many:
        limit = f" and at most {most}" if too_many else ""
        reject(name, value, f"pass an integer of at least {minimum}{limit}{alternatives}")


def check_real(name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False) -> None:
    fits = isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high
    if not fits or (open_low and float(value) == low):
        least = "more than" if open_low else "at least"
        most = "" if high == np.inf else f" and at most {high:g}"
        reject(name, value, f"pass a number of {least} {low:g}{most}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        reject(name, value, f"pass one of {', '.join(map(repr, choices))}")


def reject(name: str, value: object, advice: str) -> NoReturn:
    """Raise an error about the value of a parameter."""
    raise InvalidParameterError(
        "{" + name + "}={given}", parameter=name, given=repr(value), advice=advice.replace("{", "{{").replace("}", "}}")
    )


def check_rows(estimator: BaseEstimator, X: object, device: Device | None = None, *, reset: bool) -> Matrix:
    """Return `X`, finite and non-negative, as uint8, float32 or float64: an array, or a CSR array in canonical form.

    With a `device`, tensors become tensors of uint8 or float32 there.
    """
    if is_tensor(X):
        if device is not None:
            tensor: Matrix = _check_tensor(estimator, X, device, reset=reset)
            return tensor
        X = on_host(X)
    types = [np.float64, np.float32, np.uint8]
    if sparse.issparse(X):
        _check_indices(X)
    checked: Matrix = validate_data(estimator, X, reset=reset, dtype=types, order="C", accept_sparse="csr")
    if sparse.issparse(checked):
        if checked.shape[1] > MOST_FEATURES:
            raise InvalidDataError(
                "X has {n_features} features, but at most {most} are supported",
                parameter="X",
                n_features=checked.shape[1],
                most=MOST_FEATURES,
                advice="use fewer features",
            )
        checked = canonical(checked)
    if checked.shape[1] == 1:
        raise InvalidDataError(
            "n_features = 1, but rows are normalized to a constant sum",
            parameter="X",
            advice="pass at least two features",
        )
    if checked.dtype != np.uint8:
        name = type(estimator).__name__
        check_non_negative(checked, f"{name} (it models counts and intensities; shift or clip the data)")
    return checked


def _check_tensor(estimator: BaseEstimator, X: object, device: Device, *, reset: bool) -> Any:
    """Return `X` as a tensor on a device; only its first row is copied to the memory of the processor."""
    x = device.tensor(X)
    check_rows(estimator, device.array(x[:1]), reset=reset)
    x = x.contiguous() if x.element_size() == 1 and not x.is_floating_point() and x.min() >= 0 else x.float()
    if not x.isfinite().all() or x.min() < 0:
        raise InvalidDataError(
            "X contains NaN, infinity or negative values",
            parameter="X",
            advice="it models counts and intensities: shift or clip the data",
        )
    return x


def _check_indices(X: Any) -> None:
    """Raise an error for indices out of range, which neither SciPy nor the kernels check."""
    if X.format in ("csr", "csc", "bsr"):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise InvalidDataError(
                "the sparse matrix is damaged ({reason})",
                parameter="X",
                reason=error,
                advice="construct it again from its entries",
            ) from error


def canonical(X: Any) -> sparse.csr_array:
    """Return a CSR matrix in canonical form without zeros; `X` is not modified."""
    csr = sparse.csr_array(X)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    if not csr.data.all():
        csr = csr.copy()
        csr.eliminate_zeros()
    return csr


def check_weights(sample_weight: object, X: Matrix, *, rescale: bool = True) -> Array | None:
    """Return the weights as float32.

    With `rescale`, the largest weight becomes 1 if all weights are below 1, or if it exceeds 1e6.
    """
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():  # scikit-learn refuses this from 1.8 on
        raise InvalidDataError(
            "the weights need at least one non-zero number", parameter="sample_weight", advice="omit {sample_weight}"
        )
    if rescale and (0 < weight.max() < 1 or weight.max() > 1e6):
        weight = weight / weight.max()
    return weight.astype(np.float32)


def present_rows(X: Matrix, weight: Array | None) -> tuple[Matrix, Array | None]:
    """Return the rows with a positive weight, and their weights."""
    if weight is None or (weight > 0).all():
        return X, weight
    number = np.flatnonzero(weight > 0)
    return X[number], weight[number]


def outputs_frames(transformer: BaseEstimator) -> bool:
    """Return whether `set_output` or scikit-learn's configuration requests frames, which cannot be sparse."""
    own = getattr(transformer, "_sklearn_output_config", {}).get("transform")
    return bool((own or get_config()["transform_output"]) != "default")


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the estimator if the block fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def whole_batch(estimator: BaseEstimator, *, first: bool) -> AbstractContextManager[None]:
    """Return a context for learning a batch: Ctrl-C undoes the first batch and is delayed in later ones."""
    return unchanged_on_failure(estimator) if first else delay_interrupt()
