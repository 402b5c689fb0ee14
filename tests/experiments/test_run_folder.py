"""Run folders: nothing that was finished is lost, nothing half-written is believed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tnesi.experiments.run_folder import RECORDS, RunFolder


def test_records_survive_a_cut_anywhere(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for run in range(3):
        folder.append({"run": run, "error": 1.5 * run})
    whole = (tmp_path / RECORDS).read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        (tmp_path / RECORDS).write_bytes(whole[:cut])
        found = RunFolder(tmp_path)
        complete = sum(end <= cut + 1 for end in ends)  # a record without its line end is complete too
        assert [record["run"] for record in found.records] == list(range(complete))
        found.append({"run": 99})
        assert [record["run"] for record in RunFolder(tmp_path).records] == [*range(complete), 99]


def test_other_settings_are_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.configure({"name": "a", "settings": {"norm": 900}, "quick": False})
    folder.append({"run": 0})
    RunFolder(tmp_path).configure({"name": "a", "settings": {"norm": 900}, "quick": False})
    with pytest.raises(ValueError, match="other settings"):
        RunFolder(tmp_path).configure({"name": "a", "settings": {"norm": 800}, "quick": False})


def test_arrays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.arrays("none") is None
    folder.save_arrays("some", x=np.arange(3), names=np.array(["a", "b"]))
    found = folder.arrays("some")
    assert found is not None
    assert found["x"].tolist() == [0, 1, 2]
    assert found["names"].tolist() == ["a", "b"]


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not a run folder"):
        _ = RunFolder(tmp_path).configuration
    (tmp_path / "protocol.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        _ = RunFolder(tmp_path).configuration
    (tmp_path / "protocol.json").write_text(json.dumps([1]))
    with pytest.raises(ValueError, match="damaged"):
        _ = RunFolder(tmp_path).configuration
