"""Whole data sets through an encoder: block by block, without the items that cannot be read."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.data.readers.images import ImageSource
from tnesi.data.readers.sparse import CsrSource
from tnesi.data.source import ArraySource, Data, DataError, Source
from tnesi.encoders.choice import Encoder, check_kind
from tnesi.encoders.image_files import Problem
from tnesi.encoders.images import SAMPLE, ImageEncoder
from tnesi.encoders.table import TableEncoder
from tnesi.encoders.text import TextEncoder
from tnesi.execution.spool import IN_MEMORY
from tnesi.types import Array

Tell = Callable[[str, int, int | None], None]
_BLOCK = 2000
"""Items that are encoded at a time."""
_LEARNED_BLOCK = 50_000
"""Vectors from which encoders learn at a time."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Data whose rows are encoded.

    Attributes
    ----------
    data : Data
    problems : list of Problem
        Files that were left out.
    """

    data: Data
    problems: list[Problem]


def fit_encoder(encoder: Encoder, data: Data, tell: Tell | None = None) -> list[str]:
    """Let an encoder learn from all items, in constant memory; return what it decided or noticed."""
    check_kind(encoder, data)
    messages: list[str] = []
    with warnings.catch_warnings(), _explained(data):
        warnings.simplefilter("ignore", UserWarning)  # they are among the messages
        if isinstance(encoder, ImageEncoder):
            messages = _fit_images(encoder, data.rows)
        elif isinstance(encoder, TableEncoder):  # once from a sample of all rows, not again after each block
            encoder.fit_blocks(_told(data.rows, tell))
        elif isinstance(encoder, TextEncoder) and encoder.model is None:  # the same: it counts words one by one
            encoder.fit(chain.from_iterable(_told(data.rows, tell)))
        else:
            # directions of vectors are found again after each block, which takes a while
            for items in _told(data.rows, tell, _BLOCK if isinstance(encoder, TextEncoder) else _LEARNED_BLOCK):
                encoder.partial_fit(items)
    return messages + list(getattr(encoder, "messages_", []))


def _fit_images(encoder: ImageEncoder, rows: Source) -> list[str]:
    if isinstance(rows, ImageSource):
        encoder.fit(rows.paths)
        several = rows.with_several_pictures()
        return [] if several is None else [f"Files with several pictures ({several.name}): the first of each counts."]
    wanted = np.unique(np.linspace(0, rows.n_rows - 1, min(rows.n_rows, SAMPLE)).astype(np.int64))  # as the encoder has
    sample, start = [], 0
    for done, pictures in _counted(rows, _BLOCK):
        sample.append(np.asarray(pictures)[wanted[(wanted >= start) & (wanted < done)] - start])
        start = done
    encoder.fit(np.concatenate(sample))
    return []


@contextmanager
def _explained(data: Data) -> Iterator[None]:
    """Name the data in what an encoder refuses."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise DataError(f"{data.name}: {error}") from error


def encode(encoder: Encoder, data: Data, tell: Tell | None = None, *, in_memory: int = IN_MEMORY) -> Encoded:
    """Return data with encoded rows, without files that cannot be read.

    More than `in_memory` bytes of rows are kept in a temporary folder, which goes away with them.
    """
    check_kind(encoder, data)
    problems: list[Problem] = []
    kept: list[Array] = []
    store = _Rows(in_memory)
    for done, items in _counted(data.rows, _BLOCK):
        n_items = _length(items)
        with _explained(data):
            rows, bad = _encode_block(encoder, items)
        store.add(rows)
        first = done - n_items
        problems += [replace(problem, index=first + problem.index) for problem in bad]
        left = np.ones(n_items, bool)
        left[[problem.index for problem in bad]] = False
        kept.append(left)
        if tell:
            tell("encoding", done, data.rows.n_rows)
    mask = np.concatenate(kept)
    if not mask.any():
        raise DataError(
            "{data}: none of the {n} files can be read, the first because it {reason}",
            data=data.name,
            n=mask.size,
            reason=problems[0].reason,
        )
    original = data.rows if mask.all() else _without(data.rows, mask)
    labels = data.labels if data.labels is None or mask.all() else data.labels[mask]
    names = None if isinstance(encoder, ImageEncoder) else [str(name) for name in encoder.get_feature_names_out()]
    rows = store.source(names, getattr(original, "paths", []))
    return Encoded(replace(data, rows=rows, labels=labels, original=original, test=None), problems)


