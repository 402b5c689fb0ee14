"""Tables with columns of any kind: CSV, Parquet, JSON lines, data frames."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.data import DataError, open_data
from tnesi.data.readers import csv_tables, json_lines, table_files, text_files
from tnesi.encoders import TableEncoder, TextEncoder, VectorEncoder, encoder_for
from tnesi.encoders.encoding import encode, fit_encoder

LONG = "The boat left the harbor, as always, long before the sun was up."


def open_text(folder: Path, text: str | bytes, name: str = "table.csv", **how: Any) -> Any:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return open_data(folder / name, **how)


def values(data: Any) -> list[Any]:
    """Return the items of all rows as input for the encoder."""
    return [item for block in data.rows.items() for item in (block if isinstance(block, list) else block.to_pylist())]


def test_quoted_texts_may_have_many_lines(tmp_path: Path) -> None:
    text = f'id,text,label\n1,"{LONG}\nSecond, third",sea\n2,"He said ""no"".\n\n{LONG}",hill\n'
    data = open_text(tmp_path, text)
    assert [row["text"] for row in values(data)] == [f"{LONG}\nSecond, third", f'He said "no".\n\n{LONG}']
    assert data.y.tolist() == ["sea", "hill"]


def test_the_only_column_of_texts_is_documents(tmp_path: Path) -> None:
    data = open_text(tmp_path, f'text,label\n"{LONG}",sea\n"{LONG}\nMore.",\n')
    assert data.rows.kind == "documents"
    assert values(data) == [LONG, f"{LONG}\nMore."]
    assert type(encoder_for(data)) is TextEncoder
    assert open_text(tmp_path, "color,label\nred,1\ngreen,2\n").rows.kind == "table"


def test_two_columns_of_texts_are_a_table(tmp_path: Path) -> None:
    rows = "".join(f'"{LONG} {i}","{LONG} {i * i}"\n' for i in range(40))
    data = open_text(tmp_path, f"title,body\n{rows}")
    assert data.rows.kind == "table"
    assert data.rows.feature_names == ["title", "body"]
    encoder = encoder_for(data)
    assert isinstance(encoder, TableEncoder)
    fit_encoder(encoder, data)
    assert set(encoder.kinds_.values()) == {"text"}
    assert encode(encoder, data).data.rows.n_rows == 40


@pytest.mark.parametrize(
    ("text", "names", "n_rows"),
    [
        ("age,job\n31,clerk\n54,nurse\n", ["age", "job"], 2),
        ("31,clerk\n54,nurse\n", ["0", "1"], 2),
        ("color,size\nred,small\ngreen,large\n", ["color", "size"], 2),
        ("red,small\ngreen,large\nred,large\n", ["0", "1"], 3),  # the first line recurs
        ("age;job\n31;clerk\n", ["age", "job"], 1),
        (",age,job\n0,31,clerk\n1,54,nurse\n", ["age", "job"], 2),  # an index
        ("a,a,b\n1,x,2\n3,y,4\n", ["a", "a (2)", "b"], 2),
        ("a,b\n1,inf\n2,-inf\n3,4\n", ["a", "b"], 3),
        ("a,b\n1,x\n2,3\n4,\n", ["a", "b"], 3),
    ],
)
def test_headers(tmp_path: Path, text: str, names: list[str], n_rows: int) -> None:
    data = open_text(tmp_path, text)
    assert data.rows.feature_names == names
    assert data.rows.n_rows == n_rows


@given(
    names=st.lists(st.text("abcdefg", min_size=1, max_size=5).map(lambda s: "n" + s), min_size=2, max_size=5,
                   unique=True),
    cells=st.lists(st.text("xyz ,\"\n", min_size=1, max_size=12).map(lambda s: "v" + s), min_size=1, max_size=8),
)  # fmt: skip
def test_what_pandas_writes_is_read(names: list[str], cells: list[str], tmp_path_factory: Any) -> None:
    place = tmp_path_factory.mktemp("written") / "table.csv"
    frame = pd.DataFrame(dict.fromkeys(names, cells))
    frame.to_csv(place, index=False)
    data = open_data(place)
    assert data.rows.feature_names == names
    assert [list(row.values()) for row in values(data)] == [[cell] * len(names) for cell in cells]


def test_mixed_types_and_infinite_values_are_encoded(tmp_path: Path) -> None:
    rows = "".join(f"{i},{'n/a' if i % 7 == 0 else i / 3},{'inf' if i == 5 else i}\n" for i in range(60))
    data = open_text(tmp_path, f"a,b,c\n{rows}7,unknown,3\n")
    encoder = TableEncoder()
    messages = fit_encoder(encoder, data)
    assert any("infinite" in message for message in messages)
    rows = encode(encoder, data).data.X
    assert np.isfinite(rows).all()
    assert (rows >= 0).all()
    with pytest.raises(DataError, match=r"table\.csv.*(numeric|number).*encode the columns"):
        data.rows.load()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_encodings(tmp_path: Path, encoding: str, delimiter: str) -> None:
    text = "Ort,Größe\nMünchen,3\nKöln,4\n".replace(",", delimiter)
    data = open_text(tmp_path, text.encode(encoding))
    assert data.rows.feature_names == ["Ort", "Größe"]
    assert [row["Ort"] for row in values(data)] == ["München", "Köln"]
    assert ("Windows-1252" in data.note) == (encoding == "cp1252")


def test_packed_tables(tmp_path: Path) -> None:
    data = open_text(tmp_path, gzip.compress(b"age,job\n31,clerk\n54,nurse\n"), "table.csv.gz")
    assert values(data) == [{"age": 31, "job": "clerk"}, {"age": 54, "job": "nurse"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty|unsupported file format"),
        ("name,job\n", "has no rows"),
        ("name,job\nann,clerk\nbob,nurse,x\n", "is text, and not a table, but has lines of 2 and of 3 cells"),
        (",".join(f"name{i}" for i in range(300_000)) + "\nx", "lines that are too long"),
        ('[{"a": 1}, 2]', "item 2 of the list is not an object"),
        ('{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ('{"a": 1}\n[1]\n', "JSON"),
        ('{"label": "x"}\n', "no columns except the labels"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_text(tmp_path, text)


def test_json_lines(tmp_path: Path) -> None:
    text = '{"age": 31, "job": "clerk", "label": "x"}\n\n{"age": "n/a", "label": null, "extra": {"a": ["q"]}}\n'
    data = open_text(tmp_path, text, "rows.jsonl")
    assert data.y.tolist() == ["x", None]
    assert [row["age"] for row in values(data)] == ["31", "n/a"]
    assert "'extra.a'" in data.note


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3), pa.large_list(pa.int16())])
def test_columns_of_vectors(tmp_path: Path, kind: Any) -> None:
    import pyarrow.parquet as parquet

    table = pa.table({"id": ["a", "b"], "v": pa.array([[1, -2, 3], [4, 5, -6]], kind), "label": ["x", None]})
    parquet.write_table(table, tmp_path / "vectors")
    data = open_data(tmp_path / "vectors")
    assert data.X.tolist() == [[1, -2, 3], [4, 5, -6]]
    assert "vectors from the column 'v', without 'id'" in data.note


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files in many small blocks."""
    monkeypatch.setattr(csv_tables, "_BLOCKS", (100, 1000, 10**6))
    monkeypatch.setattr(json_lines, "_BLOCK", 100)
    monkeypatch.setattr(table_files, "_BATCH_ROWS", 7)
    monkeypatch.setattr(text_files, "_BLOCK", 10)


