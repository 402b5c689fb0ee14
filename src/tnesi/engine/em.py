"""Truncated variational EM: exact M-steps, E-steps that only ever improve K^(n)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tnesi.engine.monitor import Monitor
from tnesi.engine.top import TopLayer
from tnesi.layers.activities import Activities
from tnesi.layers.fields import Fields, Shrinkage
from tnesi.layers.input import Rows
from tnesi.search.exact import ExactSearch, FullSearch, full_step
from tnesi.search.neighbours import NeighbourSearch

Array = npt.NDArray[Any]
Search = ExactSearch | NeighbourSearch | FullSearch


@dataclass
class FreeEnergy:
    """Truncated free energy in nats per point (eq. 13): log-sums of I_c plus what does not depend on the field."""

    constant: Array
    weight: Array | None

    @classmethod
    def of(cls, rows: Rows, weight: Array | None, log_prior: float, n_threads: int) -> FreeEnergy:
        """`log_prior` is -log C, or -log K where the second layer gives the rest of the prior."""
        return cls(log_prior - rows.norm - rows.log_factorials(n_threads), weight)

    def samples(self, log_sum: Array) -> Array:
        return log_sum.astype(np.float64) + self.constant

    def mean(self, log_sum: Array) -> float:
        return float(np.average(self.samples(log_sum), weights=self.weight))


def log_sum_of_joints(fields: Fields, activities: Activities, norm: float) -> Array:
    """Return the log-sums with each field's own -sum_d W_cd in place of the -A that `FreeEnergy` counts.

    After an M-step the two are the same; under the Hebbian rule the fields only come close to the sum A.
    """
    excess = np.where(activities.s > 0, fields.w_sum[activities.ids].astype(np.float64) - norm, np.inf)
    least = excess.min(axis=1, keepdims=True)
    out: Array = activities.log_sum - least[:, 0] + np.log((activities.s * np.exp(least - excess)).sum(axis=1))
    return out


def run_em(
    rows: Rows,
    weight: Array | None,
    fields: Fields,
    search: Search,
    monitor: Monitor,
    *,
    max_iter: int,
    n_threads: int,
    top: TopLayer | None = None,
    shrinkage: Shrinkage | None = None,
    observe: Callable[[Fields], None] | None = None,
) -> tuple[Fields, Activities]:
    """Learn until the monitor says stop; Ctrl-C ends it with the last complete iteration.

    `top` is the second layer of a recurrent network, which learns along. `observe` sees the fields after each
    iteration has been recorded.

    Returns
    -------
    fields, activities : of the last complete iteration, fitting each other
    """
    energy = FreeEnergy.of(rows, weight, -np.log(top.n_classes if top else len(fields)), n_threads)

    total = float(len(rows) if weight is None else weight.sum(dtype=np.float64))

    def record(fields: Fields, log_sum: Array, best: Array) -> bool:
        log_prior = shrinkage.log_density(fields) / total if shrinkage else 0.0
        stop = monitor.record(energy.mean(log_sum), best, search.name, log_prior)
        if observe:
            observe(fields)
        return stop

    if isinstance(search, FullSearch):
        return _run_full(rows, weight, fields, search, monitor, record, max_iter, top, shrinkage)
    activities = search.start(fields, rows, top.prior() if top else None)
    if record(fields, activities.log_sum, activities.best):
        return fields, activities
    spare, given = None, fields
    try:
        for _ in range(max_iter):
            new, _ = fields.m_step(rows, weight, activities, n_threads, spare, shrinkage)
            if top:
                top.learn_along(activities)
            found = search.update(new, rows, activities, top.prior() if top else None)
            spare = None if fields is given else fields
            fields, activities = new, found
            if record(fields, activities.log_sum, activities.best):
                break
    except KeyboardInterrupt:
        monitor.interrupted = True
    return fields, activities


def _run_full(
    rows: Rows,
    weight: Array | None,
    fields: Fields,
    search: FullSearch,
    monitor: Monitor,
    record: Callable[[Fields, Array, Array], bool],
    max_iter: int,
    top: TopLayer | None,
    shrinkage: Shrinkage | None,
) -> tuple[Fields, Activities]:
    """The same without truncation, where all but negligible activities are only held at the end."""
    prior = top.prior() if top else None
    try:
        for _ in range(max_iter):
            new, log_sum, best = full_step(fields, rows, weight, prior, search.n_threads, shrinkage)
            if record(fields, log_sum, best):
                return fields, search.start(fields, rows, prior)
            if top:
                top.learn_along(search.start(fields, rows, prior))
                prior = top.prior()
            fields = new
    except KeyboardInterrupt:
        monitor.interrupted = True
        return fields, search.start(fields, rows, prior)
    activities = search.start(fields, rows, prior)
    record(fields, activities.log_sum, activities.best)
    return fields, activities
