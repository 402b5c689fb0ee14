"""Tasks of the workers of a cluster: pure functions of parameters and a block of rows.

Tasks do not depend on the cluster or change their arguments, so they may run anywhere and repeatedly. Each uses one
thread; the cluster runs as many at a time as it has processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from socket import gethostname
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from tnesi.errors import TnesiError
from tnesi.execution.dask.shared_array import SharedArray, allocate, opened, reading
from tnesi.execution.part import Part, Summary
from tnesi.execution.store import ArrayStore, FileStore
from tnesi.execution.survey import Survey
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Statistics, Units
from tnesi.model.rows import RowStore
from tnesi.search import Search
from tnesi.types import Array

_LARGE = 2**22
"""Size in bytes from which NumPy uses large pages."""
_NONE = np.iinfo(np.uint16).max


class Message:
    """A value sent between processes, with a known size, whose arrays are aligned on arrival.

    Attributes
    ----------
    unaligned : tuple of str
        Arrays that need no alignment, since they are copied before use.
    """

    unaligned: ClassVar[tuple[str, ...]] = ()

    def __sizeof__(self) -> int:
        return 256 + _n_bytes(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value if name in self.unaligned else _aligned(value))


def _n_bytes(value: object) -> int:
    """Return the size of all arrays, except for shared ones, which cannot be spilled to disk."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, csr_array):
        return _n_bytes({"data": value.data, "indices": value.indices, "indptr": value.indptr})
    if is_dataclass(value):
        value = vars(value)
    return sum(map(_n_bytes, value.values())) if isinstance(value, dict) else 0


def _aligned(value: object) -> Any:
    """Align arrays, and copy large ones to large pages, which random access needs."""
    if isinstance(value, np.ndarray):
        return value.copy() if value.nbytes >= _LARGE else np.require(value, requirements=["A"])
    if isinstance(value, csr_array):
        parts = tuple(_aligned(array) for array in (value.data, value.indices, value.indptr))
        return csr_array(parts, shape=value.shape)
    if is_dataclass(value):
        for name, inner in vars(value).items():
            object.__setattr__(value, name, _aligned(inner))
    return value


@dataclass(frozen=True, eq=False)
class Block(Message):
    """Consecutive rows of whole grains; see :class:`Part`."""

    store: RowStore
    sums: Array
    weight: Array | None
    grain: int

    def part(self) -> Part:
        return Part(self.store, self.sums, self.weight, 1, grain=self.grain)


@dataclass(frozen=True)
class Parameters(Message):
    """The parameters of a pass: log W and the search. W is not needed."""

    log_w: Array | SharedArray
    log_w_sum: Array
    row_sum: float
    search: Search

    def shared(self, spare: Parameters | None) -> Parameters:
        """Return the same parameters in shared memory, reusing that of `spare`."""
        own = opened(self.log_w)
        before = spare.log_w if spare and isinstance(spare.log_w, SharedArray) else None
        log_w = allocate(own.shape, own.dtype, share=True, spare=before)
        opened(log_w)[...] = own
        return replace(self, log_w=log_w)

    @contextmanager
    def fields(self) -> Iterator[Fields]:
        """Yield the fields without W, and check afterwards that their memory was not reused."""
        with reading(self.log_w) as [log_w]:
            yield Fields(np.empty((len(log_w), 0), np.float32), log_w, self.log_w_sum, np.empty(0, np.float32))


@dataclass(frozen=True)
class Found(Message):
    """The activities of a block, of which the next pass only needs `ids`.

    Attributes
    ----------
    ids : (N, C') array of int32, or of uint16 if there are few fields
    constant : (N,) array
        sum_d log y_d! of each row.
    s, log_sum : arrays or None
    energy : (n_grains,) array
    changed : int
    """

    ids: Array
    constant: Array
    s: Array | None = None
    log_sum: Array | None = None
    energy: Array | None = None
    changed: int = 0

    def activities(self) -> Activities:
        ids = wide(self.ids)
        s = np.zeros(ids.shape, np.float32) if self.s is None else self.s
        return Activities(ids, s, np.zeros(len(ids), np.float32) if self.log_sum is None else self.log_sum)


@dataclass(frozen=True)
class BlockReport(Message):
    """The report of consecutive blocks to the client after each pass, from which they can be restored."""

    unaligned = ("ids", "constant")
    ids: Array | SharedArray
    constant: Array | None
    summaries: list[Summary]


class RowsOutOfReachError(TnesiError, OSError):
    """A file with rows that a worker cannot read."""


def narrow(ids: Array, n_fields: int) -> Array:
    """Return field ids as two bytes each if there are few fields."""
    return ids.astype(np.uint16) if n_fields <= _NONE else ids


def wide(ids: Array) -> Array:
    """Return field ids as int32, with -1 for an empty place."""
    if ids.dtype == np.int32:
        return ids
    out = ids.astype(np.int32)
    out[ids == _NONE] = -1
    return out


