"""The content of items as bytes, by which data are recognized again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


def contents(items: Any) -> Iterator[bytes]:
    r"""Yield the content of files, texts, pictures or rows, or the columns of a table.

    Files that cannot be read have none.

    Examples
    --------
    >>> list(contents(["a", None])), list(contents({"x": np.zeros(2, np.uint8)}))
    ([b'a', b''], [b"('x', '|u1', (2,))", b'\x00\x00'])
    """
    if hasattr(items, "column_names"):
        for name in items.column_names:
            yield repr((name, items[name].to_pylist())).encode("utf-8", "surrogatepass")
    elif isinstance(items, dict):
        for name, values in items.items():
            yield from _of_array(values, name)
    elif isinstance(items, np.ndarray):
        yield from _of_array(items, "")
    elif hasattr(items, "columns"):  # a data frame
        yield repr({str(name): items[name].to_list() for name in items.columns}).encode("utf-8", "surrogatepass")
    else:
        for item in items:
            yield _of_file(item) if isinstance(item, Path) else (item or "").encode("utf-8", "surrogatepass")


def _of_array(values: Any, name: str) -> Iterator[bytes]:
    yield repr((name, values.dtype.str, values.shape)).encode()
    yield np.ascontiguousarray(values).tobytes()


def _of_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
