"""Vectors in a column of lists, as tables of embeddings have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tnesi.data.source import DataError, check_room
from tnesi.types import Array


def is_vector(value: object) -> bool:
    """Whether an entry of a column is a list of numbers."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "buif"
    return isinstance(value, list | tuple) and all(isinstance(number, int | float | np.number) for number in value[:3])


def stacked_vectors(values: Sequence[Any], name: str, where: object, first_row: int = 0, length: int = 0) -> Array:
    """Return a column of lists as an array with a row for each; 0 as `length` is that of the first one.

    Examples
    --------
    >>> stacked_vectors([[1, 2], [3, 4]], "embedding", "vectors.parquet")
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    length = length or (len(values[0]) if len(values) and values[0] is not None else 0)
    for row, value in enumerate(values, first_row):
        found = 0 if value is None else len(value)
        if found != length or not found:
            raise DataError(
                f"{where}: row {row} has {found} numbers in column {name!r}, and row 0 has {length}: give vectors of "
                "one length, or leave out the row"
            )
    check_room(len(values) * length * 8, f"{len(values)} vectors of {length} numbers")
    try:
        given = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: column {name!r} has lists that are not of numbers: leave it out") from error
    if not np.isfinite(given).all():
        row = first_row + int(np.argwhere(~np.isfinite(given))[0][0])
        raise DataError(f"{where}: the vector in row {row} of column {name!r} has no finite number: leave out the row")
    with np.errstate(over="ignore"):
        small = given.astype(np.float32)
    return small if np.isfinite(small).all() else given
