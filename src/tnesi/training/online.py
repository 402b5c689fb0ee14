"""The published online rule: mini-batches in random order, W_c += eps sum_n s_nc (y_n - W_c) (eq. 9).

In a feed-forward network W does not depend on R. One pass of the first layer therefore teaches any number of second
learners side by side: each learns from the activities of a mini-batch before W changed, as in the paper.

With *partial E-steps* K^(n) persists between epochs and improves among a few fields only (the paper's criterion,
eq. 15): the neighbors of the best field, and a field drawn at random, without which fields in no K^(n) would be lost.
The cost of a mini-batch then does not grow with C. The first epoch is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from tnesi import kernels
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields
from tnesi.model.free_energy import FreeEnergy, log_sum_of_joints
from tnesi.model.rows import Rows
from tnesi.search import ExactSearch, FullSearch, Search
from tnesi.search.exact import INVISIBLE
from tnesi.training.monitor import Monitor
from tnesi.training.rules import OnlineRule
from tnesi.training.self_labeling import ClassLearner
from tnesi.types import Array

N_LISTED = 64
"""Neighbors of the best field of a row that a partial E-step looks at."""
N_DRAWN = 1
"""Random fields that it looks at."""
LISTS_LAST = 2
"""Epochs after which the lists of neighbors are rebuilt."""
_CHUNK_ROWS = 8192
"""Rows whose activities are kept for the second layers."""
_CHUNK_ACTIVITIES = 4_000_000


@dataclass
class OnlineState:
    """What online learning carries from one epoch to the next.

    Attributes
    ----------
    fields : Fields
        Changed in place.
    rng : Generator
        Draws the order of the rows and the random fields.
    activities : Activities or None
        With partial E-steps, K^(n) of each row when it was last visited.
    lists : (C, N_LISTED) array of int32 or None
        The neighbors of each field.
    """

    fields: Fields
    rng: np.random.Generator
    epoch: int = 0
    activities: Activities | None = field(default=None, repr=False)
    lists: Array | None = field(default=None, repr=False)


@dataclass(frozen=True)
class OnlinePass:
    """What an epoch saw of each row when it was visited: the log-sum of the joints, and the best field."""

    log_sum: Array
    best: Array


def online_search(n_fields: int, truncation: int | None, n_threads: int) -> Search:
    """Return the search of exact E-steps: for the best fields, or for all of them (None)."""
    if truncation is None:
        return FullSearch(n_fields, n_threads, least=INVISIBLE)
    return ExactSearch(min(truncation, n_fields), n_threads)


def run_hebbian(
    rows: Rows,
    weight: Array | None,
    fields: Fields,
    search: Search,
    monitor: Monitor,
    rule: OnlineRule,
    *,
    max_iter: int,
    rng: np.random.Generator,
    n_threads: int,
    learner: ClassLearner | None = None,
) -> tuple[Fields, Activities]:
    """Learn for `max_iter` epochs; Ctrl-C ends learning after some complete mini-batch.

    `learner` learns the classes from each mini-batch together with the fields. The free energy of an epoch is the mean
    over its rows, each with the weights at that time.
    """
    n_prior = learner.n_classes if learner and learner.recurrent else len(fields)
    energy = FreeEnergy.of(rows, weight, -np.log(n_prior), n_threads)
    state = OnlineState(fields, rng)
    learners = [learner] if learner else []
    before = None
    try:
        for _ in range(max_iter):
            seen = learn_epoch(state, rows, weight, search, rule, learners, n_threads)
            changed = 1.0 if before is None else float(np.mean(seen.best != before))
            before = seen.best
            if monitor.record(energy.mean(seen.log_sum), changed, "partial" if state.activities else search.name):
                break
    except KeyboardInterrupt:
        monitor.interrupted = True
    return fields, search.find(fields, rows, learner.prior() if learner else None)


def learn_epoch(
    state: OnlineState,
    rows: Rows,
    weight: Array | None,
    search: Search,
    rule: OnlineRule,
    learners: Sequence[ClassLearner],
    n_threads: int,
) -> OnlinePass:
    """Make a pass over the rows, changing `state` and the `learners` of second layers."""
    n = len(rows)
    rate = rule.learning_rate * len(state.fields) / float(n if weight is None else weight.sum(dtype=np.float64))
    order = state.rng.permutation(n)
    seen = OnlinePass(np.empty(n, np.float32), np.empty(n, np.int32))
    if learners and learners[0].recurrent:
        _recurrent_pass(state.fields, rows, weight, search, rule, learners[0], order, rate, seen, n_threads)
    elif rule.e_step == "partial" and state.activities is not None:
        _partial_pass(state, rows, weight, rule, learners, order, rate, seen, n_threads)
    else:
        if rule.e_step == "partial":
            state.activities = Activities.empty(n, search.find(state.fields, rows.take(order[:1])).ids.shape[1])
        _exact_pass(state, rows, weight, search, rule, learners, order, rate, seen, n_threads)
    state.epoch += 1
    return seen


def _chunks(order: Array, rule: OnlineRule, width: int) -> Iterator[slice]:
    """Divide an epoch into chunks of complete mini-batches, whose activities are kept for the second layers."""
    at_once = max(min(_CHUNK_ROWS, _CHUNK_ACTIVITIES // width) // rule.batch_size, 1) * rule.batch_size
    for start in range(0, order.size, at_once):
        yield slice(start, start + at_once)


def _teach(
    learners: Sequence[ClassLearner], parts: list[Activities], points: Array, n_fields: int, n_threads: int
) -> None:
    """Teach second layers side by side from the activities of `points`; they do not depend on each other."""
    if not learners:
        return
    width = max(part.ids.shape[1] for part in parts)
    stored = Activities.stacked(parts, width).to_csr(n_fields)
    if len(learners) == 1 or n_threads == 1:
        for learner in learners:
            learner.learn_batches(stored, points)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda learner: learner.learn_batches(stored, points), learners))


def _exact_pass(
    state: OnlineState,
    rows: Rows,
    weight: Array | None,
    search: Search,
    rule: OnlineRule,
    learners: Sequence[ClassLearner],
    order: Array,
    rate: float,
    seen: OnlinePass,
    n_threads: int,
) -> None:
    fields = state.fields
    width = search.truncation if search.truncated else len(fields)
    for chunk in _chunks(order, rule, width):
        parts = []
        for start in range(0, order[chunk].size, rule.batch_size):
            points = order[chunk][start : start + rule.batch_size]
            batch, w = rows.take(points), None if weight is None else weight[points]
            activities = search.find(fields, batch)
            seen.log_sum[points] = log_sum_of_joints(fields, activities, rows.row_sum)
            seen.best[points] = activities.best
            fields.hebbian_step(batch, w, activities, rate, n_threads)
            if state.activities:
                state.activities.ids[points], state.activities.s[points] = activities.ids, activities.s
            parts.append(activities)
        _teach(learners, parts, order[chunk], len(fields), n_threads)


def _partial_pass(
    state: OnlineState,
    rows: Rows,
    weight: Array | None,
    rule: OnlineRule,
    learners: Sequence[ClassLearner],
    order: Array,
    rate: float,
    seen: OnlinePass,
    n_threads: int,
) -> None:
    fields, activities = state.fields, state.activities
    assert activities is not None
    if state.lists is None or state.epoch % LISTS_LAST == 0:
        state.lists = np.empty((len(fields), min(N_LISTED, len(fields))), np.int32)
        kernels.build_lists(activities.ids, state.lists, n_threads)
    for chunk in _chunks(order, rule, activities.ids.shape[1]):
        points = order[chunk]
        drawn = state.rng.integers(0, len(fields), (points.size, N_DRAWN), dtype=np.int32)
        kernels.learn_online(
            rows.arrays,
            rows.scale,
            weight,
            points,
            rule.batch_size,
            rate,
            rows.row_sum,
            state.lists,
            drawn,
            fields.w,
            fields.log_w,
            fields.log_w_sum,
            fields.w_sum,
            activities.ids,
            activities.s,
            activities.log_sum,
            seen.log_sum,
            n_threads,
        )
        _teach(learners, [activities.take(points)], points, len(fields), n_threads)
    seen.best[:] = activities.best


def _recurrent_pass(
    fields: Fields,
    rows: Rows,
    weight: Array | None,
    search: Search,
    rule: OnlineRule,
    learner: ClassLearner,
    order: Array,
    rate: float,
    seen: OnlinePass,
    n_threads: int,
) -> None:
    """One s serves the updates of both layers, unless inferred labels feed back into s."""
    for start in range(0, order.size, rule.batch_size):
        points = order[start : start + rule.batch_size]
        batch, w = rows.take(points), None if weight is None else weight[points]
        activities = search.find(fields, batch, learner.prior(points, inferred=False))
        learner.learn_batch(activities, points)
        if learner.inferred_feedback:
            activities = search.find(fields, batch, learner.prior(points))
        seen.log_sum[points] = log_sum_of_joints(fields, activities, rows.row_sum)
        seen.best[points] = activities.best
        fields.hebbian_step(batch, w, activities, rate, n_threads)
