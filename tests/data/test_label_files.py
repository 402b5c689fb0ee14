from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.data import DataError, read_labels
from tnesi.data.label_values import MISSING


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("3\n4\n\n5\n", [3, 4, None, 5]),
        ("label\n3\n4\n\n5", [3, 4, None, 5]),
        ("\n\na\nb\n\n\n", [None, None, "a", "b"]),
        ("y\nn\ny\nn\n", ["y", "n", "y", "n"]),
        ("3.0\n\n4.0\n1.0\n", [3, None, 4, 1]),
        ("3\nx\n4\n-1\n", ["3", "x", "4", "-1"]),
        ("-1\n0\n-1\n12\n", [-1, 0, -1, 12]),
        ("1,a\n3,b\n", [None, "a", None, "b"]),
        ("row,label\n1,7\n3,8\n", [None, 7, None, 8]),
        ("row,label,probability,margin\n0,7,0.5,1\n3,8,.1,2\n", [7, None, None, 8]),
        ("label;row\r\n7;1\r\n8;0\r\n", [8, 7, None, None]),
        ("Row\tClass\n\n2\tcat\n\n", [None, None, "cat", None]),
        ("0,5\n1,6\n2,7\n3,\n", [5, 6, 7, None]),
        ("\ufeff1,a\n", [None, "a", None, None]),
    ],
)
def test_text(tmp_path: Path, text: str, labels: list[Any]) -> None:
    path = tmp_path / "labels"
    for content in (text.encode(), gzip.compress(text.encode())):
        path.write_bytes(content)
        assert read_labels(path, 4).tolist() == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n3\n", "has 3 labels for 4 rows"),
        ("1\n2\n3\n4\n5\n", "has more labels for 4 rows"),
        ("label\n1\n2\n3\n", "has 3 labels for 4 rows"),
        ("1\n" * 100, "more labels than the data has rows"),
        ("0,a\n,b\n", "'' is not a row number"),
        ("0,a\n\u0661,b\n", "is not a row number"),
        ("4,a\n", "no row 4: use row numbers from 0 to 3"),
        ("1,a\n1,a\n", "row 1 twice"),
        ("-1,a\n0,b\n", "'-1' is not a row number"),
        ("row,label\nx,a\n", "'x' is not a row number"),
        ("1,a,b\n", "3 columns: name the two"),
        ("0,a\n1,b,c\n2,d\n", "not all lines have|columns"),
        ("row,label\n1,a\n2\n", "not all lines have 2 columns"),
        ("x" * 300 + "\n1\n1\n2\n", "label has 300 characters"),
        ("x" * 70_000, "a line of more than"),
        ("", "empty"),
        ("1\n\0\n", "unsupported file format"),
    ],
)
def test_bad_text_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "labels").write_text(text)
    with pytest.raises(DataError, match=message):
        read_labels(tmp_path / "labels", 4)


def test_arrays(tmp_path: Path) -> None:
    for values, labels in (
        (np.array([1, 2], np.uint8), [1, 2]),
        (np.array([1, np.nan]), [1, None]),
        (np.array(["a", ""]), ["a", None]),
        (np.array([b"a", b"b"]), ["a", "b"]),
        (np.array(["1", "2"]), ["1", "2"]),
        (np.array([True, False]), [1, 0]),
    ):
        np.save(tmp_path / "a.npy", values)
        np.savez(tmp_path / "b.npz", y=values, other=values)
        np.savez(tmp_path / "c.npz", values)
        for name in ("a.npy", "b.npz", "c.npz"):
            assert read_labels(tmp_path / name, 2).tolist() == labels
    (tmp_path / "idx").write_bytes(b"\0\0\x08\x01\0\0\0\x02\x07\x09")
    assert read_labels(tmp_path / "idx", 2).tolist() == [7, 9]
    np.save(tmp_path / "d.npy", np.array([2**30], np.uint32).view("U1"))
    with pytest.raises(DataError, match="damaged"):
        read_labels(tmp_path / "d.npy", 1)
    np.savez(tmp_path / "b.npz", foo=values, bar=values)
    with pytest.raises(DataError, match="name the array of labels y"):
        read_labels(tmp_path / "b.npz", 2)
    with pytest.raises(DataError, match="labels of shape 2 for 3 rows"):
        read_labels(tmp_path / "a.npy", 3)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    for columns, labels in (
        ({"anything": ["a", None, "b"]}, ["a", None, "b"]),
        ({"x": [0.5, 0.5, 0.5], "label": [1, None, 2]}, [1, None, 2]),
        ({"row": [2, 0], "label": [5, 6]}, [6, None, 5]),
    ):
        pq.write_table(pa.table(columns), path)
        assert read_labels(path, 3).tolist() == labels
    for columns, message in (
        ({"label": [1, 2]}, "labels of shape 2 for 3 rows"),
        ({"label": [1, 2, 3, 4]}, "4 labels for 3 rows"),
        ({"a": [1, 2, 3], "b": [1, 2, 3]}, "name the label column 'label'"),
        ({"row": [0, 0], "label": [5, 6]}, "row 0 twice"),
        ({"row": ["a", "b"], "label": [5, 6]}, "not row numbers"),
    ):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(DataError, match=message):
            read_labels(path, 3)


def test_what_has_no_labels(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read_labels(tmp_path, 3)
    with pytest.raises(FileNotFoundError):
        read_labels(tmp_path / "missing", 3)
    (tmp_path / "a").write_bytes(b"GIF89a")
    with pytest.raises(DataError, match="is not a label file"):
        read_labels(tmp_path / "a", 3)


NUMBERS = st.none() | st.integers(-9, 10**12)
NAMES = st.none() | st.text(st.characters(categories=["L"]), min_size=1, max_size=9).filter(
    lambda name: name not in MISSING
)


@given(st.lists(NUMBERS, min_size=1) | st.lists(NAMES, min_size=1))
def test_round_trip(labels: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "labels.csv")
        lines = [f"{row},{'' if value is None else value}" for row, value in enumerate(labels)]
        path.write_text("row,label\n" + "\n".join(lines), encoding="utf-8")
        got = read_labels(path, len(labels))
    assert got.tolist() == labels
    assert got.dtype.kind == ("O" if None in labels else "U" if isinstance(labels[0], str) else "i")


@pytest.mark.parametrize("content", [b"\xef", b"\xef\xbb", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_alone(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "labels").write_bytes(content)
    with pytest.raises(DataError, match="has no labels: write one per line"):
        read_labels(tmp_path / "labels", 3)
