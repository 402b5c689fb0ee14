"""The engine of one device: rows, activities and sums stay there; W and log W are copied in every iteration.

Rows in memory are copied to the device once; rows in a file are copied in grains in every pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tnesi.execution.local import sample_step
from tnesi.execution.part import Part, Summary
from tnesi.execution.settings import Local, Torch
from tnesi.execution.store import ArrayStore, TensorStore, even_grain, parts
from tnesi.execution.survey import Survey
from tnesi.kernels import tensors as kernels
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, Shrinkage, Units
from tnesi.model.rows import RowStore
from tnesi.search import Search
from tnesi.system.devices import Device, find_device
from tnesi.types import Array

if TYPE_CHECKING:
    from torch import Tensor

_CHUNK = 4096
"""Rows whose values are converted together for the survey."""


@contextmanager
def device_for(run: Local, n_threads: int) -> Iterator[Device | None]:
    """Yield the device that the settings request, ready for computations; None means the processor."""
    if not isinstance(run, Torch):
        yield None
        return
    device = find_device(run.device, deterministic=run.deterministic)
    with device.running(n_threads):
        yield device


class DeviceEngine:
    """Passes over the training rows on a device; see :class:`tnesi.execution.engine.Engine`."""

    def __init__(self, store: RowStore, sums: Array, weight: Array | None, device: Device, n_threads: int) -> None:
        self.n_rows, self.n_features = store.n_rows, store.n_features
        self.total = float(self.n_rows if weight is None else weight.sum(dtype=np.float64))
        self.row_sum = 0.0
        self._given, self._sums, self._given_weight = store, sums, weight
        self._device, self._n_threads = device, n_threads
        self._weight = None if weight is None else device.tensor(weight)
        self._store = ArrayStore(device.tensor(store.x)) if isinstance(store, ArrayStore | TensorStore) else store
        self._grain = even_grain(store)
        self._part: Part | None = None
        self._scale: Tensor
        self._found: tuple[Tensor, Tensor, Tensor]
        self._statistics: tuple[Tensor, Tensor]
        self._constant: Tensor

    @property
    def part(self) -> Part:
        """All rows, for the online rule: those in memory are on the device."""
        if self._part is None:
            self._part = Part(self._store, self._sums, self._given_weight, self._n_threads)
            self._part.normalize(self.row_sum)
        return self._part

    @property
    def activities(self) -> Activities:
        """Activities of all rows after the last pass, or of `part` after the online rule."""
        if self._part is not None:
            return self._part.activities
        ids, s, log_sum = map(self._device.array, self._found)
        return Activities(ids, s, log_sum)

    def survey(self, seed: int) -> Survey:
        if isinstance(self._given, TensorStore):
            return Survey.joined(self._surveys(seed))
        return Survey.joined(Part(self._given, self._sums, self._given_weight, self._n_threads).surveys(seed))

    def _surveys(self, seed: int) -> Iterator[Survey]:
        """Survey rows that are on the device."""
        for place, x in self._grains():
            hashes = self._device.tensor(np.empty(len(x), np.int64))
            kernels.row_hashes(x, seed, hashes, self._n_threads)
            weight = self._device.tensor(np.ones(len(x), np.float32)) if self._weight is None else self._weight[place]
            per_row = weight / self._device.tensor(self._sums[place].astype(np.float32))
            found = [weight.new_zeros(self.n_features) for _ in range(2)]
            for rows, w, factor in zip(x.split(_CHUNK), weight.split(_CHUNK), per_row.split(_CHUNK), strict=True):
                found[0] += w @ (rows > 0).to(w.dtype)
                found[1] += factor @ rows.to(w.dtype)
            count, share = (self._device.array(one).astype(np.float64) for one in found)
            total = len(x) if self._given_weight is None else self._given_weight[place].sum(dtype=np.float64)
            yield Survey(self._device.array(hashes).view(np.uint64), count, share, float(total))

    def take(self, index: Array) -> Any:
        """Return the rows with the given indices, in the memory of the processor."""
        return self._given.take(index)

    def normalize(self, row_sum: float) -> None:
        self.row_sum = row_sum
        self._scale = self._device.tensor(((row_sum - self.n_features) / self._sums).astype(np.float32))

    def begin(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Find the fields of all rows for the first time."""
        self._allocate(Activities.empty(self.n_rows, search.truncation), len(fields))
        return self._pass(fields, prior)

    def resume(self, fields: Fields, search: Search, activities: Activities) -> None:
        """Resume from activities that an earlier run has found for the same rows."""
        self._allocate(activities, len(fields))
        for place, x in self._grains():
            self._add_statistics(place, x)

    def step(self, fields: Fields, search: Search, prior: Prior | None) -> Summary:
        """Find the fields of all rows again after the weights changed."""
        return self._pass(fields, prior)

    def m_step(self, fields: Fields, shrinkage: Shrinkage | None, spare: Fields | None) -> Fields:
        """Return the fields learned from the last pass."""
        device = self._device
        old_w = device.tensor(fields.w)
        w, log_w = old_w.new_empty(old_w.shape), old_w.new_zeros(fields.log_w.shape)
        log_w_sum = old_w.new_empty(len(fields))
        prior, prior_rows = (None, 0.0) if shrinkage is None else (device.tensor(shrinkage.above), shrinkage.rows)
        sums, mass = self._statistics
        kernels.finish_m_step(sums, mass, old_w, prior, prior_rows, w, log_w, log_w_sum, self._n_threads)
        new = Fields(device.array(w), device.array(log_w), device.array(log_w_sum), np.empty_like(fields.w_sum))
        new.set_sums(fields, device.array(mass).astype(np.float64), self.row_sum, shrinkage)
        return new

    def sample(self, n_fields: int) -> Activities:
        """Return the activities of evenly spaced rows, enough to find the neighbors of each field."""
        return self.activities.at(slice(None, None, sample_step(self.n_rows, n_fields)))

    def sample_constant(self, n_fields: int) -> Array:
        """Return the constants sum_d log y_d! of the same rows."""
        constant = self._part.constant if self._part is not None else self._device.array(self._constant)
        return constant[:: sample_step(self.n_rows, n_fields)].astype(np.float64)

    def _allocate(self, activities: Activities, n_fields: int) -> None:
        """Allocate activities, statistics and constants; compute the constants."""
        device, kind = self._device, self._device.sum_type
        self._found = (device.tensor(activities.ids), device.tensor(activities.s), device.tensor(activities.log_sum))
        self._statistics = (
            device.tensor(np.zeros((n_fields, self.n_features), kind)),
            device.tensor(np.zeros(n_fields, kind)),
        )
        self._constant = device.tensor(np.zeros(self.n_rows, kind))
        for place, x in self._grains():
            kernels.log_factorials(x, self._scale[place], self._constant[place], self._n_threads)

    def _pass(self, fields: Fields, prior: Prior | None) -> Summary:
        """Find the fields of all rows; add up statistics and free energy."""
        device = self._device
        log_w, base = device.tensor(fields.log_w), device.tensor(fields.base(prior))
        base_row = None if prior is None or prior.row is None else device.tensor(prior.row)
        before, energy = self._found[0].select(1, 0).clone(), []
        for one in self._statistics:
            one.zero_()
        for place, x in self._grains():
            row = None if base_row is None else base_row[place]
            ids, s, log_sum = (one[place] for one in self._found)
            kernels.search_all(x, self._scale[place], log_w, base, row, ids, s, log_sum, self._n_threads)
            self._add_statistics(place, x)
            each = log_sum.to(self._constant.dtype) - self._constant[place]
            energy.append((each if self._weight is None else each * self._weight[place]).sum())
        changed = (self._found[0].select(1, 0) != before).sum()
        return Summary(np.array([float(device.array(one)) for one in energy]), int(device.array(changed)))

    def _add_statistics(self, place: slice, x: Tensor) -> None:
        weight = None if self._weight is None else self._weight[place]
        ids, s, _ = (one[place] for one in self._found)
        units = Units.for_rows(self.total, self.row_sum - self.n_features)
        kernels.add_statistics(x, self._scale[place], weight, ids, s, *units, *self._statistics, self._n_threads)

    def _grains(self) -> Iterator[tuple[slice, Tensor]]:
        for place, x in parts(self._store, self._grain):
            yield place, self._device.tensor(x)
