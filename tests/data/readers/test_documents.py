"""Folders and lists of text files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tnesi.data import DataError, open_data
from tnesi.encoders import TextEncoder
from tnesi.encoders.encoding import encode, fit_encoder


def write(folder: Path, texts: dict[str, bytes]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
    return folder


def test_folders_are_classes(tmp_path: Path) -> None:
    data = open_data(write(tmp_path, {"sea/a.txt": b"a boat", "hill/b.txt": b"a goat", "c.txt": b"a path"}))
    assert data.rows.kind == "documents"
    assert [path.name for path in data.rows.paths] == ["c.txt", "b.txt", "a.txt"]  # type: ignore[attr-defined]
    assert data.y.tolist() == [None, "hill", "sea"]
    with pytest.raises(DataError, match=r"documents are not numbers.*TextEncoder"):
        data.rows.load()


def test_training_and_test_folders(tmp_path: Path) -> None:
    data = open_data(write(tmp_path, {"train/sea/a.txt": b"a boat", "test/sea/b.txt": b"a net"}))
    assert data.test is not None
    assert data.y.tolist() == data.test.y.tolist() == ["sea"]


def test_most_files_decide(tmp_path: Path) -> None:
    write(tmp_path, {f"{i}.txt": b"words" for i in range(5)} | {"logo.png": b"\x89PNG\r\n\x1a\n"})
    assert open_data(tmp_path).rows.kind == "documents"
    write(tmp_path, {f"{i}.png": b"\x89PNG\r\n\x1a\n\0\0" for i in range(9)})
    assert open_data(tmp_path).rows.kind == "images"


def test_any_encoding(tmp_path: Path) -> None:
    texts = {
        "a.txt": "Grüße vom Hafen".encode(),
        "b.txt": "Grüße vom Hafen".encode("utf-16"),
        "c.txt": "Grüße vom Hafen".encode("latin-1"),
        "d.txt": "\ufeffGrüße vom Hafen".encode(),
        "e.txt": b"",
    }
    data = open_data(write(tmp_path, texts))
    encoder = TextEncoder(min_df=1)
    messages = fit_encoder(encoder, data)
    rows = encode(encoder, data).data.X.toarray()
    assert (rows[:4] == rows[0]).all()
    assert rows[0].any()
    assert not rows[4].any()
    assert any("Windows-1252" in message for message in messages)


def test_a_list_of_texts_or_of_files(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": b"a boat", "b.txt": b"a goat"})
    assert open_data([tmp_path / "a.txt", tmp_path / "b.txt"]).rows.kind == "documents"
    assert open_data(["a boat", "a goat"], labels=["sea", None]).y.tolist() == ["sea", None]


@pytest.mark.parametrize(
    "text",
    [
        "Once upon a time, there was a boat.\nIt sailed, as boats do, far away, and never came back.\n",
        "It was late\nand nobody saw the boat leave\n",
        "just one line",
    ],
)
def test_a_single_text_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "story.txt").write_text(text)
    with pytest.raises(DataError, match=r"is text, and not a table.*into a folder, one file each"):
        open_data(tmp_path / "story.txt")