def mixed_rows(n: int) -> dict[str, list[Any]]:
    """Return columns whose last rows do not have the type of the first ones."""
    rng = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {
        "whole": list(range(n)),
        "later_real": [*range(n - 1), 0.5],
        "later_text": [*range(n - 1), "unknown"],
        "later_true": [1] * (n - 1) + ["true"],
        "day": ["2020-01-01"] * n,
        "later_time": ["2020-01-01"] * (n - 1) + ["2020-01-01 10:00:00"],
        "first_missing": [None] * (n // 2) + [3] * (n - n // 2),
        "missing": [None] * n,
        "text": [f"{LONG} " * int(rng.integers(1, 5)) + f'line\n{i}, "quoted", größer' for i in range(n)],
    }
    return columns


def types_in(data: Any) -> dict[str, str]:
    schema = data.rows.table.schema
    return {name: str(schema.field(name).type) for name in schema.names}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_csv_file_in_blocks_is_the_file_at_once(tmp_path: Path, encoding: str) -> None:
    import pyarrow.csv as arrow_csv

    frame = pd.DataFrame(mixed_rows(100), dtype=object)
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.to_csv(tmp_path / "table.csv", index=False, encoding=encoding)
    options = arrow_csv.ConvertOptions(strings_can_be_null=True)
    whole = arrow_csv.read_csv(
        tmp_path / "plain.csv", parse_options=arrow_csv.ParseOptions(newlines_in_values=True), convert_options=options
    )
    rows = open_data(tmp_path / "table.csv").rows
    assert rows.table.combine_chunks() == whole.combine_chunks()
    assert len(list(rows.items())) > 10
    assert [len(items) for items in rows.items(3)] == [len(items) for items in rows.items(3)]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("key", ["parquet", "jsonl"])
def test_files_in_blocks(tmp_path: Path, key: str) -> None:
    columns = mixed_rows(100) | {"label": ["x"] * 50 + ["y"] * 50}
    place = tmp_path / f"rows.{key}"
    if key == "jsonl":
        pd.DataFrame(columns, dtype=object).to_json(place, orient="records", lines=True)
    else:
        tidy = {name: columns[name] for name in ("whole", "day", "text", "first_missing", "label")}
        pd.DataFrame(tidy).to_parquet(place)
    data = open_data(place)
    assert len(list(data.rows.items())) > 10
    assert data.y.tolist() == columns["label"]
    assert [row["text"] for row in values(data)] == columns["text"]
    assert [row["whole"] for row in values(data)] == columns["whole"]
    if key == "jsonl":
        found = {name: types_in(data)[name] for name in ("whole", "later_real", "later_text", "missing")}
        assert found == {"whole": "int64", "later_real": "double", "later_text": "string", "missing": "null"}
        assert [row["later_text"] for row in values(data)] == [*map(str, range(99)), "unknown"]
        assert [row["later_time"] for row in values(data)] == columns["later_time"] or types_in(data)[
            "later_time"
        ].startswith("timestamp")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("damage", ['{"text": "a', "[1]"])
def test_damage_in_a_later_block_is_named(tmp_path: Path, damage: str) -> None:
    lines = ['{"text": "a long line with some words in it"}'] * 50
    lines[40] = damage
    with pytest.raises(DataError, match="line 41 is not"):
        open_text(tmp_path, "\n".join(lines), "rows.jsonl")


@pytest.mark.usefixtures("small_blocks")
def test_vectors_in_blocks(tmp_path: Path, rng: np.random.Generator) -> None:
    import pyarrow.parquet as parquet

    X = rng.normal(size=(100, 5)).astype(np.float32)
    parquet.write_table(pa.table({"v": X.tolist()}), tmp_path / "vectors")
    np.testing.assert_array_equal(open_data(tmp_path / "vectors").X, X)
    parquet.write_table(pa.table({"v": [*X.tolist(), [1.0]]}), tmp_path / "uneven")
    with pytest.raises(DataError, match="row 100 has 1 numbers in column 'v', and row 0 has 5"):
        open_data(tmp_path / "uneven")


@pytest.mark.parametrize("text", ["\n\nage,job\n31,clerk\n54,nurse\n", '"the\nage",job\n31,clerk\n54,nurse\n'])
def test_lines_before_the_rows(tmp_path: Path, text: str) -> None:
    data = open_text(tmp_path, text)
    assert [list(row.values()) for row in values(data)] == [[31, "clerk"], [54, "nurse"]]


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    rows = open_text(tmp_path, "age,job\n31,clerk\n54,nurse\n").rows
    (tmp_path / "table.csv").write_text("age,job\n31,clerk\n")
    with pytest.raises(DataError, match="had 2 rows and now has 1"):
        list(rows.items())


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame: Any) -> None:
    table = frame({"age": [31, 54, None], "job": ["clerk", "nurse", "clerk"], "label": ["x", "y", None]})
    data = open_data(table)
    assert data.rows.kind == "table"
    assert data.y.tolist() == ["x", "y", None]
    encoder = encoder_for(table)
    assert isinstance(encoder, TableEncoder)
    fit_encoder(encoder, data)
    np.testing.assert_array_equal(encode(encoder, data).data.X, TableEncoder().fit_transform(table[["age", "job"]]))
    texts = frame({"text": [LONG, LONG], "label": ["x", None]})
    assert type(encoder_for(texts)) is TextEncoder
    lists = frame({"v": [[float(i - j) for j in range(60)] for i in range(9)]})
    assert type(encoder_for(lists)) is VectorEncoder


