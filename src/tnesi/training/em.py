"""Truncated variational EM: exact M-steps, and E-steps that never make K^(n) worse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tnesi.execution.engine import Engine
from tnesi.execution.part import Part, Summary
from tnesi.model.fields import Fields, Shrinkage
from tnesi.search import Search
from tnesi.search.exact import full_step
from tnesi.system.interrupt import delay_interrupt
from tnesi.training.checkpoint import Checkpoint
from tnesi.training.monitor import Monitor
from tnesi.training.self_labeling import ClassLearner
from tnesi.types import Array


def run_em(
    engine: Engine,
    fields: Fields,
    search: Search,
    monitor: Monitor,
    *,
    max_iter: int,
    learner: ClassLearner | None = None,
    shrinkage: Shrinkage | None = None,
    observe: Callable[[Fields], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Fields:
    """Iterate until the monitor stops learning; Ctrl-C ends it after the current iteration.

    `learner` learns the classes of a recurrent network in the same iterations. `observe` is called with the fields
    after each recorded iteration. `checkpoint` stores and restores the state after each iteration.

    Returns
    -------
    fields : those of the last complete iteration, which ``engine.activities`` belong to
    """
    constant = -float(np.log(learner.n_classes if learner else len(fields))) - engine.row_sum

    def record(fields: Fields, summary: Summary) -> bool:
        log_prior = shrinkage.log_density(fields) / engine.total if shrinkage else 0.0
        energy = float(summary.energy.sum()) / engine.total + constant
        stop = monitor.record(energy, summary.changed / engine.n_rows, search.name, log_prior)
        if observe:
            observe(fields)
        if checkpoint:
            checkpoint.save(fields, engine.activities, search, monitor, stopped=stop)
        return stop

    if not search.truncated:
        return _run_full(engine.part, fields, search, monitor, record, max_iter, learner, shrinkage)
    before = checkpoint.load(search, monitor) if checkpoint else None
    if before:
        fields, activities, ended = before
        engine.resume(fields, search, activities)
    else:
        ended = record(fields, engine.begin(fields, search, learner.prior() if learner else None))
    if ended:
        return fields
    spare, given = None, fields
    try:
        for _ in range(max_iter + 1 - len(monitor.history)):
            with delay_interrupt():
                new = engine.m_step(fields, shrinkage, spare)
                if learner:
                    learner.learn_iteration(engine.activities)
                summary = engine.step(new, search, learner.prior() if learner else None)
                spare = None if fields is given else fields
                fields = new
                stop = record(fields, summary)
            if stop:
                break
    except KeyboardInterrupt:
        monitor.interrupted = True
    return fields


def _run_full(
    part: Part,
    fields: Fields,
    search: Search,
    monitor: Monitor,
    record: Callable[[Fields, Summary], bool],
    max_iter: int,
    learner: ClassLearner | None,
    shrinkage: Shrinkage | None,
) -> Fields:
    """Run EM without truncation on rows in memory; activities are only stored at the end."""
    rows, weight = part.rows(), part.weight
    prior, before = learner.prior() if learner else None, None
    part.constant = rows.log_factorials(search.n_threads)

    def summary(log_sum: Array, best: Array) -> Summary:
        nonlocal before
        each = log_sum.astype(np.float64) - part.constant
        changed = len(best) if before is None else int(np.count_nonzero(best != before))
        before = best
        return Summary(np.array([np.sum(each if weight is None else weight * each)]), changed)

    try:
        for _ in range(max_iter):
            new, log_sum, best = full_step(fields, rows, weight, prior, search.n_threads, shrinkage)
            if record(fields, summary(log_sum, best)):
                part.activities = search.find(fields, rows, prior)
                return fields
            if learner:
                learner.learn_iteration(search.find(fields, rows, prior))
                prior = learner.prior()
            fields = new
    except KeyboardInterrupt:
        monitor.interrupted = True
        part.activities = search.find(fields, rows, prior)
        return fields
    part.activities = search.find(fields, rows, prior)
    record(fields, summary(part.activities.log_sum, part.activities.best))
    return fields
