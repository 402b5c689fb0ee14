"""Learning a mixture: automatic parameters, initialization, then EM or the published rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from tnesi.errors import InvalidParameterError
from tnesi.execution.engine import Engine
from tnesi.execution.given_rows import GivenRows
from tnesi.execution.settings import Record
from tnesi.execution.survey import Survey
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.device_fields import DeviceFields
from tnesi.model.fields import Fields, Shrinkage, draw_distinct, start_around, start_hebbian
from tnesi.model.mixture_model import MixtureModel
from tnesi.model.rows import check_row_sum, normalize
from tnesi.search import SEARCHES, DeviceSearch, ExactSearch, Search
from tnesi.search.neighbors import ALL_BELOW
from tnesi.system.devices import Device
from tnesi.system.digest import content_digest
from tnesi.system.interrupt import delay_interrupt
from tnesi.system.memory import check_fields_fit
from tnesi.training.checkpoint import Checkpoint
from tnesi.training.em import run_em
from tnesi.training.monitor import InterruptedWarning, Monitor
from tnesi.training.online import online_search, run_hebbian
from tnesi.training.row_sum import auto_row_sum
from tnesi.training.rules import OnlineRule
from tnesi.training.self_labeling import ClassLearner
from tnesi.types import Array

DEFAULT_TRUNCATION = 15
FEWEST_NEIGHBORS = 5
"""With a smaller truncation, rows share too few fields to find neighbors: search is exact."""
MOST_FIELDS = 10_000
POINTS_PER_FIELD = 6
FEWEST_FIELDS = 10
_MOST_WEIGHTS, _FEWEST_OF_WIDE = 2**25, 100
"""Very wide rows get fewer fields, whose weights fit into 128 MB, but not fewer than the second number: more of them
take minutes instead of seconds and hardly tell documents apart better."""
_MOST_COMPARED, _FILLED_COMPARED = 2048, 8
"""Very sparse rows are compared with all fields up to these numbers of fields, and of fields times the share of values
that are not zero."""
_LARGEST_RATIO = 10
"""Maximum ratio of `prior_strength` to the rows per field. At 95 the fields of the digits collapse to the mean."""


@dataclass(frozen=True)
class MixtureParameters:
    """Parameters of learning, documented in :class:`tnesi.PoissonMixture`.

    With `online`, the published rule replaces EM, and `max_iter`, `tol` and `prior_strength` are ignored.
    `n_threads`, `checkpoint`, `resume` and `verbose` do not change the result.
    """

    n_components: int | Literal["auto"] = "auto"
    truncation: int | None = DEFAULT_TRUNCATION
    row_sum: float | Literal["auto"] = "auto"
    search: Literal["neighbors", "exact"] = "neighbors"
    max_iter: int = 100
    tol: float = 2e-3
    prior_strength: float = 1.0
    online: OnlineRule | None = None
    n_threads: int = 1
    checkpoint: Path | None = None
    resume: bool = False
    verbose: int = 0


@dataclass(frozen=True, eq=False)
class LearnedMixture:
    """A mixture with the history of its learning.

    Attributes
    ----------
    model : MixtureModel
    history : list of dict
        A record per iteration.
    n_iter : int
    lower_bound : float
        Free energy of the training rows in nats per row.
    converged : bool
    mass : (C,) array or None
        Sum of the activities of each field over the training rows; None if unknown.
    n_rows, n_zero : int or None
        Number of training rows, and of those that are all zero; None if unknown.
    """

    model: MixtureModel
    history: list[Record]
    n_iter: int
    lower_bound: float
    converged: bool
    mass: Array | None = None
    n_rows: int | None = None
    n_zero: int | None = None


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """The result of a fit.

    Attributes
    ----------
    learned : LearnedMixture
    activities : Activities
        Activities of the training rows.
    monitor : Monitor
    """

    learned: LearnedMixture
    activities: Activities = field(repr=False)
    monitor: Monitor = field(repr=False)

    def warning(self, parameters: MixtureParameters) -> ConvergenceWarning | None:
        """Return a warning if learning was interrupted or did not converge."""
        if self.monitor.interrupted:
            complete = len(self.monitor.history) - (parameters.online is None)
            return InterruptedWarning(
                f"learning was interrupted: the model is that of the last complete iteration ({complete} complete)"
            )
        may_converge = parameters.online is None and parameters.tol > 0
        if may_converge and not self.monitor.converged and self.learned.n_iter >= parameters.max_iter:
            return ConvergenceWarning(
                f"{self.learned.n_iter} iterations did not reach tol={parameters.tol:g}: the model can be used, but "
                "a larger max_iter may improve it"
            )
        return None


def learn_mixture(
    given: GivenRows,
    parameters: MixtureParameters,
    random_state: int | np.random.RandomState | None,
    monitor: Monitor,
    learner: ClassLearner | None = None,
    seed: int | None = None,
) -> MixtureFit:
    """Learn from checked rows; `learner` learns classes along with the mixture.

    `seed` seeds the initialization; by default it is drawn from `random_state`.
    """
    n_threads = parameters.n_threads
    random = check_random_state(random_state)
    first = int(random.randint(2**31))
    seed = first if seed is None else seed
    engine = given.engine(n_threads)
    monitor.device = None if given.device is None else given.device.name
    place = monitor.place
    n_more = place["mixtures"] - place["mixture"] if place else 0
    at_least = 1 if parameters.n_components == "auto" else min(parameters.n_components, given.n_rows)
    check_fields_fit(at_least, engine.n_features, n_more)
    with single_threaded_blas():
        survey = engine.survey(seed)
        distinct = draw_distinct(survey.hashes, given.weight)
        n_rows = max(given.total, given.n_rows)
        n_fields = count_fields(parameters.n_components, n_rows, distinct.size, engine.n_features)
        check_fields_fit(n_fields, engine.n_features, n_more)
        if parameters.online is None:
            check_prior_strength(parameters.prior_strength, given.total, n_fields)
        row_sum = _choose_row_sum(parameters, engine, survey, distinct, n_fields)
        engine.normalize(row_sum)
        search = _new_search(parameters, n_fields, survey)
        _check_in_memory(parameters, given, search)
        _check_device(parameters, given, search)
        on_device = given.device is not None and search.truncated
        passes = ExactSearch(search.truncation, n_threads) if on_device else search
        checkpoint = _checkpoint(parameters, given, survey, passes, monitor, (n_fields, row_sum, seed))
        if learner:
            learner.begin(n_fields)
        if parameters.online is None:
            fields = _learn_em(parameters, engine, survey, distinct[:n_fields], passes, monitor, learner, checkpoint)
        else:
            rng = np.random.default_rng(random.randint(2**31))
            fields = _learn_online(parameters.online, engine, n_fields, search, monitor, learner, rng, given.device)
        try:
            with delay_interrupt():  # the fit is done: keep its result
                activities = engine.activities  # computed with the engine's logarithms
                fields.take_logarithms()
                if search.learns_from_rows:
                    sample = engine.sample(n_fields)
                    search.prepare(fields, sample.ids, sample.log_sum - engine.sample_constant(n_fields))
        except KeyboardInterrupt:
            monitor.interrupted = True
    learned = LearnedMixture(
        model=MixtureModel(fields, row_sum, _truncation(parameters, n_fields), search),
        history=monitor.history,
        n_iter=max(len(monitor.history) - (parameters.online is None), 1),
        lower_bound=monitor.history[-1]["free_energy"] if monitor.history else float("nan"),
        converged=monitor.converged,
        mass=activities.mass(n_fields, given.weight),
        n_rows=given.n_rows,
        n_zero=given.n_zero,
    )
    return MixtureFit(learned, activities, monitor)


def count_fields(n_components: int | Literal["auto"], n_rows: float, n_distinct: int, n_features: int) -> int:
    """Return the number of fields, as given or chosen."""
    if n_components == "auto":
        wide = max(_MOST_WEIGHTS // n_features, _FEWEST_OF_WIDE)
        return min(max(round(n_rows / POINTS_PER_FIELD), FEWEST_FIELDS), MOST_FIELDS, wide, n_distinct)
    if n_components > n_distinct:
        raise InvalidParameterError(
            "{n_components}={given} exceeds the number of distinct rows after normalization ({distinct})",
            given=n_components,
            distinct=n_distinct,
            parameter="n_components",
            advice="pass fewer, or {n_components:auto}, or more rows (a larger first batch)",
        )
    return int(n_components)


def check_prior_strength(prior_strength: float, total: float, n_fields: int) -> None:
    """Raise an error if the prior outweighs the rows so far that fields only differ by rounding errors."""
    per_field = total / n_fields
    most = _LARGEST_RATIO * max(per_field, 1.0)
    if prior_strength > most:
        raise InvalidParameterError(
            "{prior_strength}={given:g} outweighs the data ({per_field:.3g} rows per field): all fields would be the "
            "mean of the data",
            given=prior_strength,
            per_field=per_field,
            most=most,
            parameter="prior_strength",
            advice="pass at most {most:.3g}; the default is 1",
        )


def _new_search(parameters: MixtureParameters, n_fields: int, survey: Survey) -> Search:
    """Return the search for the given parameters and rows."""
    truncation, many = _truncation(parameters, n_fields), n_fields > ALL_BELOW
    name: str = parameters.search
    if many and parameters.truncation is None:
        name = "full"
    elif many and (truncation < FEWEST_NEIGHBORS or _is_exact_faster(n_fields, survey)):
        name = "exact"
    return SEARCHES[name](truncation, parameters.n_threads)


def _is_exact_faster(n_fields: int, survey: Survey) -> bool:
    """Return whether all fields are compared faster than those near a row, as for documents.

    The neighborhood search multiplies blocks of adjacent features of several rows. Where rows have few features in
    common, nearly all of what these blocks hold is zero.
    """
    filled = survey.count.sum() / survey.total / survey.count.size
    return n_fields <= _MOST_COMPARED and n_fields * filled <= _FILLED_COMPARED


def _check_in_memory(parameters: MixtureParameters, given: GivenRows, search: Search) -> None:
    if given.store.in_memory or (parameters.online is None and search.truncated):
        return
    full = parameters.online is None
    raise InvalidParameterError(
        ("{truncation:None}" if full else "the online rule")
        + " needs the rows in memory, but these ({rows:,} x {columns}) are in a file",
        rows=given.n_rows,
        columns=given.store.n_features,
        parameter="truncation" if full else "rule",
        advice="use EM with a truncation, or fewer rows",
    )


def _check_device(parameters: MixtureParameters, given: GivenRows, search: Search) -> None:
    partial = parameters.online is not None and parameters.online.e_step == "partial"
    if given.device is not None and (partial or not search.truncated):
        raise InvalidParameterError(
            "{execution} supports " + ("exact E-steps only" if partial else "mixtures with a truncation only"),
            parameter="execution",
            advice="pass " + ("{e_step:exact}" if partial else "{truncation:15}") + ", or no {execution}",
        )


def _checkpoint(
    parameters: MixtureParameters,
    given: GivenRows,
    survey: Survey,
    search: Search,
    monitor: Monitor,
    chosen: tuple[int, float, int],
) -> Checkpoint | None:
    """Return the checkpoint of a mixture, with the values that must match to resume from it."""
    if parameters.checkpoint is None:
        return None
    if parameters.online is not None or not search.truncated:
        raise InvalidParameterError(
            "{checkpoint} needs EM with a truncation",
            parameter="checkpoint",
            advice="pass a truncation, or no checkpoint",
        )
    n_fields, row_sum, seed = chosen
    seen = {"hashes": survey.hashes, "sums": given.sums}
    if given.weight is not None:
        seen["weight"] = given.weight
    identity = {
        "data": content_digest("", seen),
        "rows": given.n_rows,
        "features": given.store.n_features,
        "n_components": n_fields,
        "row_sum": row_sum,
        "truncation": search.truncation,
        "search": search.name,
        "prior_strength": float(parameters.prior_strength),
        "random_state": seed,
        "device": monitor.device,
    }
    path = parameters.checkpoint / f"mixture-{monitor.place.get('mixture', 1)}.state"
    return Checkpoint(path, bool(parameters.resume), identity)


def _truncation(parameters: MixtureParameters, n_fields: int) -> int:
    return min(parameters.truncation or n_fields, n_fields)


def _choose_row_sum(
    parameters: MixtureParameters, engine: Engine, survey: Survey, drawn: Array, n_fields: int
) -> float:
    if parameters.row_sum != "auto":
        check_row_sum(parameters.row_sum, engine.n_features)
        return float(parameters.row_sum)
    row_sum = auto_row_sum(engine.take, survey, drawn, n_fields, parameters.n_threads)
    if parameters.verbose:
        print(f"row_sum = {row_sum:.1f} (chosen from the data)", flush=True)
    return row_sum


def _learn_em(
    parameters: MixtureParameters,
    engine: Engine,
    survey: Survey,
    chosen: Array,
    search: Search,
    monitor: Monitor,
    learner: ClassLearner | None,
    checkpoint: Checkpoint | None,
) -> Fields:
    above = survey.mean_above(engine.row_sum)
    fields = search.arrange(start_around(1 + above, normalize(engine.take(chosen), engine.row_sum)))
    shrinkage = Shrinkage.towards(above, parameters.prior_strength)
    return run_em(
        engine,
        fields,
        search,
        monitor,
        max_iter=parameters.max_iter,
        learner=learner,
        shrinkage=shrinkage,
        checkpoint=checkpoint,
    )


def _learn_online(
    rule: OnlineRule,
    engine: Engine,
    n_fields: int,
    search: Search,
    monitor: Monitor,
    learner: ClassLearner | None,
    rng: np.random.Generator,
    device: Device | None,
) -> Fields:
    part = engine.part
    rows, weight = part.rows(), part.weight
    part.constant = rows.log_factorials(part.n_threads)
    fields = start_hebbian(rows, weight, n_fields, rng)
    exact = online_search(n_fields, search.truncation if search.truncated else None, part.n_threads)
    if device is not None:
        fields = DeviceFields.of(fields, device)
        exact = DeviceSearch(search.truncation, part.n_threads, device=device)
    fields, part.activities = run_hebbian(
        rows,
        weight,
        fields,
        exact,
        monitor,
        rule,
        max_iter=learner.max_iter if learner else rule.passes(0),
        rng=rng,
        n_threads=part.n_threads,
        learner=learner,
    )
    return fields.on_host() if isinstance(fields, DeviceFields) else fields
