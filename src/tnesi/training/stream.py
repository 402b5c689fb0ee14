"""Learning a mixture from a stream: the first batch is initialized as in `fit`, later ones use stepwise EM.

Learning changes its fields in place. Prediction uses a copy with its own search, made on demand, so that learning is
fast and does not depend on predictions.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Self, cast

import numpy as np

from tnesi.errors import InvalidDataError
from tnesi.execution.given_rows import GivenRows
from tnesi.execution.part import Part
from tnesi.execution.settings import Listener, Record
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.model.mixture_model import MixtureModel
from tnesi.search import Search
from tnesi.training.mixture import LearnedMixture, MixtureParameters, check_prior_strength, learn_mixture
from tnesi.training.monitor import Monitor
from tnesi.training.stepwise import Stepwise

_RECORDS = 1000
"""Maximum number of batches in the history."""


@dataclass
class MixtureStream:
    """A mixture that learns from a stream.

    Attributes
    ----------
    stepwise : Stepwise
        Fields with their running statistics.
    history : list of dict
        A record per iteration of an earlier fit, and per batch.
    n_iter, n_rows, n_zero : int
        Number of iterations and batches, of rows learned from, and of those that are all zero.
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
        # more iterations would overfit the first batch and leave more fields unused
        parameters = replace(parameters, max_iter=1, tol=0.0, checkpoint=None, resume=False)
        monitor = Monitor(tol=0.0)
        fit = learn_mixture(given, parameters, random_state, monitor)
        if monitor.interrupted:
            raise KeyboardInterrupt
        stream = cls(_stepwise(fit.learned, parameters), fit.learned.model.truncation)
        return stream, fit.activities, fit.learned.lower_bound

    @classmethod
    def after_fit(cls, learned: LearnedMixture, parameters: MixtureParameters, given: GivenRows) -> Self:
        """Continue from a fit; `given` is the next batch."""
        check_continuable(learned)
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
        activities : those of the rows, with the fields before learning from them
        free_energy : that of these rows, in nats per row
        kept : the factor by which earlier rows were discounted
        """
        part = Part(given.store, given.sums, given.weight, n_threads)
        part.normalize(self.row_sum)
        with single_threaded_blas() if self.stepwise.search.uses_blas else nullcontext():
            result = self.stepwise.learn(part.rows(), part.weight, half_life, n_threads)
        self._model = None
        return result.activities, result.free_energy, result.kept

    def record(
        self, given: GivenRows, free_energy: float, seconds: float, place: Record, listener: Listener | None
    ) -> None:
        """Add a batch to the history."""
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
        """The model for predictions, identical to one loaded from a file."""
        if self._model is None:
            own = self.stepwise.fields
            fields = replace(Fields.from_weights(own.w), w_sum=own.w_sum.copy())
            search = replace(self.stepwise.search).restored(fields)
            self._model = MixtureModel(fields, self.row_sum, self.truncation, search)
        return self._model

    def learned(self) -> LearnedMixture:
        """Return the mixture learned so far."""
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
    """Learn from checked rows: the first batch of a stream, the first after a fit, or a later one.

    Returns
    -------
    stream : MixtureStream
    activities : those of the rows, with the fields before learning from them (after learning for the first batch)
    kept : the factor by which earlier rows were discounted
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


def check_continuable(learned: LearnedMixture) -> None:
    """Raise an error if the masses of the fields are unknown."""
    if learned.mass is None:
        raise InvalidDataError(
            "partial_fit needs the number of rows that each field has seen, which model files do not store",
            advice="keep the estimator as a pickle, or call fit",
        )


def _stepwise(learned: LearnedMixture, parameters: MixtureParameters) -> Stepwise:
    assert learned.mass is not None
    model = learned.model
    search = cast("Search", model.search)
    return Stepwise.of(model.fields, search, model.row_sum, learned.mass, float(parameters.prior_strength))
