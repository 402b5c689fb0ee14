from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tnesi.data.datasets import newsgroups
from tnesi.data.datasets.named import load_named
from tnesi.data.datasets.newsgroups import read_newsgroups
from tnesi.data.readers.sparse import CsrSource
from tnesi.data.source import DataError

MESSAGES = {
    "20news-bydate-train/sci.space/1": b"From: a\n\nMoon moon, rocket x",
    "20news-bydate-train/sci.med/22": b"From: b\n\nthe moon\xe9 the pill",
    "20news-bydate-train/sci.med/3": b"From: c\n\nthe rocket pill",
    "20news-bydate-test/sci.med/4": b"From: d\n\nPILL pill pill unheard",
}


def write_archive(path: Path, messages: dict[str, bytes], *more: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w:gz") as file:
        for info in more:
            file.addfile(info, io.BytesIO(bytes(info.size)))
        for name, content in messages.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


def test_word_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TNESI_DATA", str(tmp_path))
    (tmp_path / "20newsgroups").mkdir()
    write_archive(tmp_path / "20newsgroups" / "20news-bydate.tar.gz", MESSAGES)
    data = load_named("20newsgroups", download=False)
    assert data.test
    assert isinstance(data.rows, CsrSource)
    assert data.rows.feature_names == data.test.rows.feature_names == ["from", "moon", "pill", "rocket", "the"]
    assert data.X.toarray().tolist() == [[1, 2, 0, 1, 0], [1, 1, 1, 0, 2], [1, 0, 1, 1, 1]]
    assert data.test.X.toarray().tolist() == [[1, 0, 3, 0, 0]]
    assert data.y.tolist() == ["sci.space", "sci.med", "sci.med"]
    assert data.test.y.tolist() == ["sci.med"]


def test_hostile_members_do_not_matter(tmp_path: Path) -> None:
    outside, link, fifo = (tarfile.TarInfo(f"20news-bydate-train/sci.space/{i}") for i in (7, 8, 9))
    outside.name = "../../outside"
    outside.size = 100
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    fifo.type = tarfile.FIFOTYPE
    write_archive(tmp_path / "a.tar.gz", MESSAGES, outside, link, fifo)
    assert read_newsgroups(tmp_path / "a.tar.gz").rows.n_rows == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar.gz"]


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newsgroups, "_MOST_BYTES", 20_000)
    large = tarfile.TarInfo("large")
    large.size = 10**7
    write_archive(tmp_path / "a.tar.gz", MESSAGES, large)
    with pytest.raises(DataError, match="unpacks to more"):
        read_newsgroups(tmp_path / "a.tar.gz")


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\x1f\x8b\x08rubbish"])
def test_a_file_that_is_not_an_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(DataError, match="download"):
        read_newsgroups(tmp_path / "a.tar.gz")


def test_cut_off_and_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    write_archive(path, MESSAGES)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="damaged"):
        read_newsgroups(path)
    write_archive(path, {})
    with pytest.raises(DataError, match="no messages"):
        read_newsgroups(path)
