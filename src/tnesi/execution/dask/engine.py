"""The engine of many machines: blocks of rows on the workers of a Dask cluster.

A pass sends the parameters out once, runs a task for each block and adds up what they teach, first within each worker,
then in a tree; only the total comes to the client. Where all workers are on the client's machine, neither is sent:
they share memory (see :mod:`tnesi.execution.dask.shared_array`). Sums are exact (see
:class:`tnesi.model.fields.Units`), so the result has the same bits as that of
:class:`tnesi.execution.local.LocalEngine`.

Workers may come and go. The fields K^(n) of a block are all that a pass needs to know of the one before, and the client
hears of them each time: when a worker dies its blocks are loaded elsewhere, get them back and run the pass again.
Tasks never depend on those of earlier passes in any other way.
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
from tnesi.execution.dask.tasks import Found, Parameters, Taught, Told
from tnesi.execution.local import sample_step
from tnesi.execution.part import Search, Summary
from tnesi.execution.survey import Survey
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, Shrinkage, Statistics, Units
from tnesi.types import Array

T = TypeVar("T")

_TRIES = 12
"""Times that a pass is gone on with after something was lost."""

_DISTRUST = 3
"""Passes in which something shared was out of reach, after which nothing is shared any more."""
_FIRST = 4
"""Workers that get the parameters from the client; the others get them from these."""
_LAST = 2
"""Sums that the client adds up by itself."""

logger = logging.getLogger(__name__)


@dataclass
class Pass:
    """A pass over all rows.

    Attributes
    ----------
    before : (N, C') array or None
        The fields of the pass before.
    found : dict of Future
        Of each block, as far as it has been made.
    ids : (N, C') array or None
        The fields of this pass, as far as they are known.
    sent : Parameters or None
        The same in memory that the workers share.
    shares : bool
        Whether memory may be shared: not after somebody could not open what was.
    """

    name: str
    task: Callable[..., Found]
    parameters: Parameters
    before: Array | None
    learns: bool
    found: dict[int, Future] = field(default_factory=dict)
    told: dict[int, Summary] = field(default_factory=dict)
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
        self._taught: list[Taught] = []
        self._state: dict[int, Future] = {}
        self._ids: Array | None = None
        self._constant = np.empty(self.n_rows)
        self._last: Pass | None = None
        self._n_out_of_reach = 0
        self._activities: Activities | None = None
        self._futures: WeakSet[Future] = WeakSet()  # an error that is being handled may keep them alive
        self._name, self._iteration, self._n_tasks = uuid4().hex[:8], 0, 0

    @property
    def part(self) -> Any:
        """All rows are in no one place."""
        raise InvalidParameterError(
            "without a truncation, all rows have to be in one process",
            parameter="truncation",
            advice="pass a {truncation}, or leave out {execution}",
        )

    def survey(self, seed: int) -> Survey:
        def seen() -> Survey:
            self._blocks.ready()
            futures = [self._submit("survey", tasks.survey, rows, seed) for rows in self._blocks.rows]
            found = {future.key: grains for future, grains in results(self._blocks.cluster, futures)}
            return Survey.joined([grain for future in futures for grain in found[future.key]])

        return self._insist(seen)

    def take(self, index: Array) -> Any:
        """Return the rows of these numbers."""
        return self._blocks.store.take(index)

    def normalize(self, row_sum: float) -> None:
        self.row_sum = row_sum

    def begin(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Find the fields of all rows, of which nothing is known."""
        _refuse(prior)
        self._blocks.check_room(len(fields) * self.n_features * 8)
        search.begin(fields)
        summary = self._go("find", tasks.find, fields, search, learns=not search.looks_twice)
        if search.looks_twice:
            search.remember(self._sample_ids(len(fields)), len(fields))
            summary = self._go("look", tasks.look, fields, search, learns=True)
            search.remember(self._sample_ids(len(fields)), len(fields))
        return replace(summary, changed=self.n_rows)

    def resume(self, fields: Fields, search: Search, activities: Activities) -> None:
        """Go on from the activities that an earlier run has found for the same rows."""
        self._ids = tasks.narrow(activities.ids, len(fields))
        self._go("recall", tasks.recall, fields, search.that_stays(len(fields)), learns=True)

    def step(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Improve the fields of all rows after the weights have changed."""
        _refuse(prior)
        self._iteration += 1
        summary = self._go("look", tasks.look, fields, search, learns=True)
        if search.wants_lists():
            search.remember(self._sample_ids(len(fields)), len(fields))
        return summary

    def m_step(self, fields: Fields, shrinkage: Shrinkage | None, spare: Fields | None) -> Fields:
        """Return the fields that the last pass has taught."""
        assert self._statistics is not None
        return fields.learned(self._statistics, self.row_sum, self._n_threads, spare, shrinkage)

    @property
    def activities(self) -> Activities:
        """Of all rows, as the last pass has left them."""
        if self._activities is None:
            self._activities = self._insist(self._gathered)
        return self._activities

    def sample(self, n_fields: int) -> Activities:
        """Return the activities of evenly spaced rows; see :meth:`tnesi.execution.local.LocalEngine.sample`."""
        return self.activities.at(slice(None, None, sample_step(self.n_rows, n_fields)))

    def sample_constant(self, n_fields: int) -> Array:
        """Return the constants sum_d log y_d! of the same rows."""
        return self._constant[:: sample_step(self.n_rows, n_fields)]

    def close(self) -> None:
        """Leave nothing on the workers but the rows, and memory that was shared, which goes with them."""
        self._state, self._last, self._sent, self._taught = {}, None, None, []
        self._release()

    def _sample_ids(self, n_fields: int) -> Array:
        assert self._ids is not None
        return tasks.wide(self._ids[:: sample_step(self.n_rows, n_fields)])

    def _go(self, name: str, task: Callable[..., Found], fields: Fields, search: Search, *, learns: bool) -> Summary:
        """Make a pass over all rows."""
        search = replace(search, n_threads=1)
        parameters = Parameters(fields.log_w, fields.log_w_sum, self.row_sum, search)
        this = Pass(name, task, parameters, None if task is tasks.find else self._ids, learns)
        self._last, self._activities = this, None
        self._insist(lambda: self._attempt(this))
        told = [this.told[number] for number in range(len(self._blocks))]
        self._ids, self._state = this.ids, this.found
        return Summary(np.concatenate([one.energy for one in told]), sum(one.changed for one in told))

    def _insist(self, action: Callable[[], T]) -> T:
        """Do something again as long as workers are lost in the meantime."""
        for attempt in range(_TRIES):
            try:
                return action()
            except (LostError, OutOfReachError) as lost:
                reason = lost.with_traceback(None)  # which would keep arrays of this attempt alive
                logger.info("a worker was lost (%s): its blocks go elsewhere", lost)
                if isinstance(lost, OutOfReachError) and self._last:
                    self._last.shares = False
                    self._n_out_of_reach += 1
                time.sleep(0.05 * attempt)
                self._forget_lost()
        raise ClusterError(
            f"workers were lost {_TRIES} times within one pass over the rows ({reason}): look at their logs; too "
            "little memory is the usual reason"
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
        """Let the workers forget, and not go on with, all that is not needed any more."""
        needed = {future.key for future in (*self._state.values(), *(self._last.found.values() if self._last else ()))}
        for future in list(self._futures):
            if future.key not in needed:
                future.release()
                self._futures.discard(future)

    def _attempt(self, this: Pass) -> None:
        """Do what has not been done yet of a pass."""
        blocks = self._blocks
        for number in blocks.ready():
            self._state.pop(number, None)
        share = this.shares and self._n_out_of_reach < _DISTRUST and blocks.cluster.shares_memory(blocks.workers)
        missing = [number for number in range(len(blocks)) if number not in this.found]
        if missing:
            homes = sorted({blocks.homes[number] for number in missing})
            parameters = self._scatter("parameters", self._for_workers(this, share), homes[:_FIRST])
            for number in missing:
                home = blocks.homes[number]
                given = [blocks.rows[number], *self._before(this, number)]
                sent = parameters[homes.index(home) % _FIRST]
                this.found[number] = self._submit(this.name, this.task, sent, *given, home=home)
        telling = self._tell(this, share)
        parts = self._sum(this, share) if this.learns else []
        taught = []
        for future, result in results(blocks.cluster, [*telling, *parts]):
            if future in telling:
                self._hear(this, telling[future], result)
            else:
                opened(result.sums)  # while the worker still has it
                taught.append(result)
        if taught:
            self._learn(taught)  # before the workers let it go

    def _for_workers(self, this: Pass, share: bool) -> Parameters:
        """Return the parameters in the form in which workers get them."""
        if not share:
            return this.parameters
        if this.sent is None:
            this.sent = self._sent = this.parameters.shared(self._sent)
        return this.sent

    def _learn(self, taught: list[Taught]) -> None:
        """Add up what the rows teach."""
        if self._statistics is None:
            self._statistics = Statistics.zeros(len(taught[0].mass), self.n_features, self._units())
        with reading(*(part.sums for part in taught)) as sums:
            _add_up(sums, self._statistics.sums)
        _add_up([part.mass for part in taught], self._statistics.mass)
        self._taught = [part for part in taught if part.comes_again]

    def _tell(self, this: Pass, share: bool) -> dict[Future, list[int]]:
        """Let workers tell of the blocks of which the client has not heard: those of a slot in one task."""
        telling = {}
        for _, groups in self._blocks.groups():
            for group in groups:
                if new := [number for number in group if number not in this.told]:
                    rows, found = self._blocks.rows[new[0]], [this.found[number] for number in new]
                    first = this.task is not tasks.look
                    future = self._submit("tell", tasks.tell, rows, found, constant=first, share=share, priority=1)
                    telling[future] = new
        return telling

    def _hear(self, this: Pass, numbers: list[int], told: Told) -> None:
        """Keep what is to be known of some blocks."""
        with reading(told.ids) as [ids]:
            if this.ids is None:
                this.ids = np.empty((self.n_rows, ids.shape[1]), ids.dtype)
            start = 0
            for number in numbers:
                place = self._blocks.places[number]
                own = slice(start, start := start + place.stop - place.start)
                this.ids[place] = ids[own]
                if told.constant is not None:
                    self._constant[place] = told.constant[own]
        this.told |= dict(zip(numbers, told.summaries, strict=True))

    def _before(self, this: Pass, number: int) -> list[Future]:
        """Return what was found in a block by the pass before; if it was lost, the client knows it."""
        if this.before is None:
            return []
        if number not in self._state:
            place = self._blocks.places[number]
            known = Found(this.before[place], self._constant[place])
            [self._state[number]] = self._scatter("restored", known, [self._blocks.homes[number]])
        return [self._state[number]]

    def _sum(self, this: Pass, share: bool) -> list[Future]:
        """Add up what all blocks teach: those of a slot in one task, then those of a worker, then in a tree.

        The client adds up the last few, which come to it one after the other while workers are still at work.
        """
        blocks, n_fields, of_workers = self._blocks, len(this.parameters.log_w_sum), []
        for home, groups in blocks.groups():
            taught = [
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
            of_workers += self._tree(taught, 1, share)
        return self._tree(of_workers, _LAST, share)

    def _tree(self, taught: list[Future], most: int, share: bool) -> list[Future]:
        while len(taught) > most:
            pairs = [
                self._submit("add", tasks.add, *taught[i : i + 2], share=share) for i in range(0, len(taught) - 1, 2)
            ]
            taught = pairs + taught[len(taught) - len(taught) % 2 :]
        return taught

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

    def _scatter(self, name: str, value: Any, homes: list[str]) -> list[Future]:
        return [self._noted(future) for future in scattered(self._blocks.cluster, value, self._key(name), homes)]

    def _noted(self, future: Future) -> Future:
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
        return self._noted(future)


def _add_up(parts: list[Array], out: Array) -> None:
    """Add up arrays in as few turns through memory as can be."""
    if len(parts) == 1:
        out[...] = parts[0]
        return
    np.add(parts[0], parts[1], out=out)
    for part in parts[2:]:
        out += part


def _refuse(prior: Prior | None) -> None:
    if prior is not None:
        raise InvalidParameterError("a recurrent network needs all rows in one process", parameter="recurrent")
