"""How a mixture learns from a stream: the first batch as `fit` would begin, the others by stepwise EM.

Learning has fields of its own, which it changes in place. Those that predict are a copy of them, with a search of
their own: made when they are asked for, so that learning costs no more than it must and does not depend on it.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy.typing as npt
from sklearn.base import BaseEstimator

from tnesi.estimators.first_layer import check_shrinkage, learn_first_layer
from tnesi.estimators.given_rows import GivenRows
from tnesi.estimators.parameters import unchanged_on_failure
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.search.neighbors import NeighborSearch
from tnesi.system.interrupt import completed
from tnesi.system.threads import resolve_threads
from tnesi.training.monitor import Monitor
from tnesi.training.stepwise import Stepwise

Array = npt.NDArray[Any]

FOR_PREDICTION = ("_fields", "_search", "weights_")
"""What a mixture that learns from a stream makes when it is asked for."""
_RECORDS = 1000
"""Batches that the history holds."""
_AS_FIT_BEGINS = {"max_iter": 1, "tol": 0.0, "engine": "local", "checkpoint": None, "resume": False}
"""More iterations would fit the fields to the first batch alone, and leave more of them without rows."""


def check_stream(settings: Any) -> None:
    """Refuse what cannot learn from a stream."""
    if settings.solver != "em":
        raise ValueError(f"solver={settings.solver!r}: partial_fit is a form of EM; pass solver='em', or call fit")


def check_goes_on(mixture: Any) -> None:
    """Refuse a mixture that was loaded from a file."""
    if mixture._stream is None and mixture._mass is None:
        raise ValueError(
            "a model file does not hold what partial_fit goes on from (how many rows each field has seen): keep the "
            "estimator as a pickle for that, or call fit"
        )


def whole_batch(estimator: BaseEstimator, *, first: bool) -> AbstractContextManager[None]:
    """Return a context for learning from a batch: Ctrl-C undoes the first one, and waits for the end of another."""
    return unchanged_on_failure(estimator) if first else completed()


def learn_batch(mixture: Any, given: GivenRows, place: dict[str, Any] | None = None) -> tuple[Activities, float]:
    """Learn from checked rows, the first of a mixture or more of them.

    Returns
    -------
    activities : of the rows, with the fields before they learned from them (of the first batch: after)
    kept : the factor by which what came before has faded
    """
    began = time.perf_counter()
    if hasattr(mixture, "n_components_"):
        activities, kept, energy = _go_on(mixture, given)
    else:
        activities, kept, energy = _begin(mixture, given)
    mixture.n_samples_seen_ += given.n_rows
    mixture.n_zero_rows_ += given.n_zero
    mixture.n_iter_ += 1
    before = mixture.history_[-1]["seconds"] if mixture.history_ else 0.0
    record = {
        "iteration": mixture.n_iter_,
        "free_energy": energy,
        "changed": 1.0,
        "search": mixture._stream.search.name,
        "seconds": before + time.perf_counter() - began,
        "rows": given.n_rows,
        **(place or {}),
    }
    mixture.history_ = [*mixture.history_[1 - _RECORDS :], record]
    mixture.lower_bound_, mixture.converged_ = energy, False
    listener = mixture._listener()
    if listener is not None:
        listener(record)
    return activities, kept


def _begin(mixture: Any, given: GivenRows) -> tuple[Activities, float, float]:
    monitor = Monitor(tol=0.0)
    settings = SimpleNamespace(**mixture.get_params(deep=False) | _AS_FIT_BEGINS)
    learned = learn_first_layer(settings, given, None, monitor)
    if monitor.interrupted:
        raise KeyboardInterrupt
    mixture.n_components_, mixture.truncation_, mixture.norm_ = len(learned.fields), learned.truncation, learned.norm
    known = learned.fields, learned.search, learned.norm, learned.mass
    mixture._stream = Stepwise.of(*known, float(mixture.shrinkage))
    mixture.history_, mixture.n_iter_, mixture.n_samples_seen_, mixture.n_zero_rows_ = [], 0, 0, 0
    return learned.activities, 0.0, monitor.history[-1]["free_energy"]


def _go_on(mixture: Any, given: GivenRows) -> tuple[Activities, float, float]:
    n_threads = resolve_threads(mixture.n_threads)
    if mixture._stream is None:
        check_goes_on(mixture)
        known = mixture._fields, mixture._search, mixture.norm_, mixture._mass
        check_shrinkage(mixture.shrinkage, float(mixture._mass.sum()) + given.total, mixture.n_components_)
        mixture._stream = Stepwise.of(*known, float(mixture.shrinkage))
    stream: Stepwise = mixture._stream
    part = given.engine(SimpleNamespace(engine="local"), n_threads).part
    part.normalize(mixture.norm_)
    with nullcontext() if isinstance(stream.search, NeighborSearch) else single_threaded_blas():
        learned = stream.learn(part.rows(), part.weight, mixture.half_life, n_threads)
    for name in FOR_PREDICTION:
        vars(mixture).pop(name, None)
    return learned.activities, learned.kept, learned.free_energy


def settle(mixture: Any) -> None:
    """Make what predicts from what has learned, as it will be when the model is loaded from a file."""
    stream: Stepwise = mixture._stream
    fields = replace(Fields.from_weights(stream.fields.w), w_sum=stream.fields.w_sum.copy())
    search = replace(stream.search)
    if isinstance(search, NeighborSearch):
        search.make_cells(fields)
    mixture._fields, mixture._search, mixture.weights_ = fields, search, fields.w
