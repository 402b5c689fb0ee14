from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tnesi.labeling.labels import encode_labels, with_marker


@pytest.mark.parametrize(
    ("y", "marker"),
    [
        ([3, -1, 7], -1),
        (np.array([3.0, -1.0, 7.0]), -1),
        (np.array([3.0, np.nan, 7.0]), np.nan),
        (["a", "", "b"], ""),
        (np.array(["a", -1, "b"]), -1),
        (np.array(["a", -1, "b"], dtype=object), -1),
        (np.array(["a", None, "b"], dtype=object), None),
        (pd.Series(["a", None, "b"]), None),
        (pd.Series(["a", "?", "b"], dtype="category"), "?"),
        ([0, 9, 1], 9),
        (["a", np.nan, "b"], np.nan),
        (["a", None, "b"], -1),
        ([1, None, 2], -1),
        ([True, None, False][::-1], -1),
        (np.array([3.0, np.nan, 7.0]), -1),
        (np.array([3.0, np.nan, 7.0]), np.float32("nan")),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), -1),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), None),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), pd.NA),
        (pl.Series(["a", None, "b"]), -1),
        (["a", "-1", "b"], -1),
        (pd.Series(["a", "-1", "b"]), -1),
        (pl.Series(["a", "-1", "b"]), -1),
        (["a", "", "b"], -1),
        (np.array(["a", " ", "b"]), -1),
        (np.array(["a", "", "b"], dtype=object), None),
        (pd.Series([1, None, 2], dtype="Int64"), -1),
        (pd.Series([1, None, 2], dtype="Int64"), None),
        (pd.Series([1, -1, 2], dtype="Int64"), -1),
        (pd.DataFrame({"y": pd.array([1, None, 2], dtype="Int64")})["y"], -1),
        (pl.Series([1, None, 2]), -1),
        (pa.array([1, None, 2]), -1),
        (pa.chunked_array([[1, None], [2]]), -1),
        (pd.Series([False, None, True], dtype="boolean"), -1),
    ],
)
def test_markers(y: object, marker: object) -> None:
    codes, classes = encode_labels(y, marker)
    assert codes.tolist() == [0, -1, 1]
    assert len(classes) == 2


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series([1, None, 2], dtype="UInt8"),
        pd.Series([1, 5, 2], dtype="Int64"),
        pl.Series([1, None, 2]),
        pa.array([1, None, 2]),
    ],
)
def test_integers_with_missing_values_stay_integers(y: object) -> None:
    classes = encode_labels(y, -1)[1]
    assert classes.dtype == np.int64
    assert set(classes.tolist()) <= {1, 2, 5}


@pytest.mark.parametrize(
    "y",
    [
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"])),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"], utc=True)),
        [date(2020, 1, 1), None, date(2021, 1, 1)],
        np.array([1, 2], dtype="timedelta64[D]"),
    ],
)
def test_dates_are_refused(y: object) -> None:
    """Such labels could be learned, but not saved."""
    with pytest.raises(ValueError, match=r"the labels are dates.*y.astype\(str\)"):
        encode_labels(y, -1)


def test_minus_one_is_a_class_where_it_is_not_the_marker() -> None:
    codes, classes = encode_labels([-1, 1, -1], None)
    assert codes.tolist() == [0, 1, 0]
    assert classes.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("classes", "unlabeled", "last"),
    [
        ([3, 5], -1, -1),
        ([3, 5], None, -1),
        ([3, 5], "?", -1),
        ([3, 5], 9, 9),
        ([0.0, 1.0], float("nan"), -1),
        (["a", "b"], "?", "?"),
        (["a", "b"], 0, "0"),
        (["a", "b"], None, ""),
    ],
)
def test_the_class_of_the_unknown_is_last(classes: list[object], unlabeled: object, last: object) -> None:
    assert with_marker(np.array(classes), unlabeled).tolist() == [*classes, last]


@pytest.mark.parametrize(("classes", "unlabeled"), [([-1, 1], None), ([-1, 1], "?"), (["", "a"], None)])
def test_the_class_of_the_unknown_is_no_other(classes: list[object], unlabeled: object) -> None:
    with pytest.raises(ValueError, match="which is one of the classes"):
        with_marker(np.array(classes), unlabeled)


def test_no_labels() -> None:
    with pytest.raises(ValueError, match=r"y has no labels.*PoissonMixture"):
        encode_labels([-1, -1], -1)


def test_one_class() -> None:
    with pytest.raises(ValueError, match=r"of one class.*at least two"):
        encode_labels([3, -1, 3], -1)


def test_continuous_targets() -> None:
    with pytest.raises(ValueError, match="continuous"):
        encode_labels([0.5, 1.5, -1], -1)


def test_labels_of_different_kinds() -> None:
    with pytest.raises(ValueError, match="have different types"):
        encode_labels(np.array([1, (2, 3), "a"], dtype=object), -1)


@pytest.mark.parametrize("kind", [lambda given: pd.DataFrame(given, dtype="Int64"), pl.DataFrame, pa.table])
def test_a_frame_of_one_column_keeps_integers(kind: Any) -> None:
    codes, classes = encode_labels(kind({"y": [3, None, 5, 3]}), -1)
    assert codes.tolist() == [0, -1, 1, 0]
    assert classes.dtype.kind == "i"