def load(block: Block, *, keep: bool) -> Block:
    """Check that the file with the rows exists, and read them if they are kept in memory."""
    store = block.store
    assert isinstance(store, FileStore)
    if not store.path.exists():
        raise RowsOutOfReachError(
            "{path} does not exist on {host}",
            path=store.path,
            host=gethostname(),
            advice="workers read the rows themselves, so make the file available under the same path on all machines",
        )
    return replace(block, store=ArrayStore(store.read(slice(None)))) if keep else block


def survey(block: Block, seed: int) -> list[Survey]:
    """Survey the rows of a block."""
    with single_threaded_blas():
        return list(block.part().surveys(seed))


def take(block: Block, index: Array) -> Any:
    """Return some rows of a block."""
    return block.store.take(index)


def find(parameters: Parameters, block: Block) -> Found:
    """Find the fields of the rows for the first time."""
    part = block.part()
    part.normalize(parameters.row_sum)
    with single_threaded_blas(), parameters.fields() as fields:
        part.find(fields, parameters.search, None)
    return _found(part, parameters, part.learn(None).energy, len(part.sums))


def improve(parameters: Parameters, block: Block, before: Found) -> Found:
    """Improve the fields of the rows."""
    part = block.part()
    part.normalize(parameters.row_sum)
    part.constant = before.constant
    part.activities = Activities.empty(*before.ids.shape)
    part.activities.ids[:] = wide(before.ids)
    with single_threaded_blas(), parameters.fields() as fields:
        summary = part.improve(fields, parameters.search, None)
    return _found(part, parameters, summary.energy, summary.changed)


def restore(parameters: Parameters, block: Block, before: Found) -> Found:
    """Return the activities of fields that an earlier run has found, with a frozen search."""
    part = block.part()
    part.normalize(parameters.row_sum)
    part.find_constants()
    return improve(parameters, block, replace(before, constant=part.constant))


def _found(part: Part, parameters: Parameters, energy: Array, changed: int) -> Found:
    own = part.activities
    return Found(narrow(own.ids, len(parameters.log_w_sum)), part.constant, own.s, own.log_sum, energy, changed)


_used: WeakKeyDictionary[Block, dict[str, SharedArray]] = WeakKeyDictionary()
"""Shared arrays of blocks in this process, by name, whose memory the next pass reuses."""


@contextmanager
def _memory(
    block: Block, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike, share: bool
) -> Iterator[Array | SharedArray]:
    """Yield an array for the results of a block and its successors."""
    used = _used.setdefault(block, {})
    array = allocate(shape, dtype, share=share, spare=used.pop(name, None))  # no other task uses it meanwhile
    yield array
    if isinstance(array, SharedArray):
        used[name] = array


def report(block: Block, found: Sequence[Found], *, constant: bool, share: bool) -> BlockReport:
    """Return the report of a pass over some blocks, of which `block` is the first."""
    ids, width = [one.ids for one in found], found[0].ids.shape[1]
    with _memory(block, "ids", (sum(map(len, ids)), width), ids[0].dtype, share) as together:
        np.concatenate(ids, out=opened(together))
    summaries = [Summary(one.energy, one.changed) for one in found if one.energy is not None]
    return BlockReport(together, np.concatenate([one.constant for one in found]) if constant else None, summaries)


@dataclass(frozen=True)
class PartialStatistics(Message):
    """Statistics of some rows; `is_reused` says whether the next pass reuses their memory."""

    unaligned = ("sums", "mass")
    sums: Array | SharedArray
    mass: Array
    is_reused: bool = False


def learn(
    blocks: Sequence[Block], found: Sequence[Found], row_sum: float, units: Units, n_fields: int, *, share: bool
) -> PartialStatistics:
    """Return the statistics of some blocks."""
    for block in blocks[1:]:
        _used.get(block, {}).pop("sums", None)  # it may have been the first block before a worker died or joined
    with _memory(blocks[0], "sums", (n_fields, blocks[0].store.n_features), np.float64, share) as sums:
        total = Statistics(opened(sums), np.empty(n_fields), units)
        total.clear()
        for block, own in zip(blocks, found, strict=True):
            part = block.part()
            part.normalize(row_sum)
            part.activities, part.constant = own.activities(), own.constant
            part.learn(total)
    return PartialStatistics(sums, total.mass, is_reused=isinstance(sums, SharedArray))


def add(one: PartialStatistics, other: PartialStatistics, *, share: bool) -> PartialStatistics:
    """Add statistics, which is exact, since all are multiples of the same units."""
    sums = allocate(one.sums.shape, np.float64, share=share)
    with reading(one.sums, other.sums) as (first, second):
        np.add(first, second, out=opened(sums))
    return PartialStatistics(sums, one.mass + other.mass)
