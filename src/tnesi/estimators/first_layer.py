"""How a mixture learns: the choice of what was left open, the start, then EM or the published rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from tnesi.estimators.given_rows import GivenRows
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Shrinkage, draw_distinct, start_around, start_hebbian
from tnesi.model.rows import check_norm, normalize
from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import ALL_BELOW, NeighborSearch
from tnesi.system.digest import content_digest
from tnesi.system.interrupt import completed
from tnesi.system.memory import check_fields_fit
from tnesi.system.threads import resolve_threads
from tnesi.training.checkpoint import Checkpoint
from tnesi.training.em import Engine, Search, run_em
from tnesi.training.monitor import Monitor
from tnesi.training.online import run_hebbian
from tnesi.training.row_sum import auto_norm
from tnesi.training.self_labeling import TopLayer
from tnesi.training.survey import Survey

Array = npt.NDArray[Any]

FEWEST_NEIGHBOURS = 5
"""With a smaller truncation, points share too few fields to tell which are neighbors: search is exact."""
MOST_FIELDS = 10_000
POINTS_PER_FIELD = 6
FEWEST_FIELDS = 10
_LARGEST_RATIO = 10
"""Of the rows that the prior stands for to the rows per field. At 95 fields of the digits collapse to the mean."""


@dataclass(frozen=True)
class FirstLayer:
    """What a mixture has learned.

    Attributes
    ----------
    activities : Activities
        Of the training rows.
    mass : (C,) array
        Rows that each field has explained, in parts.
    """

    fields: Fields
    search: Search
    activities: Activities
    mass: Array
    norm: float
    truncation: int


def learn_first_layer(
    settings: Any, given: GivenRows, top: TopLayer | None, monitor: Monitor, seed: int | None = None
) -> FirstLayer:
    """Learn from checked rows; `settings` is the mixture, `top` a second layer that learns along.

    `seed` decides on the start; by default it is drawn.
    """
    n_threads = resolve_threads(settings.n_threads)
    random = check_random_state(settings.random_state)
    first = int(random.randint(2**31))
    seed = first if seed is None else seed
    engine = given.engine(settings, n_threads)
    place = monitor.place
    n_more = place["mixtures"] - place["mixture"] if place else 0
    at_least = 1 if settings.n_components == "auto" else min(settings.n_components, given.n_rows)
    check_fields_fit(at_least, engine.n_features, n_more)
    with single_threaded_blas():
        survey = engine.survey(seed)
        distinct = draw_distinct(survey.hashes, given.weight)
        n_fields = count_fields(settings.n_components, max(given.total, given.n_rows), distinct.size)
        check_fields_fit(n_fields, engine.n_features, n_more)
        if settings.solver == "em":
            check_shrinkage(settings.shrinkage, given.total, n_fields)
        norm = _choose_norm(settings, engine, survey, distinct, n_fields)
        engine.normalize(norm)
        search = new_search(settings, n_fields, n_threads)
        _check_in_memory(settings, given, search)
        checkpoint = _checkpoint(settings, given, survey, search, monitor, (n_fields, norm, seed))
        if top:
            top.begin(n_fields)
        if settings.solver == "em":
            fields = _learn_em(settings, engine, survey, distinct[:n_fields], search, monitor, top, checkpoint)
        else:
            rng = np.random.default_rng(random.randint(2**31))
            fields = _learn_hebbian(settings, engine, n_fields, search, monitor, top, rng)
        try:
            with completed():  # a fit that is done is not lost to Ctrl-C now
                activities = engine.activities  # of the logarithms that the engine has used
                fields.take_logarithms()
                if isinstance(search, NeighborSearch):
                    search.settle(fields, engine.sample(n_fields), engine.sample_constant(n_fields))
        except KeyboardInterrupt:
            monitor.interrupted = True
    mass = activities.mass(n_fields, given.weight)
    return FirstLayer(fields, search, activities, mass, norm, _truncation(settings, n_fields))


def count_fields(n_components: Any, n_rows: float, n_distinct: int) -> int:
    """Return the number of fields, as given or chosen."""
    if n_components == "auto":
        return min(max(round(n_rows / POINTS_PER_FIELD), FEWEST_FIELDS), MOST_FIELDS, n_distinct)
    if n_components > n_distinct:
        raise ValueError(
            f"n_components={n_components} fields cannot be told apart with {n_distinct} distinct rows "
            "(distinct once normalized): pass fewer, or n_components='auto', or more rows (a larger first batch)"
        )
    return int(n_components)


def check_shrinkage(shrinkage: float, total: float, n_fields: int) -> None:
    """Refuse a prior that outweighs the rows so far that fields differ by little more than rounding errors."""
    per_field = total / n_fields
    most = _LARGEST_RATIO * max(per_field, 1.0)
    if shrinkage > most:
        raise ValueError(
            f"shrinkage={shrinkage:g} outweighs the data, {per_field:.3g} rows per field: all fields would be the mean "
            f"of the data. Pass at most {most:.3g}; the default is 1"
        )


def new_search(settings: Any, n_fields: int, n_threads: int) -> Search:
    """Return how points find their fields."""
    truncation, many = _truncation(settings, n_fields), n_fields > ALL_BELOW
    if settings.truncation is None and many:
        return FullSearch(n_threads)
    if settings.search == "exact" or (many and truncation < FEWEST_NEIGHBOURS):
        return ExactSearch(truncation, n_threads)
    return NeighborSearch(truncation, n_threads)


def _check_in_memory(settings: Any, given: GivenRows, search: Search) -> None:
    if given.store.in_memory or (settings.solver == "em" and not isinstance(search, FullSearch)):
        return
    what = "solver='hebbian'" if settings.solver == "hebbian" else "truncation=None"
    raise ValueError(
        f"{what} needs the rows in memory, and these ({given.n_rows:,} x {given.store.n_features}) are in a file: use "
        "solver='em' with a truncation, or fewer rows"
    )


def _checkpoint(
    settings: Any, given: GivenRows, survey: Survey, search: Search, monitor: Monitor, chosen: tuple[int, float, int]
) -> Checkpoint | None:
    """Return where the mixture keeps its state, and what has to be the same when another fit goes on from it."""
    if settings.checkpoint is None:
        return None
    if settings.solver != "em" or isinstance(search, FullSearch):
        raise ValueError("checkpoint: only solver='em' with a truncation can keep its state: pass these, or None")
    n_fields, norm, seed = chosen
    seen = {"hashes": survey.hashes, "sums": given.sums}
    if given.weight is not None:
        seen["weight"] = given.weight
    identity = {
        "data": content_digest("", seen),
        "rows": given.n_rows,
        "features": given.store.n_features,
        "n_components": n_fields,
        "norm": norm,
        "truncation": search.truncation,
        "search": search.name,
        "shrinkage": float(settings.shrinkage),
        "random_state": seed,
    }
    path = Path(settings.checkpoint) / f"mixture-{monitor.place.get('mixture', 1)}.state"
    return Checkpoint(path, bool(settings.resume), identity)


def _truncation(settings: Any, n_fields: int) -> int:
    return min(settings.truncation or n_fields, n_fields)


def _choose_norm(settings: Any, engine: Engine, survey: Survey, drawn: Array, n_fields: int) -> float:
    if settings.norm != "auto":
        check_norm(settings.norm, engine.n_features)
        return float(settings.norm)
    norm = auto_norm(engine.take, survey, drawn, n_fields, resolve_threads(settings.n_threads))
    if settings.verbose:
        print(f"norm = {norm:.1f}, chosen from the data", flush=True)
    return norm


def _learn_em(
    settings: Any,
    engine: Engine,
    survey: Survey,
    chosen: Array,
    search: Search,
    monitor: Monitor,
    top: TopLayer | None,
    checkpoint: Checkpoint | None,
) -> Fields:
    above = survey.mean_above(engine.norm)
    fields = start_around(1 + above, normalize(engine.take(chosen), engine.norm, settings.zero_rows))
    if isinstance(search, NeighborSearch):
        fields = search.arrange(fields)
    shrinkage = Shrinkage.towards(above, settings.shrinkage)
    return run_em(
        engine,
        fields,
        search,
        monitor,
        max_iter=settings.max_iter,
        top=top,
        shrinkage=shrinkage,
        checkpoint=checkpoint,
    )


def _learn_hebbian(
    settings: Any,
    engine: Engine,
    n_fields: int,
    search: Search,
    monitor: Monitor,
    top: TopLayer | None,
    rng: np.random.Generator,
) -> Fields:
    part = engine.part
    rows, weight = part.rows(), part.weight
    part.constant = rows.log_factorials(part.n_threads)
    fields, part.activities = run_hebbian(
        rows,
        weight,
        start_hebbian(rows, weight, n_fields, rng),
        ExactSearch(search.truncation, part.n_threads) if isinstance(search, NeighborSearch) else search,
        monitor,
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
        max_iter=settings.max_iter,
        rng=rng,
        n_threads=part.n_threads,
        top=top,
    )
    return fields
