"""Whole data sets through an encoder: block by block, without the items that cannot be read."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tnesi.data.readers.images import ImageSource
from tnesi.data.readers.sparse import CsrSource
from tnesi.data.source import ArraySource, Data, DataError, Source
from tnesi.encoders.choice import Encoder
from tnesi.encoders.image_files import Problem
from tnesi.encoders.images import ImageEncoder
from tnesi.encoders.table import TableEncoder
from tnesi.encoders.text import TextEncoder
from tnesi.execution.spool import IN_MEMORY
from tnesi.types import Array

Tell = Callable[[str, int, int | None], None]
_BLOCK = 2000
"""Items that are encoded at a time."""
_KINDS = {ImageEncoder: "images", TextEncoder: "documents"}


@dataclass(frozen=True, eq=False)
class Encoded:
    """Data whose rows are encoded.

    Attributes
    ----------
    data : Data
    problems : list of Problem
        Files that were left out.
    messages : list of str
        What the encoder decided or noticed.
    """

    data: Data
    problems: list[Problem]
    messages: list[str]


def fit_encoder(encoder: Encoder, data: Data, tell: Tell | None = None) -> list[str]:
    """Let an encoder learn from all items, in constant memory; return what it decided or noticed."""
    check_kind(encoder, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they are among the messages
        if isinstance(encoder, ImageEncoder):
            encoder.fit(_pictures(data.rows))
        elif isinstance(encoder, TableEncoder):  # once from a sample of all rows, not again after each block
            encoder.fit_blocks(_told(data.rows, tell))
        else:
            for items in _told(data.rows, tell):
                encoder.partial_fit(items)
    return list(getattr(encoder, "messages_", []))


def encode(encoder: Encoder, data: Data, tell: Tell | None = None) -> Encoded:
    """Return data with encoded rows, without files that cannot be read; many rows are kept in a temporary file."""
    check_kind(encoder, data)
    problems: list[Problem] = []
    kept: list[Array] = []
    store: _Rows | None = None
    for done, items in _counted(data.rows):
        n_items = len(items) if isinstance(items, list | np.ndarray) else _length(items)
        rows, bad = _encode_block(encoder, items)
        if store is None:
            store = _Rows(data.rows.n_rows, rows)
        store.add(rows)
        first = done - n_items
        problems += [replace(problem, index=first + problem.index) for problem in bad]
        left = np.ones(n_items, bool)
        left[[problem.index for problem in bad]] = False
        kept.append(left)
        if tell:
            tell("encoding", done, data.rows.n_rows)
    assert store is not None
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
    return Encoded(replace(data, rows=rows, labels=labels, original=original, test=None), problems, [])


def check_kind(encoder: Encoder, data: Data) -> None:
    """Refuse data of another kind than those of an encoder."""
    wanted, given = _KINDS.get(type(encoder)), data.rows.kind
    if isinstance(encoder, TableEncoder) and given in ("table", "numbers"):
        return
    if wanted is None and given == "numbers":
        return
    if wanted == given:
        return
    wanted = wanted or ("a table" if isinstance(encoder, TableEncoder) else "vectors of numbers")
    given_text = {"numbers": "rows of numbers", "table": "a table with columns of texts"}.get(given, given)
    raise DataError(
        "{data} holds {given}, but {encoder_type} encodes {wanted}",
        advice="give data of that kind",
        data=data.name,
        given=given_text,
        encoder_type=type(encoder).__name__,
        wanted=wanted,
    )


def _encode_block(encoder: Encoder, items: Any) -> tuple[Any, list[Problem]]:
    if isinstance(encoder, ImageEncoder) and isinstance(items, list):
        return encoder.encode_files(items)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return encoder.transform(items), []


def _counted(rows: Source) -> Iterator[tuple[int, Any]]:
    """Yield the number of items so far, and blocks of them."""
    done = 0
    for items in rows.items(_BLOCK):
        done += _length(items)
        yield done, items


def _told(rows: Source, tell: Tell | None) -> Iterator[Any]:
    """Yield blocks of items, and report the progress after each."""
    for done, items in _counted(rows):
        yield items
        if tell:
            tell("looking at the data", done, rows.n_rows)


def _length(items: Any) -> int:
    if isinstance(items, dict):
        return len(next(iter(items.values())))
    return int(items.num_rows) if hasattr(items, "num_rows") else len(items)


def _pictures(rows: Source) -> Any:
    """Return pictures as an encoder samples them: paths, or an array."""
    if isinstance(rows, ImageSource):
        return rows.paths
    shape = rows.image_shape
    assert shape is not None
    X = rows.load()
    return (X.toarray() if sparse.issparse(X) else X).reshape(rows.n_rows, *shape)


def _without(rows: Source, mask: Array) -> Source:
    assert isinstance(rows, ImageSource)
    return ImageSource([path for path, left in zip(rows.paths, mask, strict=True) if left])


class _Rows:
    """Encoded rows as they come: in memory, or in a temporary file if they are many."""

    def __init__(self, n_rows: int, first: Any) -> None:
        self._n, self._sparse = 0, sparse.issparse(first)
        self._parts: list[Any] = []
        self._mapped: Array | None = None
        if not self._sparse and n_rows * first.shape[1] * 4 > IN_MEMORY:
            self._folder = tempfile.TemporaryDirectory(prefix="tnesi-encoded-")
            path = Path(self._folder.name) / "rows.npy"
            self._mapped = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, first.shape[1]))

    def add(self, rows: Any) -> None:
        if self._mapped is None:
            self._parts.append(rows)
        else:
            self._mapped[self._n : self._n + rows.shape[0]] = rows
        self._n += rows.shape[0]

    def source(self, names: list[str] | None, paths: list[Path]) -> Source:
        if self._sparse:
            joined = sparse.csr_array(sparse.vstack(self._parts, format="csr"))
            return EncodedSparse(joined, names, paths)
        rows = np.vstack(self._parts) if self._mapped is None else self._mapped[: self._n]
        return EncodedDense(rows, names, paths, None if self._mapped is None else self._folder)


class EncodedDense(ArraySource):
    """Encoded rows with the files that they come from."""

    def __init__(self, rows: Array, names: list[str] | None, paths: list[Path], folder: Any = None) -> None:
        super().__init__(rows, feature_names=names)
        self.paths = paths
        self._folder = folder  # removed when nobody needs the rows any more


class EncodedSparse(CsrSource):
    """Encoded sparse rows with the files that they come from."""

    def __init__(self, rows: sparse.csr_array, names: list[str] | None, paths: list[Path]) -> None:
        super().__init__(rows)
        self.feature_names, self.paths = names, paths
