from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tnesi.data import DataError, open_data
from tnesi.data.optional import needed
from tnesi.data.recognize import recognize


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x93NUMPY\x01\x00", "npy"),
        (b"PK\x03\x04", "npz"),
        (b"PAR1", "parquet"),
        (b"\0\0\x08\x03\0\0\0\0", "idx"),
        (gzip.compress(b"\0\0\x08\x03\0\0\0\0", mtime=0), "idx"),
        (b"1,2\n", "text"),
        (gzip.compress(b"1,2\n", mtime=0), "text"),
        ("ä,ö\n".encode() * 20_000, "text"),
        (b"P5\n1 1\n255\n\0", "images"),
        (b"P5,3\n", "text"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "images"),
    ],
)
def test_the_format_is_recognized_by_content(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert recognize(tmp_path / "a.csv") == kind


def test_other_content_in_gzip(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(3))
    (tmp_path / "a.gz").write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))
    with pytest.raises(DataError, match="decompress it with gunzip"):
        recognize(tmp_path / "a.gz")
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08 not really")
    with pytest.raises(DataError, match="damaged"):
        recognize(tmp_path / "a.gz")


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"reading images needs pillow: pip install 'tnesi\[files\]'"):
        needed("PIL.Image", "reading images")


def test_folders_and_json_lines(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text('{"a": 1}\n')
    assert recognize(tmp_path / "lines.txt") == "json lines"
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a text")
    assert recognize(tmp_path / "texts") == "documents"
    with pytest.raises(DataError, match=r"not a table \(documents\)"):
        open_data(tmp_path / "texts", label_column="kind")
    (tmp_path / "none").mkdir()
    assert recognize(tmp_path / "none") == "images"
