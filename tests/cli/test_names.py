"""Class names with terminal escape sequences or spreadsheet formulas."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAMES = ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "=1+2", "-2.5", "@x, y", "\u202eback", "plain"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of seven clearly distinct kinds."""
    folder = tmp_path_factory.mktemp("names")
    np.save(folder / "x.npy", np.tile(np.eye(7) * 50 + 1, (4, 1)))
    np.save(folder / "labels.npy", np.array(NAMES * 4))
    return folder


@pytest.fixture(scope="module")
def named(run: Callable[..., Any], data: Path) -> Path:
    run("fit", data / "x.npy", "--labels", data / "labels.npy", "--fields", 7, "-o", data / "m.tnesi", "-q")
    return data / "m.tnesi"


def labels_of(text: str) -> list[str]:
    return [row["label"] for row in csv.DictReader(text.splitlines())]


def in_terminal(*commands: tuple[Any, ...]) -> list[str]:
    """Return what each command writes to a terminal; one process runs them all, since starting one is slow."""
    script = (
        "import json, sys; from tnesi.cli.app import app\n"
        "for words in json.loads(sys.argv[1]): app(words, standalone_mode=False); print('END', flush=True)"
    )
    master, terminal = os.openpty()
    found: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(master, 2**16):
                found.append(part)
        except OSError:  # some systems report the end of a terminal as an error
            pass

    command = [sys.executable, "-c", script, json.dumps([[str(word) for word in words] for words in commands])]
    reader = threading.Thread(target=read)
    reader.start()
    try:
        subprocess.run(command, stdout=terminal, check=True, env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"})
    finally:
        os.close(terminal)
        reader.join()
        os.close(master)
    return b"".join(found).decode().split("END\r\n")[:-1]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_names_cannot_control_the_terminal(named: Path, data: Path) -> None:
    labels = ("--labels", data / "labels.npy")
    commands: list[tuple[Any, ...]] = [
        ("predict", named, data / "x.npy", "-o", "-", "-q"),
        ("predict", named, data / "x.npy", "-o", data / "p.csv", "-q"),
        ("evaluate", named, data / "x.npy", *labels, "-q"),
        ("info", named),
        ("fit", data / "x.npy", *labels, "--fields", 7, "-o", data / "m2.tnesi", "-q"),
    ]
    for words, printed in zip(commands, in_terminal(*commands), strict=True):
        assert "red" in printed, words
        assert not {c for c in printed if not c.isprintable()} - {"\r", "\n"}, words


def test_names_are_exact_in_files_and_pipes(run: Callable[..., Any], named: Path, data: Path) -> None:
    assert labels_of(run("predict", named, data / "x.npy", "-o", "-", "-q").stdout) == NAMES * 4
    run("predict", named, data / "x.npy", "-o", data / "p.csv")
    assert labels_of((data / "p.csv").read_text("utf-8")) == NAMES * 4


def test_formulas_are_escaped_on_request(run: Callable[..., Any], named: Path, data: Path) -> None:
    run("predict", named, data / "x.npy", "-o", data / "p.csv", "--escape-formulas")
    wanted = [f"'{name}" if name in ("=1+2", "@x, y") else name for name in NAMES]
    assert labels_of((data / "p.csv").read_text("utf-8")) == wanted * 4
    lines = (data / "p.csv").read_text("utf-8").splitlines(keepends=True)
    (data / "p.csv").write_text("".join(line for line in lines if "\x1b" not in line), "utf-8")  # not text
    told = run("evaluate", named, data / "x.npy", "--labels", data / "p.csv").stdout
    assert "Error 0.00 % on 20 rows" in told
