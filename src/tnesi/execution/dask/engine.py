"""The distributed engine: blocks of rows on the workers of a Dask cluster.

A pass sends the parameters once, runs a task for each block and adds up the statistics, first within each worker, then
in a tree; only the total is sent to the client. If all workers are on the client's machine, they share memory instead
(see :mod:`tnesi.execution.dask.shared_array`). Sums are exact (see :class:`tnesi.model.fields.Units`), so the result is
bitwise equal to that of :class:`tnesi.execution.local.LocalEngine`.

Workers may join and leave. A pass only depends on the fields K^(n) of the previous one, which the client receives after
each pass: if a worker dies, its blocks are loaded elsewhere, K^(n) is restored, and the pass is repeated for them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakSet

import numpy as np
from distributed import Future

from tnesi.errors import InvalidParameterError
from tnesi.execution.dask import tasks
from tnesi.execution.dask.blocks import Blocks, LostError, in_memory, results, scattered
from tnesi.execution.dask.cluster import ClusterError
from tnesi.execution.dask.shared_array import OutOfReachError, opened, reading
from tnesi.execution.dask.tasks import BlockReport, Found, Parameters, PartialStatistics
from tnesi.execution.local import sample_step
from tnesi.execution.part import Summary
from tnesi.execution.survey import Survey
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, Shrinkage, Statistics, Units
from tnesi.search import Search
from tnesi.types import Array

T = TypeVar("T")

_TRIES = 12
"""Maximum number of attempts of a pass."""

_MOST_SHARING_FAILURES = 3
"""Number of failures to read a shared array after which arrays are no longer shared."""
_FIRST = 4
"""Workers that receive the parameters from the client; the others receive them from these."""
_LAST = 2
"""Number of partial sums that the client adds up."""

logger = logging.getLogger(__name__)


@dataclass
class Pass:
    """A pass over all rows.

    Attributes
    ----------
    before : (N, C') array or None
        The fields of the previous pass.
    found : dict of Future
        The result of each block, as far as it is computed.
    summaries : dict of Summary
        The summary of each block, as far as the client has received it.
    ids : (N, C') array or None
        The fields of this pass, as far as the client has received them.
    sent : Parameters or None
        The parameters in shared memory.
    shares : bool
        Whether memory may be shared: not after a worker failed to open it.
    """

    name: str
    task: Callable[..., Found]
    parameters: Parameters
    before: Array | None
    learns: bool
    found: dict[int, Future] = field(default_factory=dict)
    summaries: dict[int, Summary] = field(default_factory=dict)
    ids: Array | None = None
    sent: Parameters | None = None
    shares: bool = True


class DaskEngine:
    """Passes over the training rows; see :class:`tnesi.execution.engine.Engine`."""

    def __init__(self, blocks: Blocks, n_threads: int) -> None:
        self._blocks, self._client, self._n_threads = blocks, blocks.cluster.client, n_threads
        self.n_rows, self.n_features = blocks.store.n_rows, blocks.store.n_features
        weight = blocks.weight
        self.total = float(self.n_rows if weight is None else weight.sum(dtype=np.float64))
        self.row_sum = 0.0
        self._statistics: Statistics | None = None
        self._sent: Parameters | None = None
        self._partial: list[PartialStatistics] = []
        self._state: dict[int, Future] = {}
        self._ids: Array | None = None
        self._constant = np.empty(self.n_rows)
        self._last: Pass | None = None
        self._n_sharing_failures = 0
        self._activities: Activities | None = None
        self._futures: WeakSet[Future] = WeakSet()  # tracebacks may keep futures alive
        self._name, self._iteration, self._n_tasks = uuid4().hex[:8], 0, 0

    @property
    def part(self) -> Any:
        """Raise an error: the rows are distributed."""
        raise InvalidParameterError(
            "learning without a truncation needs all rows in one process",
            parameter="truncation",
            advice="pass a {truncation}, or leave out {execution}",
        )

    def survey(self, seed: int) -> Survey:
        def seen() -> Survey:
            self._blocks.ready()
            futures = [self._submit("survey", tasks.survey, rows, seed) for rows in self._blocks.rows]
            found = {future.key: grains for future, grains in results(self._blocks.cluster, futures)}
            return Survey.joined([grain for future in futures for grain in found[future.key]])

        return self._retry(seen)

    def take(self, index: Array) -> Any:
        """Return the rows with the given indices."""
        return self._blocks.store.take(index)

    def normalize(self, row_sum: float) -> None:
        self.row_sum = row_sum

    def begin(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Find the fields of all rows for the first time."""
        _reject_prior(prior)
        self._blocks.check_room(len(fields) * self.n_features * 8)
        search.begin(fields)
        summary = self._run_pass("find", tasks.find, fields, search, learns=not search.searches_twice)
        if search.searches_twice:
            search.build_lists(self._sample_ids(len(fields)), len(fields))
            summary = self._run_pass("improve", tasks.improve, fields, search, learns=True)
            search.build_lists(self._sample_ids(len(fields)), len(fields))
        return replace(summary, changed=self.n_rows)

    def resume(self, fields: Fields, search: Search, activities: Activities) -> None:
        """Resume from activities that an earlier run has found for the same rows."""
        self._ids = tasks.narrow(activities.ids, len(fields))
        self._run_pass("restore", tasks.restore, fields, search.frozen(len(fields)), learns=True)

    def step(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Improve the fields of all rows after the weights changed."""
        _reject_prior(prior)
        self._iteration += 1
        summary = self._run_pass("improve", tasks.improve, fields, search, learns=True)
        if search.needs_lists():
            search.build_lists(self._sample_ids(len(fields)), len(fields))
        return summary

    def m_step(self, fields: Fields, shrinkage: Shrinkage | None, spare: Fields | None) -> Fields:
        """Return the fields learned from the last pass."""
        assert self._statistics is not None
        return fields.from_statistics(self._statistics, self.row_sum, self._n_threads, spare, shrinkage)

    @property
    def activities(self) -> Activities:
        """Activities of all rows after the last pass."""
        if self._activities is None:
            self._activities = self._retry(self._gathered)
        return self._activities

    def sample(self, n_fields: int) -> Activities:
        """Return the activities of evenly spaced rows; see :meth:`tnesi.execution.local.LocalEngine.sample`."""
        return self.activities.at(slice(None, None, sample_step(self.n_rows, n_fields)))

    def sample_constant(self, n_fields: int) -> Array:
        """Return the constants sum_d log y_d! of the same rows."""
        return self._constant[:: sample_step(self.n_rows, n_fields)]

    def close(self) -> None:
        """Release everything on the workers except the rows, and shared memory, which is released with the rows."""
        self._state, self._last, self._sent, self._partial = {}, None, None, []
        self._release()

    def _sample_ids(self, n_fields: int) -> Array:
        assert self._ids is not None
        return tasks.wide(self._ids[:: sample_step(self.n_rows, n_fields)])

    def _run_pass(
        self, name: str, task: Callable[..., Found], fields: Fields, search: Search, *, learns: bool
    ) -> Summary:
        """Make a pass over all rows."""
        search = replace(search, n_threads=1)
        parameters = Parameters(fields.log_w, fields.log_w_sum, self.row_sum, search)
        this = Pass(name, task, parameters, None if task is tasks.find else self._ids, learns)
        self._last, self._activities = this, None
        self._retry(lambda: self._attempt(this))
        summaries = [this.summaries[number] for number in range(len(self._blocks))]
        self._ids, self._state = this.ids, this.found
        return Summary(np.concatenate([one.energy for one in summaries]), sum(one.changed for one in summaries))

    def _retry(self, action: Callable[[], T]) -> T:
        """Repeat an action if workers are lost during it."""
        for attempt in range(_TRIES):
            try:
                return action()
            except (LostError, OutOfReachError) as lost:
                reason = lost.with_traceback(None)  # the traceback would keep arrays of this attempt alive
                logger.info("a worker was lost (%s): its blocks move to other workers", lost)
                if isinstance(lost, OutOfReachError) and self._last:
                    self._last.shares = False
                    self._n_sharing_failures += 1
                time.sleep(0.05 * attempt)
                self._forget_lost()
        raise ClusterError(
            "workers were lost {n} times within one pass over the rows ({reason})",
            n=_TRIES,
            reason=reason,
            advice="see their logs; the usual cause is a lack of memory",
        ) from reason

    def _forget_lost(self) -> None:
        self._blocks.forget_lost()
        found = self._last.found if self._last else {}
        kept = in_memory(self._blocks.cluster, [*self._state.values(), *found.values()])
        self._state = {number: future for number, future in self._state.items() if future.key in kept}
        if self._last:
            self._last.found = {number: future for number, future in found.items() if future.key in kept}
        self._release()

    def _release(self) -> None:
        """Release futures that are no longer needed, and cancel their tasks."""
        needed = {future.key for future in (*self._state.values(), *(self._last.found.values() if self._last else ()))}
        for future in list(self._futures):
            if future.key not in needed:
                future.release()
                self._futures.discard(future)

    def _attempt(self, this: Pass) -> None:
        """Run the missing parts of a pass."""
        blocks = self._blocks
        for number in blocks.ready():
            self._state.pop(number, None)
        share = this.shares and self._n_sharing_failures < _MOST_SHARING_FAILURES
        share = share and blocks.cluster.shares_memory(blocks.workers)
        missing = [number for number in range(len(blocks)) if number not in this.found]
        if missing:
            homes = sorted({blocks.homes[number] for number in missing})
            parameters = self._scatter("parameters", self._for_workers(this, share), homes[:_FIRST])
            for number in missing:
                home = blocks.homes[number]
                given = [blocks.rows[number], *self._before(this, number)]
                sent = parameters[homes.index(home) % _FIRST]
                this.found[number] = self._submit(this.name, this.task, sent, *given, home=home)
        reports = self._request_reports(this, share)
        sums = self._sum(this, share) if this.learns else []
        parts = []
        for future, result in results(blocks.cluster, [*reports, *sums]):
            if future in reports:
                self._receive(this, reports[future], result)
            else:
                opened(result.sums)  # before the worker releases it
                parts.append(result)
        if parts:
            self._learn(parts)  # before the workers release them

    def _for_workers(self, this: Pass, share: bool) -> Parameters:
        """Return the parameters, in shared memory if possible."""
        if not share:
            return this.parameters
        if this.sent is None:
            this.sent = self._sent = this.parameters.shared(self._sent)
        return this.sent

    def _learn(self, parts: list[PartialStatistics]) -> None:
        """Add up the statistics."""
        if self._statistics is None:
            self._statistics = Statistics.zeros(len(parts[0].mass), self.n_features, self._units())
        with reading(*(part.sums for part in parts)) as sums:
            _add_up(sums, self._statistics.sums)
        _add_up([part.mass for part in parts], self._statistics.mass)
        self._partial = [part for part in parts if part.is_reused]

    def _request_reports(self, this: Pass, share: bool) -> dict[Future, list[int]]:
        """Request reports of blocks that the client has not received, those of a slot in one task."""
        reports = {}
        for _, groups in self._blocks.groups():
            for group in groups:
                if new := [number for number in group if number not in this.summaries]:
                    rows, found = self._blocks.rows[new[0]], [this.found[number] for number in new]
                    first = this.task is not tasks.improve
                    future = self._submit("report", tasks.report, rows, found, constant=first, share=share, priority=1)
                    reports[future] = new
        return reports

    def _receive(self, this: Pass, numbers: list[int], report: BlockReport) -> None:
        """Store the report of some blocks."""
        with reading(report.ids) as [ids]:
            if this.ids is None:
                this.ids = np.empty((self.n_rows, ids.shape[1]), ids.dtype)
            start = 0
            for number in numbers:
                place = self._blocks.places[number]
                own = slice(start, start := start + place.stop - place.start)
                this.ids[place] = ids[own]
                if report.constant is not None:
                    self._constant[place] = report.constant[own]
        this.summaries |= dict(zip(numbers, report.summaries, strict=True))

    def _before(self, this: Pass, number: int) -> list[Future]:
        """Return the result of a block in the previous pass; if it was lost, send it from the client."""
        if this.before is None:
            return []
        if number not in self._state:
            place = self._blocks.places[number]
            lost = Found(this.before[place], self._constant[place])
            [self._state[number]] = self._scatter("restored", lost, [self._blocks.homes[number]])
        return [self._state[number]]

    def _sum(self, this: Pass, share: bool) -> list[Future]:
        """Add up the statistics of all blocks: first per slot, then per worker, then in a tree.

        The client adds up the last few sums, which arrive while other workers are still busy.
        """
        blocks, n_fields, of_workers = self._blocks, len(this.parameters.log_w_sum), []
        for home, groups in blocks.groups():
            parts = [
                self._submit(
                    "learn",
                    tasks.learn,
                    [blocks.rows[number] for number in group],
                    [this.found[number] for number in group],
                    self.row_sum,
                    self._units(),
                    n_fields,
                    share=share,
                    home=home,
                )
                for group in groups
            ]
            of_workers += self._tree(parts, 1, share)
        return self._tree(of_workers, _LAST, share)

    def _tree(self, parts: list[Future], most: int, share: bool) -> list[Future]:
        while len(parts) > most:
            pairs = [
                self._submit("add", tasks.add, *parts[i : i + 2], share=share) for i in range(0, len(parts) - 1, 2)
            ]
            parts = pairs + parts[len(parts) - len(parts) % 2 :]
        return parts

    def _gathered(self) -> Activities:
        assert self._last is not None
        if len(self._last.found) < len(self._blocks):
            self._last.learns = False
            self._attempt(self._last)
        futures = self._last.found
        found = {future.key: one for future, one in results(self._blocks.cluster, futures.values())}
        each = [found[futures[number].key].activities() for number in range(len(self._blocks))]
        return Activities(*(np.concatenate([getattr(one, name) for one in each]) for name in ("ids", "s", "log_sum")))

    def _units(self) -> Units:
        return Units.for_rows(self.total, self.row_sum - self.n_features)

    def _key(self, name: str) -> str:
        self._n_tasks += 1
        return f"tnesi-{name}-{self._iteration}-{self._name}-{self._n_tasks}"

    def _scatter(self, name: str, value: object, homes: list[str]) -> list[Future]:
        return [self._tracked(future) for future in scattered(self._blocks.cluster, value, self._key(name), homes)]

    def _tracked(self, future: Future) -> Future:
        self._futures.add(future)
        return future

    def _submit(
        self, name: str, task: Callable[..., Any], *given: Any, home: str | None = None, priority: int = 0, **more: Any
    ) -> Future:
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        key = self._key(name)
        try:
            future = self._client.submit(task, *given, key=key, pure=False, priority=priority, **where, **more)
        except CancelledError as error:
            raise LostError(str(error)) from error
        return self._tracked(future)


def _add_up(parts: list[Array], out: Array) -> None:
    """Add up arrays with as few passes through memory as possible."""
    if len(parts) == 1:
        out[...] = parts[0]
        return
    np.add(parts[0], parts[1], out=out)
    for part in parts[2:]:
        out += part


def _reject_prior(prior: Prior | None) -> None:
    if prior is not None:
        raise InvalidParameterError("a recurrent network needs all rows in one process", parameter="recurrent")
