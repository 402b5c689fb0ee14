"""Documents as people have them (texts, bytes, files, a column of a table) as texts."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FALLBACK = "cp1252"


@dataclass
class DecodingReport:
    """Which documents were not in the encoding that was expected."""

    encoding: str
    n_documents: int = 0
    undecodable: list[int] = field(default_factory=list)

    def message(self) -> str:
        """Return a sentence for the user, or "" if all documents could be decoded."""
        if not self.undecodable:
            return ""
        n, first = len(self.undecodable), self.undecodable[0]
        return (
            f"{n} of {self.n_documents} documents {'is' if n == 1 else 'are'} not valid {self.encoding} "
            f"(first: document {first}) and {'was' if n == 1 else 'were'} read as Windows-1252: "
            "set `encoding` if they use another one."
        )


def read_documents(X: object, report: DecodingReport) -> Iterator[str]:
    """Yield the text of each document. Missing ones are empty texts.

    Parameters
    ----------
    X : iterable of str, bytes or os.PathLike, or a column
        A str is the text itself; a path is a file to read. A column is a pandas, polars or Arrow one, a data frame with
        one column, or a NumPy array of shape (n,) or (n, 1).

    Examples
    --------
    >>> list(read_documents(["plain", "Grüße".encode(), None], DecodingReport("utf-8")))
    ['plain', 'Grüße', '']
    """
    for row, item in enumerate(_items(X)):
        report.n_documents = row + 1
        if isinstance(item, str):
            yield item
        elif _is_missing(item):
            yield ""
        elif isinstance(item, (bytes, bytearray, os.PathLike)):
            raw = bytes(item) if isinstance(item, (bytes, bytearray)) else Path(item).read_bytes()
            text, expected = _decode(raw, report.encoding)
            if not expected:
                report.undecodable.append(row)
            yield text
        else:
            raise TypeError(
                f"Document {row} is a {type(item).__name__}: pass texts (str), bytes or paths of files. "
                "Numbers are encoded by TableEncoder or VectorEncoder."
            )


def _items(X: object) -> Any:
    if isinstance(X, (str, bytes, os.PathLike)):
        raise ValueError("Expected several documents, got one: pass a list, [document].")
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow; pandas and polars
    if columns is not None:
        if len(columns) != 1:
            names = ", ".join(repr(str(name)) for name in list(columns)[:10])
            raise ValueError(f"Expected one column of documents, got {len(columns)} ({names}): select one of them.")
        X = X[columns[0]]  # type: ignore[index]
    if isinstance(X, np.ndarray):
        if X.ndim == 2 and X.shape[1] == 1:
            X = X[:, 0]
        if X.ndim != 1:
            raise ValueError(f"Expected a column of documents, got an array of shape {X.shape}.")
        return X.tolist()
    for convert in ("to_pylist", "to_list"):
        if hasattr(X, convert):
            return getattr(X, convert)()
    if not hasattr(X, "__iter__"):
        raise TypeError(f"Expected a list or a column of documents, got {type(X).__name__}.")
    if isinstance(X, Sequence) and X and isinstance(X[0], (list, tuple)) and all(len(row) == 1 for row in X):
        return [row[0] for row in X]
    return X


def _is_missing(item: Any) -> bool:
    return item is None or (isinstance(item, float) and item != item) or type(item).__name__ in ("NAType", "NaTType")


def _decode(raw: bytes, encoding: str) -> tuple[str, bool]:
    """Return the text, and whether it is in the expected encoding or marked with its own."""
    for mark, marked in _MARKS:
        if raw.startswith(mark):
            return raw.decode(marked, "replace"), True
    try:
        return raw.decode(encoding), True
    except UnicodeDecodeError:
        return raw.decode(_FALLBACK, "replace"), False
