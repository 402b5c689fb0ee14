"""How a mixture learns from a stream: the first batch as `fit` would begin, the others by stepwise EM.

Learning has fields of its own, which it changes in place. Those that predict are a copy of them, with a search of
their own: made when they are asked for, so that learning costs no more than it must and does not depend on it.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Self, cast

import numpy as np

from tnesi.execution.given_rows import GivenRows
from tnesi.execution.part import Part
from tnesi.execution.settings import Listener, Record
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.model.mixture_model import MixtureModel
from tnesi.search import NeighborSearch, Search
from tnesi.training.mixture import LearnedMixture, MixtureParameters, check_prior_strength, learn_mixture
from tnesi.training.monitor import Monitor
from tnesi.training.stepwise import Stepwise

_RECORDS = 1000
"""Batches that the history holds."""


@dataclass
class MixtureStream:
    """A mixture that goes on learning.

    Attributes
    ----------
    stepwise : Stepwise
        Fields with their running statistics.
    history : list of dict
        A record per iteration of a fit before, and per batch.
    n_iter, n_rows, n_zero : int
        Iterations and batches, rows learned from, and rows of them that are all zero.
    """

    stepwise: Stepwise
    truncation: int
    history: list[Record] = field(default_factory=list)
    n_iter: int = 0
    n_rows: int = 0
    n_zero: int = 0
    lower_bound: float = float("nan")
    _model: MixtureModel | None = None

    @classmethod
    def begin(
        cls, given: GivenRows, parameters: MixtureParameters, random_state: int | np.random.RandomState | None
    ) -> tuple[Self, Activities, float]:
        """Learn from the first batch; return the stream, the activities of the batch and its free energy."""
        # more iterations would fit the fields to the first batch alone, and leave more of them without rows
        parameters = replace(parameters, max_iter=1, tol=0.0, checkpoint=None, resume=False)
        monitor = Monitor(tol=0.0)
        fit = learn_mixture(given, parameters, random_state, monitor)
        if monitor.interrupted:
            raise KeyboardInterrupt
        stream = cls(_stepwise(fit.learned, parameters), fit.learned.model.truncation)
        return stream, fit.activities, fit.learned.lower_bound

    @classmethod
    def after_fit(cls, learned: LearnedMixture, parameters: MixtureParameters, given: GivenRows) -> Self:
        """Go on from what a fit has learned; `given` is what comes next."""
        check_goes_on(learned)
        assert learned.mass is not None
        total = float(learned.mass.sum()) + given.total
        check_prior_strength(parameters.prior_strength, total, learned.model.n_fields)
        return cls(
            _stepwise(learned, parameters),
            learned.model.truncation,
            learned.history,
            learned.n_iter,
            learned.n_rows or 0,
            learned.n_zero or 0,
        )

    @property
    def n_fields(self) -> int:
        return len(self.stepwise.fields)

    @property
    def row_sum(self) -> float:
        return self.stepwise.row_sum

    def learn(self, given: GivenRows, half_life: float | None, n_threads: int) -> tuple[Activities, float, float]:
        """Learn from a batch.

        Returns
        -------
        activities : of the rows, with the fields before they learned from them
        free_energy : of these rows, nats per row
        kept : the factor by which what came before has faded
        """
        part = Part(given.store, given.sums, given.weight, n_threads)
        part.normalize(self.row_sum)
        with single_threaded_blas() if self.stepwise.search.uses_blas else nullcontext():
            learned = self.stepwise.learn(part.rows(), part.weight, half_life, n_threads)
        self._model = None
        return learned.activities, learned.free_energy, learned.kept

    def record(
        self, given: GivenRows, free_energy: float, seconds: float, place: Record, listener: Listener | None
    ) -> None:
        """Add a batch that took so many seconds to the history."""
        self.n_rows += given.n_rows
        self.n_zero += given.n_zero
        self.n_iter += 1
        before = self.history[-1]["seconds"] if self.history else 0.0
        record = {
            "iteration": self.n_iter,
            "free_energy": free_energy,
            "changed": 1.0,
            "search": self.stepwise.search.name,
            "seconds": before + seconds,
            "rows": given.n_rows,
            **place,
        }
        self.history = [*self.history[1 - _RECORDS :], record]
        self.lower_bound = free_energy
        if listener is not None:
            listener(record)

    @property
    def model(self) -> MixtureModel:
        """What predicts, made from what has learned: as it will be when it is loaded from a file."""
        if self._model is None:
            own = self.stepwise.fields
            fields = replace(Fields.from_weights(own.w), w_sum=own.w_sum.copy())
            search = replace(self.stepwise.search)
            if isinstance(search, NeighborSearch):
                search.make_cells(fields)
            self._model = MixtureModel(fields, self.row_sum, self.truncation, search)
        return self._model

    def learned(self) -> LearnedMixture:
        """Return what has been learned so far."""
        return LearnedMixture(
            self.model,
            self.history,
            self.n_iter,
            self.lower_bound,
            converged=False,
            mass=None,
            n_rows=self.n_rows,
            n_zero=self.n_zero,
        )


def learn_batch(
    stream: MixtureStream | None,
    before: LearnedMixture | None,
    given: GivenRows,
    parameters: MixtureParameters,
    random_state: int | np.random.RandomState | None,
    half_life: float | None,
    listener: Listener | None = None,
    place: Record | None = None,
) -> tuple[MixtureStream, Activities, float]:
    """Learn from checked rows: the first of all, the first after a fit, or more of a stream.

    Returns
    -------
    stream : MixtureStream
    activities : of the rows, with the fields before they learned from them (of the first batch: after)
    kept : the factor by which what came before has faded
    """
    began = time.perf_counter()
    kept = 0.0
    if stream is None and before is None:
        stream, activities, energy = MixtureStream.begin(given, parameters, random_state)
    else:
        if stream is None:
            assert before is not None
            stream = MixtureStream.after_fit(before, parameters, given)
        activities, energy, kept = stream.learn(given, half_life, parameters.n_threads)
    stream.record(given, energy, time.perf_counter() - began, place or {}, listener)
    return stream, activities, kept


def check_goes_on(learned: LearnedMixture) -> None:
    """Refuse a mixture of which it is not known how many rows its fields have seen."""
    if learned.mass is None:
        raise ValueError(
            "partial_fit goes on from how many rows each field has seen, and a model file does not hold that: "
            "keep the estimator as a pickle, or call fit"
        )


def _stepwise(learned: LearnedMixture, parameters: MixtureParameters) -> Stepwise:
    assert learned.mass is not None
    model = learned.model
    search = cast("Search", model.search)
    return Stepwise.of(model.fields, search, model.row_sum, learned.mass, float(parameters.prior_strength))
