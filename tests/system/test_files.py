"""Files appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tnesi.system.files import check_place, replacing


def write_half(place: Path, error: BaseException) -> None:
    with replacing(place) as temporary:
        temporary.write_text("new, but")
        raise error


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "kept.txt"
    place.write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        write_half(place, RuntimeError("half way"))
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]
    assert place.read_text() == "old"


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_half(tmp_path / "x", KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


def test_the_mode_follows_the_umask_and_then_the_old_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "x") as temporary:
            temporary.write_text("some")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640
    (tmp_path / "x").chmod(0o600)
    with replacing(tmp_path / "x") as temporary:
        temporary.write_text("other")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


def test_an_unwritable_folder_is_reported_in_advance(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*: create it first"):
        check_place(tmp_path / "missing" / "model.tnesi")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_place(tmp_path)
    check_place(tmp_path / "fine")
    assert list(tmp_path.iterdir()) == []
