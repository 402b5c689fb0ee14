from __future__ import annotations

import contextlib
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tnesi.data import Data, DataError, open_data


def open_text(folder: Path, text: str | bytes, **how: Any) -> Data:
    path = folder / "table"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return open_data(path, **how)


def open_table(folder: Path, columns: dict[str, Any], **how: Any) -> Data:
    pq.write_table(pa.table(columns), folder / "table")
    return open_data(folder / "table", **how)


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("1;2\r\n3;4\r\n", None, [[1, 2], [3, 4]]),
        ("1\t2\n\n3\t4", None, [[1, 2], [3, 4]]),
        ("1e0 2.5\n3 4\n", None, [[1, 2.5], [3, 4]]),
        ("\ufeffa,b\n1,2\n", ["a", "b"], [[1, 2]]),
        ("\n\na,b\n1, 2\n", ["a", "b"], [[1, 2]]),
        ('"a, or b",b\n"1",2\n', ["a, or b", "b"], [[1, 2]]),
        ("a,a\n1,2\n", ["a", "a"], [[1, 2]]),
        ("a,2020\n1,2\n", ["a", "2020"], [[1, 2]]),
        ("0,1,2\n3,4,5\n", None, [[0, 1, 2], [3, 4, 5]]),
        ("5\n6\n", None, [[5], [6]]),
    ],
)
def test_csv_layouts(tmp_path: Path, text: str, names: list[str] | None, rows: list[list[float]]) -> None:
    for content in (text.encode(), gzip.compress(text.encode())):
        data = open_text(tmp_path, content)
        assert data.X.tolist() == rows
        assert data.rows.feature_names == names
        assert data.labels is None


def test_numbered_columns_of_pandas(tmp_path: Path, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.integers(0, 9, (3, 12)))
    np.testing.assert_array_equal(open_text(tmp_path, frame.to_csv(index=False)).X, frame)
    data = open_text(tmp_path, frame.to_csv())
    np.testing.assert_array_equal(data.X, frame)
    assert "index column '' omitted" in data.note
    frame.insert(0, "label", 7)
    np.testing.assert_array_equal(open_text(tmp_path, frame.iloc[:, :4].to_csv(index=False)).y, [7, 7, 7])


@pytest.mark.parametrize(
    ("text", "how", "labels"),
    [
        ("a,Label\n1,x\n2,\n3,y\n", {}, ["x", None, "y"]),
        ("a,y\n1,3\n2,4\n", {}, [3, 4]),
        ("a,y\n1,3.0\n2,\n", {}, [3, None]),
        ("a,y\n1,03\n2,4\n", {}, ["03", "4"]),
        ("a,b\n1,x\n2,z\n", {"label_column": "b"}, ["x", "z"]),
        ("5,1,2\n6,3,4\n", {"label_column": 0}, [5, 6]),
        ("5,1,2\n6,3,4\n", {"label_column": "0"}, [5, 6]),
        ("cat,1\ndog,2\n", {"label_column": 0}, ["cat", "dog"]),
        ("1,cat\n2,dog\n", {"label_column": -1}, ["cat", "dog"]),
    ],
)
def test_csv_labels(tmp_path: Path, text: str, how: dict[str, Any], labels: list[Any]) -> None:
    data = open_text(tmp_path, text, **how)
    assert data.y.tolist() == labels
    assert data.note.startswith("labels from column") == (not how)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,x,z\n", r"columns 'b', 'c' are not numeric.*label_column"),
        ("a,b\n1,2\n3,x\n", "column 'b'.*'x'.*label_column"),
        ("a,b\n1,2\n3,\n", r"row 1 .* column 'b'"),
        ("a,b\n1,2\nnan,1\n", "row 1 .* column 'a'"),
        ("a,b\n1,inf\n", "row 0 .* column 'b'"),
        ("a,b\n1,2\n1\n", "lines of 2 and of 1 cells"),
        ("a,b\n1,2,3\n", "lines of 2 and 3 cells"),
        ("a,label,class\n1,2,3\n", "'label', 'class' could all be labels"),
        ("label\n1\n", "no columns except the labels"),
        (b"1,2\n" * 20_000 + b"\0\0", "instead of a number|not a valid table|lines of 2 and of 1 cells"),
        ("a,b\n", "has no rows"),
        ("1,a,2\n", "'1' are not numeric"),
        ("1" + ",1" * 300_000 + "\n", "lines that are too long"),
        ("1" * 9_000_000, "lines that are too long"),
        ("a,b\n1,2\n" + "1" * 9_000_000, "not a valid table"),
        (gzip.compress(b"1,2\n" * 20_000, mtime=0)[:-9], "damaged|not a valid table|unsupported file format|has"),
    ],
)
def test_bad_csv_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(open_text(tmp_path, text).rows.blocks())


def test_unknown_label_column(tmp_path: Path) -> None:
    for name in ("c", 2, -3):
        with pytest.raises(DataError, match=r"no column .*2 columns: a, b"):
            open_text(tmp_path, "a,b\n1,2\n", label_column=name)


def test_csv_that_changes_is_noticed(tmp_path: Path) -> None:
    data = open_text(tmp_path, "1,2\n3,4\n")
    (tmp_path / "table").write_text("1,2\n")
    with pytest.raises(DataError, match="had 2 rows and now has 1"):
        list(data.rows.blocks())
    (tmp_path / "table").write_text("1,2\n3,400\n")
    with pytest.raises(DataError, match="has changed"):
        list(data.rows.blocks())


