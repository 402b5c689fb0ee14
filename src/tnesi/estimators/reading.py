"""Conversion of the arguments of `fit` to checked rows."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tnesi.errors import InvalidDataError
from tnesi.estimators.blocks import check_block, checked_blocks, is_out_of_core, shape_of, unwrapped
from tnesi.estimators.parameters import check_rows, check_weights, present_rows
from tnesi.execution.dask.cluster import Cluster
from tnesi.execution.given_rows import GivenRows
from tnesi.execution.spool import check_file, mapped_file, spool
from tnesi.execution.store import ArrayStore, TensorStore
from tnesi.model.rows import usable_rows
from tnesi.system.devices import Device, is_tensor
from tnesi.types import Array


def read_rows(
    estimator: BaseEstimator,
    X: object,
    sample_weight: object,
    cluster: Cluster | None = None,
    device: Device | None = None,
    *,
    reset: bool = True,
    batch: bool = False,
) -> GivenRows:
    """Check the arguments of `fit`, and drop rows without weight.

    Without `reset` the features must match those of the fitted estimator. The weights of a `batch` are not rescaled, so
    that they are comparable between batches.
    """
    X = unwrapped(X)
    if cluster is not None and type(X).__module__.startswith("dask.array"):
        return _read_on_cluster(estimator, X, sample_weight, cluster)
    if is_out_of_core(X):
        given = _read_out_of_core(estimator, X, sample_weight, cluster, reset=reset, batch=batch)
        return given._replace(device=device)
    X = check_rows(estimator, X, device, reset=reset)
    weight = check_weights(sample_weight, X, rescale=not batch)
    present = None if weight is None or (weight > 0).all() else weight > 0
    X, weight = present_rows(X, weight)
    usable = usable_rows(X)
    store = TensorStore(usable.x) if is_tensor(usable.x) else ArrayStore(usable.x)
    return GivenRows(store, usable.sums, weight, present, usable.zero.size, cluster, device)


def _read_out_of_core(
    estimator: BaseEstimator,
    X: Any,
    sample_weight: Any,
    cluster: Cluster | None,
    *,
    reset: bool,
    batch: bool,
) -> GivenRows:
    weight = check_weights(sample_weight, X, rescale=not batch)
    if weight is not None and not (weight > 0).all():
        raise InvalidDataError(
            "weights of 0 are only supported for data in memory",
            parameter="sample_weight",
            row=int(np.argmin(weight)),
            advice="remove these rows first",
        )
    mapped = mapped_file(X)
    if mapped is None:
        blocks = checked_blocks(estimator, X, reset=reset)
        store, sums, n_zero = spool(blocks, shape_of(X), np.dtype(X.dtype))
        return GivenRows(store, sums, weight, None, n_zero, cluster)

    def check(x: Array, start: int) -> None:
        check_block(estimator, x, start, reset=reset and start == 0)

    checked, sums, n_zero = check_file(mapped, check)
    return GivenRows(checked, sums, weight, None, n_zero, cluster)


def _read_on_cluster(estimator: BaseEstimator, X: Any, sample_weight: Any, cluster: Cluster) -> GivenRows:
    """Check a Dask array, which stays on the cluster."""
    from tnesi.execution.dask.rows import load_array

    if np.isnan(X.shape).any():
        raise InvalidDataError(
            "the number of rows of X is unknown", parameter="X", advice="call X.compute_chunk_sizes() first"
        )
    check_rows(estimator, cluster.client.compute(X[:1]).result(), reset=True)
    weight = check_weights(sample_weight, X)
    present = None if weight is None or (weight > 0).all() else weight > 0
    X, weight = present_rows(X, weight)
    reject = partial(check_rows, estimator, reset=False)
    store, sums, n_zero = load_array(cluster, X, weight, reject)
    return GivenRows(store, sums, weight, present, n_zero, cluster)


def warn_zero_rows(given: GivenRows, before: int = 0) -> None:
    """Warn about all-zero rows, unless there were some `before`."""
    if given.n_zero and not before:
        warnings.warn(
            f"{given.n_zero:,} of {given.n_rows:,} rows are all zero and count as evenly spread; drop them if they "
            "are not valid data",
            stacklevel=3,
        )
