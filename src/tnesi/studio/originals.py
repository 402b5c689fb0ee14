"""The original rows, before encoding: how they are shown, and their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from scipy import sparse

from tnesi.data.contents import contents
from tnesi.data.readers.documents import DocumentSource
from tnesi.data.readers.images import ImageSource
from tnesi.data.readers.mixed import MixedSource
from tnesi.data.source import Data
from tnesi.encoders.choice import Encoder
from tnesi.encoders.table import TableEncoder
from tnesi.model.rows import Matrix
from tnesi.studio.pictures import EncodedImages, ImageFiles, NumberRows, is_drawn
from tnesi.studio.shown import Features, Shown
from tnesi.studio.texts import Documents, TableRows, WordRows

_WORDS_FROM = 100
"""Rows with names for so many features are shown as words: more bars cannot be distinguished."""


def shown_rows(data: Data, encoder: Encoder | None) -> Shown:
    """Return the way to show data."""
    original, names = data.original, data.rows.feature_names
    features = None if names is None or getattr(encoder, "model", None) is not None else Features(names)
    match original:
        case None:
            return _numbers(data.rows.image_shape, data.X, names)
        case ImageSource():
            return ImageFiles(original.paths)
        case DocumentSource():
            return Documents(original.documents, features)
        case MixedSource() if original.kind == "documents":
            return Documents(original.table.column(0).to_pylist(), features)
    if isinstance(encoder, TableEncoder):
        return TableRows(original, features)
    if original.kind == "images":
        return EncodedImages(original.load(), original.image_shape, None)
    return _numbers(data.rows.image_shape, data.X, None if original.feature_names is None else names)


def _numbers(image_shape: tuple[int, int] | None, values: Matrix, names: Sequence[str] | None) -> Shown:
    """Return how numbers are shown: as images, bars or, where they have many names, words."""
    many = values.shape[1] >= _WORDS_FROM or sparse.issparse(values)
    if names is not None and many and not is_drawn(image_shape):
        return WordRows(values, Features(names))
    return NumberRows(values, image_shape, names)


def fingerprint(data: Data) -> str:
    """Return a hash of the original rows, which does not depend on the encoder.

    Files count by their content: a folder may be moved.
    """
    original = data.shown
    if not isinstance(original, ImageSource | DocumentSource | MixedSource):
        return Data(original).fingerprint
    digest = hashlib.blake2b(digest_size=16)
    for items in original.items():
        for content in contents(items):
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
    return digest.hexdigest()
