"""What the workers of a cluster do: pure functions of parameters and a block of rows.

Nothing here knows of the cluster. A task may run anywhere, any number of times: none changes what it is given. Every
task works on one thread; the cluster runs as many at a time as it has processors.
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

from tnesi.execution.dask.shared_array import SharedArray, opened, reading, room
from tnesi.execution.part import Part, Search, Summary
from tnesi.execution.store import ArrayStore, FileStore, Store
from tnesi.execution.survey import Survey
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Statistics, Units
from tnesi.types import Array

_LARGE = 2**22
"""Bytes from which on NumPy asks for large pages."""
_NONE = np.iinfo(np.uint16).max


class Parcel:
    """What travels between processes: it knows its size, and its arrays arrive as the kernels want them.

    Attributes
    ----------
    unaligned : tuple of str
        Arrays that no kernel sees before they are copied anyway.
    """

    unaligned: ClassVar[tuple[str, ...]] = ()

    def __sizeof__(self) -> int:
        return 256 + _n_bytes(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value if name in self.unaligned else _aligned(value))


def _n_bytes(value: Any) -> int:
    """What would be freed by writing it to disk: nothing of a shared array, which is lost then."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if is_dataclass(value):
        value = vars(value)
    return sum(map(_n_bytes, value.values())) if isinstance(value, dict) else 0


def _aligned(value: Any) -> Any:
    """Arrays arrive anywhere within a message, in small pages; rows that are read in any order need large ones."""
    if isinstance(value, np.ndarray):
        return value.copy() if value.nbytes >= _LARGE else np.require(value, requirements=["A"])
    if is_dataclass(value):
        for name, inner in vars(value).items():
            object.__setattr__(value, name, _aligned(inner))
    return value


@dataclass(frozen=True, eq=False)
class Block(Parcel):
    """Consecutive rows, from the beginning of a grain to the end of another one; see :class:`Part`."""

    store: Store
    sums: Array
    weight: Array | None
    grain: int

    def part(self) -> Part:
        return Part(self.store, self.sums, self.weight, 1, grain=self.grain)


@dataclass(frozen=True)
class Parameters(Parcel):
    """What a pass over the rows needs of the fields: how to search, and log W; W itself stays at home."""

    log_w: Array | SharedArray
    log_w_sum: Array
    row_sum: float
    search: Search

    def shared(self, spare: Parameters | None) -> Parameters:
        """Return the same for processes of this machine, in the place of others that nobody needs any more."""
        own = opened(self.log_w)
        before = spare.log_w if spare and isinstance(spare.log_w, SharedArray) else None
        log_w = room(own.shape, own.dtype, share=True, spare=before)
        opened(log_w)[...] = own
        return replace(self, log_w=log_w)

    @contextmanager
    def fields(self) -> Iterator[Fields]:
        """Yield the fields without their weights, for as long as they are looked at."""
        with reading(self.log_w) as [log_w]:
            yield Fields(np.empty((len(log_w), 0), np.float32), log_w, self.log_w_sum, np.empty(0, np.float32))


