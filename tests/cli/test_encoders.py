"""Encoders on the command line: the choice, its message, and unreadable files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tnesi import load


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Forty pictures of bars, ten of them labeled, and two files that are not pictures."""
    rng, folder = np.random.default_rng(0), tmp_path / "pictures"
    for i in range(40):
        values = rng.integers(180, 220, (16, 16), dtype=np.uint8)
        at = int(rng.integers(2, 12))
        values[:, at : at + 3] = 20
        place = folder / ("upright", "lying")[i % 2] if i < 10 else folder
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values.T if i % 2 else values).save(place / f"{i:02}.png")
    (folder / "30.png").write_bytes((folder / "30.png").read_bytes()[:50])
    (folder / "notes.txt").write_text("bars")
    return folder


def test_files_that_cannot_be_read_are_listed(
    run: Callable[..., Any], run_json: Callable[..., Any], pictures: Path, tmp_path: Path
) -> None:
    told = run_json("fit", pictures, "-o", tmp_path / "m.tnesi", code=3)
    assert told["rows"] == 39
    assert [Path(problem.split()[0]).name for problem in told["skipped"]] == ["30.png", "notes.txt"]
    said = run("predict", tmp_path / "m.tnesi", pictures, "-o", tmp_path / "p.csv", code=3).stdout
    assert "2 unreadable files were skipped" in said
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert len(lines) == 40
    right = [
        line
        for line in lines[1:]
        if ("upright" in line.split(",", 2)[1]) == (int(Path(line.split(",")[-1]).stem) % 2 == 0)
    ]
    assert len(right) >= 37
    for command in (("fit", pictures), ("predict", tmp_path / "m.tnesi", pictures)):
        refused = run(*command, "-o", tmp_path / "none", "--strict", code=1).stderr
        assert "30.png is damaged" in refused
        assert "omit --strict" in refused
    assert not (tmp_path / "none").exists()


def test_the_encoder_is_a_choice(run: Callable[..., Any], pictures: Path, tmp_path: Path) -> None:
    for name in ("30.png", "notes.txt"):
        (pictures / name).unlink()
    run("fit", pictures, "--encoder", "none", "-o", tmp_path / "m.tnesi")
    assert not hasattr(load(tmp_path / "m.tnesi"), "steps")
    assert "Encoded 39 images" in run("fit", pictures, "--encoder", "images", "-o", tmp_path / "m.tnesi").stdout
    for option, said in (
        (("--encoder", "text"), "holds images, but TextEncoder encodes documents"),
        (("--encoder", "pixels"), "unknown --encoder pixels: choose one of auto, none, images, text, table, vectors"),
        (("--encoder", "table", "--embed", "x"), "--embed is for documents and images"),
    ):
        assert said in run("fit", pictures, *option, "-o", tmp_path / "n.tnesi", code=1).stderr
    assert not (tmp_path / "n.tnesi").exists()


def test_a_folder_without_any_picture(run: Callable[..., Any], pictures: Path, tmp_path: Path) -> None:
    run("fit", pictures, "-o", tmp_path / "m.tnesi", code=3)
    (tmp_path / "empty").mkdir()
    for i in range(3):
        (tmp_path / "empty" / f"{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    refused = run("predict", tmp_path / "m.tnesi", tmp_path / "empty", "-o", tmp_path / "p.csv", code=1).stderr
    assert "none of the 3 files can be read" in refused
    assert "0.png" in run("fit", tmp_path / "empty", "-o", tmp_path / "n.tnesi", code=1).stderr
    assert not (tmp_path / "p.csv").exists()


def test_counts_stay_as_they_are(run: Callable[..., Any], table: Path, tmp_path: Path) -> None:
    said = run("fit", table, "--label-column", "kind", "-o", tmp_path / "m.tnesi").stdout
    assert "Encoded" not in said
    assert "64 features" in said