def _encode_block(encoder: Encoder, items: Any) -> tuple[Any, list[Problem]]:
    if isinstance(encoder, ImageEncoder) and isinstance(items, list):
        return encoder.encode_files(items)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return encoder.transform(items), []


def _counted(rows: Source, size: int) -> Iterator[tuple[int, Any]]:
    """Yield the number of items so far, and blocks of them."""
    done = 0
    for items in rows.items(size):
        done += _length(items)
        yield done, items


def _told(rows: Source, tell: Tell | None, size: int = _BLOCK) -> Iterator[Any]:
    """Yield blocks of items, and report the progress after each."""
    for done, items in _counted(rows, size):
        yield items
        if tell:
            tell("looking at the data", done, rows.n_rows)


def _length(items: Any) -> int:
    if isinstance(items, dict):
        return len(next(iter(items.values())))
    return int(items.num_rows) if hasattr(items, "num_rows") else len(items)


def _without(rows: Source, mask: Array) -> Source:
    assert isinstance(rows, ImageSource)
    return ImageSource([path for path, left in zip(rows.paths, mask, strict=True) if left])


class TemporaryFolder:
    """A folder that is removed when nothing refers to this object any more, and at the end of the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tnesi-encoded-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class _Rows:
    """Encoded rows as they come: in memory, or in files in a temporary folder if they are many."""

    def __init__(self, in_memory: int) -> None:
        self._in_memory, self._bytes, self._shape = in_memory, 0, (0, 0)
        self._parts: list[Any] = []
        self._folder: TemporaryFolder | None = None
        self._lengths: list[Array] = []  # numbers of entries of sparse rows on disk

    def add(self, rows: Any) -> None:
        """Keep rows after those of earlier calls."""
        self._shape = self._shape[0] + rows.shape[0], rows.shape[1]
        self._bytes += sum(array.nbytes for array in _arrays(rows))
        self._parts.append(rows)
        if self._bytes <= self._in_memory:
            return
        if self._folder is None:
            self._folder = TemporaryFolder()
        for part in self._parts:
            if isinstance(part, np.ndarray):
                self._append("rows", part.astype(np.float32, copy=False))
            else:
                self._append("values", part.data.astype(np.float32, copy=False))
                self._append("columns", part.indices.astype(np.int32, copy=False))
                self._lengths.append(np.diff(part.indptr))
        self._parts = []

    def source(self, names: list[str] | None, paths: list[Path]) -> Source:
        if self._folder is None:
            if sparse.issparse(self._parts[0]):
                joined = sparse.csr_array(sparse.vstack(self._parts, format="csr"))
                return EncodedSparse(joined, names, paths, None)
            return EncodedDense(np.vstack(self._parts), names, paths, None)
        if not self._lengths:
            return EncodedDense(self._mapped("rows", np.float32).reshape(self._shape), names, paths, self._folder)
        starts = np.concatenate([[0], np.cumsum(np.concatenate(self._lengths))])
        if starts[-1] < 2**31:  # as SciPy would have it
            starts = starts.astype(np.int32)
        joined = sparse.csr_array(
            (self._mapped("values", np.float32), self._mapped("columns", np.int32), starts), shape=self._shape
        )
        return EncodedSparse(joined, names, paths, self._folder)

    def _append(self, name: str, values: Array) -> None:
        assert self._folder is not None
        with (self._folder.path / name).open("ab") as file:
            file.write(np.ascontiguousarray(values).data)

    def _mapped(self, name: str, dtype: Any) -> Array:
        assert self._folder is not None
        return np.memmap(self._folder.path / name, dtype, "r")


def _arrays(rows: Any) -> list[Array]:
    return [rows] if isinstance(rows, np.ndarray) else [rows.data, rows.indices]


class EncodedDense(ArraySource):
    """Encoded rows with the files that they come from."""

    def __init__(self, rows: Array, names: list[str] | None, paths: list[Path], folder: TemporaryFolder | None) -> None:
        super().__init__(rows, feature_names=names)
        self.paths = paths
        self._folder = folder  # removed when nobody needs the rows any more


class EncodedSparse(CsrSource):
    """Encoded sparse rows with the files that they come from."""

    def __init__(
        self, rows: sparse.csr_array, names: list[str] | None, paths: list[Path], folder: TemporaryFolder | None
    ) -> None:
        super().__init__(rows)
        self.feature_names, self.paths = names, paths
        self._folder = folder
