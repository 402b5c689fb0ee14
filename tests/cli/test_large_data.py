"""Learning that survives interruptions, and data that are read block by block, on the command line."""

from __future__ import annotations

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


def test_errors_are_in_the_words_of_the_command(run: Callable[..., Any], tmp_path: Path) -> None:
    words = ["fit", "digits", "--labels-per-class", 3, "--fields", 60, "-o", tmp_path / "m.tnesi"]
    assert "--resume needs the folder with the state: pass it as --checkpoint" in run(*words, "--resume", code=1).stderr
    state = ["--checkpoint", tmp_path / "state"]
    run(*words, *state, "--max-iter", 1)
    said = " ".join(run(*words, *state, "--resume", "--row-sum", 170, code=1).stderr.split())
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