@dataclass(frozen=True)
class Found(Parcel):
    """The activities of a block: of these `ids` alone are needed for the next pass.

    Attributes
    ----------
    ids : (N, C') array of int32, or of uint16 where that is enough
    constant : (N,) array
        The rows' sum_d log y_d!.
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
class Told(Parcel):
    """What the client hears of some blocks after each pass, one after the other; they can be restored from it."""

    unaligned = ("ids", "constant")
    ids: Array | SharedArray
    constant: Array | None
    summaries: list[Summary]


class RowsOutOfReachError(OSError):
    """A worker cannot read the file with the rows."""


def narrow(ids: Array, n_fields: int) -> Array:
    """Return the fields of points in two bytes each, where that is enough."""
    return ids.astype(np.uint16) if n_fields <= _NONE else ids


def wide(ids: Array) -> Array:
    """Return them as the kernels want them."""
    if ids.dtype == np.int32:
        return ids
    out = ids.astype(np.int32)
    out[ids == _NONE] = -1
    return out


def load(block: Block, *, keep: bool) -> Block:
    """Look for the file with the rows, and read them if they are to be kept in memory."""
    store = block.store
    assert isinstance(store, FileStore)
    if not store.path.exists():
        raise RowsOutOfReachError(
            f"{store.path} is not there on {gethostname()}: the workers read the rows themselves, so put the file "
            "where all machines see it under the same name"
        )
    return replace(block, store=ArrayStore(store.read(slice(None)))) if keep else block


def survey(block: Block, seed: int) -> list[Survey]:
    """Look at the rows once."""
    with single_threaded_blas():
        return list(block.part().surveys(seed))


def take(block: Block, index: Array) -> Any:
    """Return some rows."""
    return block.store.take(index)


def find(parameters: Parameters, block: Block) -> Found:
    """Find the fields of rows of which nothing is known."""
    part, search = block.part(), parameters.search
    part.normalize(parameters.row_sum)
    with single_threaded_blas(), parameters.fields() as fields:
        part.find(fields, search, None, search.truncation)
    return _found(part, parameters, part.learn(None).energy, len(part.sums))


def look(parameters: Parameters, block: Block, before: Found) -> Found:
    """Improve what was found before."""
    part = block.part()
    part.normalize(parameters.row_sum)
    part.constant = before.constant
    part.activities = Activities.empty(*before.ids.shape)
    part.activities.ids[:] = wide(before.ids)
    with single_threaded_blas(), parameters.fields() as fields:
        summary = part.improve(fields, parameters.search, None)
    return _found(part, parameters, summary.energy, summary.changed)


def recall(parameters: Parameters, block: Block, before: Found) -> Found:
    """Return what a search that looks at nothing else says of fields that an earlier run has found."""
    part = block.part()
    part.normalize(parameters.row_sum)
    part.find_constants()
    return look(parameters, block, replace(before, constant=part.constant))


def _found(part: Part, parameters: Parameters, energy: Array, changed: int) -> Found:
    own = part.activities
    return Found(narrow(own.ids, len(parameters.log_w_sum)), part.constant, own.s, own.log_sum, energy, changed)


_used: WeakKeyDictionary[Block, dict[str, SharedArray]] = WeakKeyDictionary()
"""What tasks have shared of blocks that this process has, by its name: the next pass uses the memory again."""


@contextmanager
def _memory(
    block: Block, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike, share: bool
) -> Iterator[Array | SharedArray]:
    """Yield an array for what is told of a block and those after it."""
    used = _used.setdefault(block, {})
    array = room(shape, dtype, share=share, spare=used.pop(name, None))  # nobody else takes it at the same time
    yield array
    if isinstance(array, SharedArray):
        used[name] = array


def tell(block: Block, found: Sequence[Found], *, constant: bool, share: bool) -> Told:
    """Return what the client has to know of a pass; the block is the first of those in which it was found."""
    ids, width = [one.ids for one in found], found[0].ids.shape[1]
    with _memory(block, "ids", (sum(map(len, ids)), width), ids[0].dtype, share) as together:
        np.concatenate(ids, out=opened(together))
    summaries = [Summary(one.energy, one.changed) for one in found if one.energy is not None]
    return Told(together, np.concatenate([one.constant for one in found]) if constant else None, summaries)


@dataclass(frozen=True)
class Taught(Parcel):
    """Statistics on their way to the client; those of the next pass come in the same memory where they say so."""

    unaligned = ("sums", "mass")
    sums: Array | SharedArray
    mass: Array
    comes_again: bool = False


def learn(
    blocks: Sequence[Block], found: Sequence[Found], row_sum: float, units: Units, n_fields: int, *, share: bool
) -> Taught:
    """Return what some blocks teach the fields."""
    for block in blocks[1:]:
        _used.get(block, {}).pop("sums", None)  # it may have been the first one before a worker died or joined
    with _memory(blocks[0], "sums", (n_fields, blocks[0].store.n_features), np.float64, share) as sums:
        total = Statistics(opened(sums), np.empty(n_fields), units)
        total.clear()
        for block, own in zip(blocks, found, strict=True):
            part = block.part()
            part.normalize(row_sum)
            part.activities, part.constant = own.activities(), own.constant
            part.learn(total)
    return Taught(sums, total.mass, comes_again=isinstance(sums, SharedArray))


def add(one: Taught, other: Taught, *, share: bool) -> Taught:
    """Add up, which is exact: all are multiples of the same units."""
    sums = room(one.sums.shape, np.float64, share=share)
    with reading(one.sums, other.sums) as (first, second):
        np.add(first, second, out=opened(sums))
    return Taught(sums, one.mass + other.mass)
