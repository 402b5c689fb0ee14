"""Interrupted learning, and data read block by block, on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import load
from tnesi.estimators import blocks as _blocks
from tnesi.execution import spool, store


def test_checkpoint_and_resume(run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path) -> None:
    words = ["fit", "digits", "--labels-per-class", 3, "--fields", 60, "-o", tmp_path / "m.tnesi"]
    state = ["--checkpoint", tmp_path / "state"]
    expected = run_json(*words)
    run(*words, *state, "--max-iter", 2)
    assert (tmp_path / "state" / "mixture-1.state").exists()
    resumed = run_json(*words, *state, "--resume")
    assert resumed["free_energy"] == expected["free_energy"]
    assert resumed["test"] == expected["test"]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A CSV file of 6,000 documents about two things; the first hundred have labels."""
    rng = np.random.default_rng(0)
    words = np.array(
        [["boat", "wave", "fish", "salt", "harbor", "sail"], ["rock", "goat", "snow", "path", "peak", "trail"]]
    )
    lines = [
        f'"{" ".join(rng.choice(words[i % 2], 12))} {i}",{("sea", "hill")[i % 2] if i < 100 else ""}'
        for i in range(6_000)
    ]
    (tmp_path / "documents.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return tmp_path / "documents.csv"


def test_resumed_documents_are_not_encoded_again(
    run: Callable[..., Any], run_json: Callable[..., Any], documents: Path, tmp_path: Path
) -> None:
    words = ["fit", documents, "--fields", 20, "-o", tmp_path / "m.tnesi"]
    expected = run_json(*words)
    probability = load(tmp_path / "m.tnesi").predict_proba(["boat wave", "snow"])
    state = ["--checkpoint", tmp_path / "state"]
    run(*words, *state, "--max-iter", 2)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "state" / "encoded").iterdir()}
    assert kept.keys() >= {"encoder.state", "encoded.json", "values", "columns", "lengths"}
    resumed = run_json(*words, *state, "--resume")
    assert resumed["free_energy"] == expected["free_energy"]
    np.testing.assert_array_equal(load(tmp_path / "m.tnesi").predict_proba(["boat wave", "snow"]), probability)
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "state" / "encoded").iterdir()} == kept
    refused = " ".join(run(*words, *state, "--resume", "--encoder", "table", code=1).stderr.split())
    assert "use the same --encoder, or pass another folder as --checkpoint" in refused
    (tmp_path / "state" / "encoded" / "encoder.state").write_bytes(b"")
    refused = " ".join(run(*words, *state, "--resume", code=1).stderr.split())
    assert "encoder.state is damaged" in refused
    assert "start over without --resume" in refused
    documents.write_text(documents.read_text().replace("boat", "ship", 1))
    run(*words, *state, "--max-iter", 2)
    documents.write_text(documents.read_text().replace("ship", "boat", 1))
    assert "has rows of other data" in " ".join(run(*words, *state, "--resume", code=1).stderr.split())


@pytest.mark.slow
def test_a_killed_run_resumes(run_json: Callable[..., Any], documents: Path, tmp_path: Path) -> None:
    big, state = tmp_path / "big.csv", tmp_path / "state"
    head, _, rows = documents.read_text().partition("\n")
    big.write_text(head + "\n" + rows * 10)
    words = ["fit", big, "--fields", 20, "--max-iter", 3, "-o", tmp_path / "m.tnesi"]
    killed = subprocess.Popen(
        [sys.executable, "-c", "from tnesi.cli import main; main()", *map(str, words), "--checkpoint", str(state)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while killed.poll() is None and not (state / "encoded" / "encoded.json").exists():
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    n_items = json.loads((state / "encoded" / "encoded.json").read_text())["n_items"]
    assert n_items > 0
    resumed = run_json(*words, "--checkpoint", state, "--resume")
    one = load(tmp_path / "m.tnesi").predict_proba(["boat wave", "snow"])
    assert resumed["free_energy"] == run_json(*words)["free_energy"]
    np.testing.assert_array_equal(load(tmp_path / "m.tnesi").predict_proba(["boat wave", "snow"]), one)


@pytest.mark.slow
def test_documents_on_a_cluster(run_json: Callable[..., Any], documents: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster

    words = ("fit", documents, "--fields", 20, "-o")
    local = run_json(*words, tmp_path / "local.tnesi")
    with LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as cluster:
        far = run_json(*words, tmp_path / "far.tnesi", "--dask", cluster.scheduler_address)
    assert far["free_energy"] == local["free_energy"]
    one, other = (load(tmp_path / f"{name}.tnesi") for name in ("local", "far"))
    np.testing.assert_array_equal(one[-1].mixture_.means_, other[-1].mixture_.means_)


def test_errors_are_in_the_words_of_the_command(run: Callable[..., Any], tmp_path: Path) -> None:
    words = ["fit", "digits", "--labels-per-class", 3, "--fields", 60, "-o", tmp_path / "m.tnesi"]
    assert "--resume needs the folder with the state: pass it as --checkpoint" in run(*words, "--resume", code=1).stderr
    state = ["--checkpoint", tmp_path / "state"]
    run(*words, *state, "--max-iter", 1)
    said = " ".join(run(*words, *state, "--resume", "--row-sum", 700, code=1).stderr.split())
    assert "a fit with different row_sum" in said


@pytest.mark.parametrize("kind", ["csv", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("parquet", "npy"))])
def test_large_files_are_read_block_by_block(
    run_json: Callable[..., Any], digits: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = digits
    place = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(place, X.astype(np.uint8))
    else:
        import pandas as pd

        frame = pd.DataFrame(X.astype(np.uint8), columns=[f"p{i}" for i in range(64)])
        frame.to_csv(place, index=False) if kind == "csv" else frame.to_parquet(place)
    np.savetxt(tmp_path / "labels.csv", np.where(np.arange(len(y)) < 200, y, -1), "%d")
    words = ["fit", place, "--labels", tmp_path / "labels.csv", "--fields", 50, "-o"]
    monkeypatch.setattr(store, "_GRAIN", 512)
    run_json(*words, tmp_path / "small.tnesi")
    for module in (spool, _blocks):
        monkeypatch.setattr(module, "IN_MEMORY", 1000)
    run_json(*words, tmp_path / "large.tnesi")
    small, large = (load(tmp_path / f"{name}.tnesi") for name in ("small", "large"))
    np.testing.assert_array_equal(small.predict_proba(X), large.predict_proba(X))
