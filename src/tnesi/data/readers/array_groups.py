"""Files with several arrays (``.npz``, Zarr groups): find rows, labels and test part by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tnesi.data.label_values import tidy_labels
from tnesi.data.source import Data, DataError, Source
from tnesi.types import Array

_ROWS = ("x", "data", "x_train", "train_images", "images", "features", "arr_0")
_LABELS = ("y", "labels", "label", "target", "targets", "class", "y_train", "train_labels", "arr_1")
_TEST_ROWS = ("x_test", "test_images")
_TEST_LABELS = ("y_test", "test_labels")


class ArrayNames(NamedTuple):
    """Names of the arrays; None for missing ones."""

    rows: str
    labels: str | None
    test_rows: str | None
    test_labels: str | None


def find_arrays(names: Sequence[str], label_column: str | int | None, where: str | Path) -> ArrayNames:
    """Find the rows, labels and test part among the arrays of a file, ignoring case.

    Examples
    --------
    >>> find_arrays(["x_train", "y_train", "x_test", "y_test"], None, "mnist.npz")
    ArrayNames(rows='x_train', labels='y_train', test_rows='x_test', test_labels='y_test')
    """

    def first(known: tuple[str, ...]) -> str | None:
        return next((n for k in known for n in names if n.lower() == k and n != label_column), None)

    rows = first(_ROWS) or (names[0] if len(names) == 1 and names[0] != label_column else None)
    if rows is None:
        found = ", ".join(map(str, names[:10])) or "nothing"
        raise DataError(f"{where} has the arrays {found}", advice="name the rows X and the labels y")
    if label_column is not None and label_column not in names:
        raise DataError(
            "{where} has no array {wanted!r}",
            advice="choose one of {names}",
            parameter="label_column",
            where=where,
            wanted=label_column,
            names=", ".join(names[:10]),
        )
    labels = str(label_column) if label_column is not None else first(_LABELS)
    test_rows = first(_TEST_ROWS)
    return ArrayNames(rows, labels, test_rows, first(_TEST_LABELS) if test_rows else None)


def read_group(
    names: Sequence[str],
    label_column: str | int | None,
    path: Path,
    open_rows: Callable[[str], Source],
    read_labels: Callable[[str, int], Array],
) -> Data:
    """Return data from named arrays, given functions that open rows and read labels by name."""
    found = find_arrays(names, label_column, path)

    def part(rows_name: str, labels_name: str | None, name: str) -> Data:
        rows, labels = open_rows(rows_name), None
        if labels_name:
            labels = tidy_labels(read_labels(labels_name, rows.n_rows), rows.n_rows, f"{labels_name} in {path}")
        return Data(rows, labels, name=name)

    data = part(found.rows, found.labels, path.name)
    if found.test_rows is None:
        return data
    test = part(found.test_rows, found.test_labels, f"{path.name} (test)")
    if test.rows.n_features != data.rows.n_features:
        raise DataError(
            f"{path}: {found.rows} has {data.rows.n_features} features, but {found.test_rows} has "
            f"{test.rows.n_features}",
            advice="use the same features in both",
        )
    return replace(data, test=test)
