"""The published online rule: mini-batches in random order, W_c += eps sum_n s_nc (y_n - W_c) (eq. 9)."""

from __future__ import annotations

import numpy as np

from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.model.free_energy import FreeEnergy, log_sum_of_joints
from tnesi.model.rows import Rows
from tnesi.search import Search
from tnesi.training.monitor import Monitor
from tnesi.training.self_labeling import ClassLearner
from tnesi.types import Array


def run_hebbian(
    rows: Rows,
    weight: Array | None,
    fields: Fields,
    search: Search,
    monitor: Monitor,
    *,
    learning_rate: float,
    batch_size: int,
    max_iter: int,
    rng: np.random.Generator,
    n_threads: int,
    learner: ClassLearner | None = None,
) -> tuple[Fields, Activities]:
    """Learn for `max_iter` epochs; Ctrl-C ends learning after a complete mini-batch.

    `learner` learns the classes from each mini-batch together with the fields. The free energy of an epoch is the mean
    over its rows, each with the weights at that time.
    """
    n = len(rows)
    total = float(n if weight is None else weight.sum(dtype=np.float64))
    rate = learning_rate * len(fields) / total
    n_prior = learner.n_classes if learner and learner.recurrent else len(fields)
    energy = FreeEnergy.of(rows, weight, -np.log(n_prior), n_threads)
    before = None
    try:
        for _ in range(max_iter):
            log_sum, best = np.empty(n, np.float32), np.empty(n, np.int32)
            order = rng.permutation(n)
            for start in range(0, n, batch_size):
                points = order[start : start + batch_size]
                batch, w = rows.take(points), None if weight is None else weight[points]
                activities = search.find(fields, batch, learner.prior(points, inferred=False) if learner else None)
                if learner:
                    learner.learn_batch(activities, points)
                    if learner.recurrent:  # with the labels just inferred
                        activities = search.find(fields, batch, learner.prior(points))
                log_sum[points] = log_sum_of_joints(fields, activities, rows.row_sum)
                best[points] = activities.best
                fields.hebbian_step(batch, w, activities, rate, n_threads)
            changed = 1.0 if before is None else float(np.mean(best != before))
            before = best
            if monitor.record(energy.mean(log_sum), changed, search.name):
                break
    except KeyboardInterrupt:
        monitor.interrupted = True
    return fields, search.find(fields, rows, learner.prior() if learner else None)