def test_frames_with_equal_names() -> None:
    frame = pd.DataFrame([[1, "x", 2], [3, "y", 4]], columns=["a", "a", "b"])
    assert open_data(frame).rows.feature_names == ["a", "a (2)", "b"]
    assert open_data(frame.iloc[:, [0, 2]].set_axis(["a", "a"], axis=1)).X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_any_ends_of_lines(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_bytes(end.join(["name,kind", "x,red", "y,blue", ""]).encode())
    rows = open_data(tmp_path / "t.csv").rows
    assert (rows.n_rows, rows.feature_names) == (2, ["name", "kind"])


def test_a_list_of_objects_and_objects_within_objects(tmp_path: Path) -> None:
    rows = [{"user": {"age": 30 + i, "home": {"town": "Köln"}}, "label": "a"} for i in range(5)]
    rows[2] = {"user": None, "label": None}
    (tmp_path / "list.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    for name in ("list.json", "lines.jsonl"):
        data = open_data(tmp_path / name)
        table = data.rows.table
        assert table.column_names[:2] == ["user.age", "user.home.town"]
        assert table.column("user.age").to_pylist() == [30, 31, None, 33, 34]
    (tmp_path / "numbers.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="item 1 of the list is not an object"):
        open_data(tmp_path / "numbers.json")
    (tmp_path / "half.json").write_text('[{"a": 1}, {"a"')
    with pytest.raises(DataError, match="is not JSON"):
        open_data(tmp_path / "half.json")


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_parquet_with_missing_numbers_is_a_table(tmp_path: Path, gap: float | None) -> None:
    pq.write_table(pa.table({"a": pa.array([1.5, gap, 3.0]), "b": [1, 2, 3]}), tmp_path / "gaps.parquet")
    data = open_data(tmp_path / "gaps.parquet")
    assert data.rows.kind == "table"
    assert TableEncoder().fit_transform(data.rows.table).shape[0] == 3


def test_parquet_with_nested_columns(tmp_path: Path) -> None:
    nested = pa.array([{"x": 1.0, "y": "q"}] * 3)
    pq.write_table(pa.table({"s": nested, "a": [1, 2, 3], "c": ["u", "v", "u"]}), tmp_path / "nested.parquet")
    data = open_data(tmp_path / "nested.parquet")
    assert data.rows.feature_names == ["a", "c"]
    assert "nested columns left out: 's'" in data.note


def test_vertical_bars(tmp_path: Path) -> None:
    (tmp_path / "bars.csv").write_text("a|b\n1|x\n2|y\n")
    assert open_data(tmp_path / "bars.csv").rows.feature_names == ["a", "b"]
    (tmp_path / "numbers.csv").write_text("a|b\n1|3\n2|4\n")
    np.testing.assert_array_equal(open_data(tmp_path / "numbers.csv").X, [[1, 3], [2, 4]])


def test_the_line_for_excel(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("sep=;\na;b\n1;3\n2;4\n")
    data = open_data(tmp_path / "numbers.csv")
    assert (data.rows.n_rows, data.rows.feature_names) == (2, ["a", "b"])
    (tmp_path / "empty.csv").write_text("sep=;\n")
    with pytest.raises(DataError, match="no rows"):
        open_data(tmp_path / "empty.csv")


def test_large_integers_keep_their_digits(tmp_path: Path) -> None:
    (tmp_path / "large.csv").write_text("a,b\n" + "\n".join(f"{2**60 + i},{i}" for i in range(3)))
    assert open_data(tmp_path / "large.csv").rows.table.column("a").to_pylist() == [2**60 + i for i in range(3)]


def test_a_line_with_more_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "ragged.csv").write_text("a,b\n" + "1,2\n" * 300 + "1,2,3\n")
    with pytest.raises(DataError, match=r"has lines of 2 and of 3 cells \('1,2,3'\)"):
        open_data(tmp_path / "ragged.csv")
    (tmp_path / "mixed.csv").write_text("a,b\n" + "1,x\n" * 300 + "1,x,3\n")
    with pytest.raises(DataError, match=r"has lines of 2 and of 3 cells"):
        open_data(tmp_path / "mixed.csv")
