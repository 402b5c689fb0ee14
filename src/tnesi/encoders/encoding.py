"""Whole data sets through an encoder: block by block, without the items that cannot be read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from tnesi.data.readers.images import ImageSource
from tnesi.data.readers.sparse import CsrSource
from tnesi.data.source import ArraySource, Data, DataError, Source
from tnesi.data.spooled_rows import SpooledRows, TemporaryFolder
from tnesi.encoders.choice import Encoder, suited
from tnesi.encoders.image_files import Problem
from tnesi.encoders.images import SAMPLE, ImageEncoder
from tnesi.encoders.kept_encoding import KeptEncoding
from tnesi.encoders.table import TableEncoder
from tnesi.encoders.text import TextEncoder
from tnesi.errors import TnesiError
from tnesi.types import Array

if TYPE_CHECKING:
    from tnesi.execution.dask.cluster import Cluster

Tell = Callable[[str, int, int | None], None]
IN_MEMORY = 2**26
"""Bytes of encoded rows that are kept in memory: joining them takes as much again."""
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
    data = suited(encoder, data)
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
    except TnesiError:
        raise
    except (ValueError, TypeError) as error:
        raise DataError(f"{data.name}: {error}") from error


def encode(
    encoder: Encoder,
    data: Data,
    tell: Tell | None = None,
    *,
    in_memory: int = IN_MEMORY,
    kept: KeptEncoding | None = None,
    cluster: Cluster | None = None,
) -> Encoded:
    """Return data with encoded rows, without files that cannot be read.

    More than `in_memory` bytes of rows are kept in a temporary folder, which goes away with them.

    Parameters
    ----------
    encoder : Encoder
        A fitted one.
    data : Data
    tell : callable, optional
        Called with what is done, the number of items that are done, and that of all.
    in_memory : int
    kept : KeptEncoding, optional
        Where to keep the rows instead; those of an earlier run are not encoded again.
    cluster : Cluster, optional
        Encode on its workers. They read files themselves, so all machines need them under the same path.
    """
    data = suited(encoder, data)
    store = SpooledRows(in_memory) if kept is None else kept.rows
    problems: list[Problem] = [] if kept is None else kept.problems
    with _explained(data):
        for done, items, (rows, bad) in _encoded(encoder, _missing(data.rows, kept, tell), cluster):
            store.add(rows)
            first = done - _length(items)
            problems += [replace(problem, index=first + problem.index) for problem in bad]
            if kept is not None:
                kept.save(done)
            if tell:
                tell("encoding", done, data.rows.n_rows)
    mask = np.ones(data.rows.n_rows, bool)
    mask[[problem.index for problem in problems]] = False
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
    rows = _source(store, names, getattr(original, "paths", []))
    return Encoded(replace(data, rows=rows, labels=labels, original=original, test=None), problems)


def _missing(rows: Source, kept: KeptEncoding | None, tell: Tell | None) -> Iterator[tuple[int, Any]]:
    """Yield the number of items so far, and blocks of them, without those whose rows are there already."""
    for done, items in _counted(rows, _BLOCK):
        if kept is None or not kept.has(items, done):
            yield done, items
        elif tell:
            tell("comparing with the checkpoint", done, rows.n_rows)


def _encoded(
    encoder: Encoder, blocks: Iterator[tuple[int, Any]], cluster: Cluster | None
) -> Iterator[tuple[int, Any, tuple[Any, list[Problem]]]]:
    """Yield the number of items so far, blocks of them, and their rows with the items that cannot be read."""
    if cluster is None:
        for done, items in blocks:
            yield done, items, _encode_block(encoder, items)
        return
    from tnesi.execution.dask.mapping import mapped

    sent = type(encoder).from_state(encoder.get_state())  # without what it only needs to learn more
    if isinstance(sent, ImageEncoder):
        sent.set_params(n_jobs=1)
    given = (((done, items), _absolute(items)) for done, items in blocks)
    for (done, items), (rows, bad) in mapped(cluster, _encode_block, sent, given):
        yield done, items, (rows, [replace(problem, name=fspath(items[problem.index])) for problem in bad])


def _absolute(items: Any) -> Any:
    """Return items as workers find them: files by their whole path."""
    return [item.absolute() if isinstance(item, Path) else item for item in items] if isinstance(items, list) else items


def _source(store: SpooledRows, names: list[str] | None, paths: list[Path]) -> Source:
    matrix = store.matrix()
    if sparse.issparse(matrix):
        return EncodedSparse(matrix, names, paths, store.keep)
    return EncodedDense(matrix, names, paths, store.keep)


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
        super().__init__(rows, names, np.dtype(np.float32))
        self.paths = paths
        self._folder = folder
