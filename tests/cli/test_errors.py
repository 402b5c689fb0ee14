"""Errors are single lines (or JSON) with exit codes; help is fast."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import load

TNESI = [sys.executable, "-c", "from tnesi.cli import main; main()"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "no-such-thing", "-o", "{}/m.tnesi"), "no-such-thing"),
        (("fit", "digits", "--encoder", "none", "-o", "{}/missing/m.tnesi"), "there is no folder"),
        (("fit", "digits", "--encoder", "none", "--fields", "many", "-o", "{}/m.tnesi"), "--fields many"),
        (("fit", "digits", "--encoder", "none", "--row-sum", "x", "-o", "{}/m.tnesi"), "--row-sum x"),
        (("fit", "digits", "--encoder", "none", "--dask", "wrong:x", "-o", "{}/m.tnesi"), "no Dask scheduler responds"),
        (
            ("fit", "digits", "--encoder", "none", "--row-sum", "10", "-o", "{}/m.tnesi"),
            "--row-sum=10 must be larger than the number of features (64)",
        ),
        (
            ("fit", "digits", "--encoder", "none", "--fields", "99999", "-o", "{}/m.tnesi"),
            "--fields=99999 exceeds",
        ),
        (
            ("fit", "digits", "--encoder", "none", "--fields", "99999", "-o", "{}/m.tnesi"),
            "pass fewer, or --fields auto",
        ),
        (("fit", "digits", "--encoder", "none", "--labeling", "best", "-o", "{}/m.tnesi"), "--labeling='best'"),
        (
            ("fit", "digits", "--encoder", "none", "--threshold", "0.7", "-o", "{}/m.tnesi"),
            "--threshold needs --labeling self-labeling",
        ),
        (
            (
                "fit",
                "digits",
                "--encoder",
                "none",
                "--threshold",
                "2",
                "--labeling",
                "self-labeling",
                "-o",
                "{}/m.tnesi",
            ),
            "--threshold=2",
        ),
        (
            (
                "fit",
                "digits",
                "--encoder",
                "none",
                "--unknown-classes",
                "1",
                "--labeling",
                "supervised",
                "-o",
                "{}/m.tnesi",
            ),
            "--unknown-classes=1 needs clusters, since unknown classes are found as clusters: pass --labeling clusters",
        ),
        (("predict", "{}/none.tnesi", "digits", "-o", "{}/p.csv"), "none.tnesi"),
        (("info", "{}"), "{}"),
        (("tune", "digits", "--truncation", "a", "--labels-per-class", "4"), "--truncation a"),
        (("reproduce", "mnist-tabel"), "choose one of mnist-table"),
        (("reproduce", "digits-table", "--seeds", "1-"), "--seeds 1-"),
        (("reproduce", "digits-table", "--solver", "adam"), "--solver adam"),
        (("report", "{}"), "not a run folder"),
        (("data", "info", "mnits"), "mnist"),
    ],
)
def test_errors_say_what_is_wrong(run: Callable[..., Any], words: Any, said: str, tmp_path: Path) -> None:
    words = [word.format(tmp_path) for word in words]
    failed = run(*words, code=1)
    assert said.format(tmp_path) in failed.stderr.replace("\n", " ")
    assert "Traceback" not in failed.output
    machine = run(*words, "--json", code=1)
    assert said.format(tmp_path) in json.loads(machine.stdout)["error"]
    assert not list(tmp_path.glob("*.tnesi"))


def test_a_model_of_another_kind_of_data(run: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 3)))
    assert "3 features" in run("predict", model, tmp_path / "x.npy", "-o", tmp_path / "p.csv", code=1).stderr
    np.save(tmp_path / "x.npy", -np.ones((5, 64)))
    failed = run("predict", model, tmp_path / "x.npy", "-o", tmp_path / "p.csv", code=1)
    assert "Negative values" in failed.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]


def test_an_unknown_file_is_not_a_model(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "m.tnesi").write_bytes(b"\x80\x04cos\nsystem\n")
    assert "m.tnesi" in run("info", tmp_path / "m.tnesi", code=1).stderr


def test_usage_errors_have_their_own_code(run: Callable[..., Any]) -> None:
    run("fit", code=2)
    run("frobnicate", code=2)


def test_version_and_help(run: Callable[..., Any]) -> None:
    assert run("--version").stdout.startswith("tnesi 0.")
    for command in ("fit", "predict", "evaluate", "tune", "info", "show", "sample", "reproduce", "report", "data"):
        assert command in run("--help").stdout
        assert "Usage" in run(command, "--help").stdout


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from tnesi.cli.app import app; print([m for m in ('numpy', 'sklearn') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.slow
def test_progress_goes_to_the_error_stream(model: Path) -> None:
    words = [*TNESI, "evaluate", str(model), "digits", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == 400


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_learned(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.poisson(5, (40_000, 300)).astype(np.uint8))  # about 16 iterations of 0.5 s or more
    words = [*TNESI, "fit", "x.npy", "-o", "m.tnesi", "--fields", "6000", "--row-sum", "900", "--checkpoint", "state"]
    state, saved = tmp_path / "state" / "mixture-1.state", set[int]()
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        while len(saved) < 3 and process.poll() is None:  # after iterations 0, 1 and 2
            with suppress(FileNotFoundError):
                saved.add(state.stat().st_mtime_ns)
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        said, told = process.communicate(timeout=400)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, told
    assert "interrupted" in told
    assert "Written to" in said
    assert load(tmp_path / "m.tnesi").n_iter_ >= 1
