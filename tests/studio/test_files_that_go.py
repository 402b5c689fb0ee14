"""Files and folders that are removed, moved or changed while the studio runs: no label is lost, nothing crashes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[..., Any]


def test_labels_are_rescued_where_their_file_is_gone(run: Run, tmp_path: Path) -> None:
    studio = run("digits", "--fields", 20)
    studio.ready()
    for row in (3, 4):
        studio.ask("POST", "/api/answers", {"client": "a", "row": row, "label": "x"})
    (tmp_path / "digits.studio.sqlite").unlink()
    assert studio.end() == 1
    assert "continue with --labels" in " ".join(studio.log.read_text().split())
    assert (tmp_path / "digits.studio.labels.csv").read_text() == "row,label\n3,x\n4,x\n"
    again = run("digits", "--labels", "digits.studio.labels.csv", "--fields", 20)
    assert "2 labels imported." in again.log.read_text()
    again.ask("POST", "/api/answers", {"client": "a", "row": 5, "label": "y"})
    (tmp_path / "digits.studio.sqlite").unlink()
    assert again.end() == 1
    assert (tmp_path / "digits.studio.labels.csv").read_text() == "row,label\n3,x\n4,x\n"  # nothing is overwritten
    assert (tmp_path / "digits.studio.labels2.csv").read_text() == "row,label\n3,x\n4,x\n5,y\n"
    nothing = run("digits", "--fields", 20)
    (tmp_path / "digits.studio.sqlite").unlink()
    assert nothing.end() == 1
    assert "It had no labels" in " ".join(nothing.log.read_text().split())


def test_labels_are_rescued_where_every_folder_is_gone(run: Run, tmp_path: Path) -> None:
    for name in ("here", "temporary"):
        (tmp_path / name).mkdir()
    studio = run("digits", "--fields", 20, folder=tmp_path / "here", TMPDIR=str(tmp_path / "temporary"))
    with studio.log.open() as said:
        studio.ask("POST", "/api/answers", {"client": "a", "row": 3, "label": "x"})
        shutil.rmtree(tmp_path / "here")
        assert studio.end() == 1
        assert "1 label saved to" in " ".join(said.read().split())
    assert (tmp_path / "temporary" / "digits.studio.labels.csv").read_text() == "row,label\n3,x\n"


def test_a_table_that_is_moved_while_the_studio_is_open(run: Run, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).poisson(5, (100, 4))
    np.savetxt(tmp_path / "rows.csv", rows, "%d", ",", header="a,b,c,d", comments="")
    studio = run("rows.csv", "--fields", 10)
    (tmp_path / "rows.csv").unlink()
    assert studio.ready()["data"]["rows"] == 100


def test_labels_are_rescued_where_their_folder_is_gone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    studio = run("digits", "--fields", 20, "--project", "sub/p.sqlite")
    studio.ask("POST", "/api/answers", {"client": "a", "row": 3, "label": "x"})
    shutil.rmtree(tmp_path / "sub")
    assert studio.end() == 1
    assert "1 label saved to" in " ".join(studio.log.read_text().split())
    assert (tmp_path / "p.labels.csv").read_text() == "row,label\n3,x\n"


def test_data_that_change_while_the_studio_is_open(run: Run, tmp_path: Path) -> None:
    """Reading a mapped file that became shorter would crash the program."""
    rows = np.random.default_rng(0).poisson(5, (3000, 16)).astype(np.uint8)
    np.save(tmp_path / "rows.npy", rows)
    studio = run("rows.npy", "--fields", 20)
    before = studio.ask("GET", "/api/rows/2999")["profile"]
    np.save(tmp_path / "rows.npy", rows[:10])
    assert studio.ask("GET", "/api/rows/2999")["profile"] == before == rows[2999].tolist()
    studio.ready()
    assert studio.end() == 0
