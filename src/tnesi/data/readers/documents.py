"""Documents: text files in folders that name their class, or a text column of a table.

`tnesi.encoders.TextEncoder` converts them to numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data.label_values import parse_labels
from tnesi.data.readers.images import files_by_class, parts_of
from tnesi.data.source import BLOCK_ROWS, Data, DataError, Source
from tnesi.types import Array

_HEAD = 2**12
_SAMPLE = 20
"""Number of files to inspect in a folder."""


class DocumentSource(Source):
    """Texts in memory or text files.

    Attributes
    ----------
    documents : sequence of str or Path
    paths : list of Path
        Text files; empty for texts in memory.
    """

    kind = "documents"
    dtype = np.dtype(np.float32)
    n_features = 0

    def __init__(self, documents: Sequence[str] | Sequence[Path]) -> None:
        self.documents = documents
        self.n_rows = len(documents)
        self.paths = [document for document in documents if isinstance(document, Path)]

    def items(self, size: int = BLOCK_ROWS) -> Iterator[Sequence[Any]]:
        for start in range(0, self.n_rows, size):
            yield self.documents[start : start + size]

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        raise DataError(
            "documents are not numbers", advice="encode them first, for example with tnesi.encoders.TextEncoder"
        )


def holds_documents(folder: Path) -> bool:
    """Whether most of a sample of the files in a folder are text."""
    parts = parts_of(folder)
    paths, _ = files_by_class(folder if parts is None else parts[0])
    sample = paths[:: max(1, len(paths) // _SAMPLE)][:_SAMPLE]
    return bool(sample) and 2 * sum(map(_is_text, sample)) > len(sample)


def read_documents(folder: Path) -> Data:
    """Open a folder of text files as data, with a test part if it has the folders ``train`` and ``test`` only."""
    parts = parts_of(folder)
    if parts is None:
        return _read_folder(folder)
    return replace(_read_folder(parts[0]), test=_read_folder(parts[1]), name=folder.name)


def _read_folder(folder: Path) -> Data:
    paths, names = files_by_class(folder)
    return Data(DocumentSource(paths), parse_labels(names, folder) if any(names) else None, name=folder.name)


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16
        return True
    return b"\0" not in head and not head.startswith((b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"P5", b"P6"))