def test_smallest_exact_type(tmp_path: Path) -> None:
    for text, dtype in (("0,255\n", "u1"), ("0,256\n", "f4"), ("0,-1\n", "f4"), ("0,0.1\n", "f8")):
        assert open_text(tmp_path, text).X.dtype == dtype


@pytest.mark.slow
def test_tables_of_many_batches(tmp_path: Path, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.integers(0, 10**6, (60_000, 30)), columns=[f"c{i}" for i in range(30)])
    frame["label"] = np.arange(60_000) % 7
    frame.to_csv(tmp_path / "a", index=False)
    frame.to_parquet(tmp_path / "b", row_group_size=7_000)
    assert (tmp_path / "a").stat().st_size > 2**23
    for name in ("a", "b"):
        data = open_data(tmp_path / name)
        np.testing.assert_array_equal(data.X, frame.drop(columns="label"))
        np.testing.assert_array_equal(data.y, frame["label"])
        assert [len(block) for block in data.rows.blocks(25_000)] == [25_000, 25_000, 10_000]


def test_parquet_types(tmp_path: Path) -> None:
    data = open_table(tmp_path, {"a": [1, 256], "b": [True, False], "label": ["x", None]})
    assert data.X.dtype == np.int64
    assert (data.X.tolist(), data.y.tolist()) == ([[1, 1], [256, 0]], ["x", None])
    small = pa.array([1, 255], pa.uint8())
    assert open_table(tmp_path, {"a": small, "b": small}).X.dtype == np.uint8
    decimals = pa.array([1, 2], pa.decimal128(5, 1))
    assert open_table(tmp_path, {"a": decimals, "b": pa.array([1, 2], pa.float32())}).X.tolist() == [[1, 1], [2, 2]]
    categories = pa.array(["x", "z"]).dictionary_encode()
    assert open_table(tmp_path, {"a": [1, 2], "b": categories}, label_column="b").y.tolist() == ["x", "z"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1], "b": ["x"], "c": [b"z"]}, r"columns 'b', 'c' are not numeric.*label_column"),
        ({"a": [1, None]}, "column 'a' has missing values"),
        ({"a": [True, None]}, "column 'a' has missing values"),
        ({"a": [1.5, float("nan")]}, "column 'a' has missing values"),
        ({"a": [[1, 2], [3]]}, "row 1 has 1 numbers in column 'a', and row 0 has 2"),
        ({"a": [{"b": 1, "c": 2}]}, "columns are nested"),
        ({"a": pa.array([], pa.int64())}, "is empty|no rows"),
        ({"label": [1]}, "no columns except the labels"),
    ],
)
def test_bad_parquet_is_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(open_table(tmp_path, columns).rows.blocks())


def varint(number: int) -> bytes:
    """Return how Thrift writes a number."""
    number, out = 2 * number, b""
    while number > 127:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


@pytest.mark.parametrize(
    ("n_rows", "message"), [(10**12, "1000000000000 rows in .* not plausible"), (30_000, "and now has|damaged")]
)
def test_parquet_with_forged_rows(tmp_path: Path, n_rows: int, message: str) -> None:
    path = tmp_path / "table"
    pq.write_table(pa.table({"a": np.arange(12_345, dtype=np.int16)}), path)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8].replace(varint(12_345), varint(n_rows))
    path.write_bytes(content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DataError, match=message):
        list(open_data(path).rows.blocks())


def test_parquet_with_a_changed_footer(tmp_path: Path) -> None:
    path = tmp_path / "table"
    pq.write_table(pa.table({"a": [1, 2], "label": ["x", "y"]}), path, store_schema=False)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    for at in range(len(content) - 8 - length, len(content)):
        for change in (2, 255):  # such as columns that become required, which pyarrow's own account does not survive
            changed = bytearray(content)
            changed[at] ^= change
            path.write_bytes(changed)
            with contextlib.suppress(DataError):
                list(open_data(path).rows.blocks())


@pytest.mark.parametrize(("delimiter", "quote"), [(";", ""), ("\t", ""), (",", '"')])
@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas(tmp_path: Path, delimiter: str, quote: str, header: bool) -> None:
    lines = [delimiter.join(["a", "b", "label"])] if header else []
    for i in range(6):
        cells = [f"{quote}{i},5{quote}", f"{quote}{2 * i},25{quote}", "7"]
        lines.append(delimiter.join(cells))
    (tmp_path / "d.csv").write_text("\n".join(lines))
    data = open_data(tmp_path / "d.csv", label_column=2)
    np.testing.assert_allclose(data.X, [[i + 0.5, 2 * i + 0.25] for i in range(6)])


def test_two_columns_of_whole_numbers_are_no_decimals(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("1,2\n3,4\n")
    assert open_data(tmp_path / "d.csv").X.tolist() == [[1, 2], [3, 4]]


def test_missing_labels_as_other_programs_write_them(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,b,label\n1,2,cat\n3,4,NA\n5,6,NULL\n7,8,\n")
    assert open_data(tmp_path / "d.csv").y.tolist() == ["cat", None, None, None]
