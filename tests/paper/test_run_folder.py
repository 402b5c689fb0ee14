"""Run folders: no finished run is lost, no partial record is used."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi.data import DataError
from tnesi.paper.run_folder import RECORDS, RunFolder


def test_records_survive_a_cut_anywhere(tmp_path: Path) -> None:
    with RunFolder(tmp_path).writing() as folder:
        for run in range(3):
            folder.append({"run": run, "error": 1.5 * run})
    whole = (tmp_path / RECORDS).read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        (tmp_path / RECORDS).write_bytes(whole[:cut])
        complete = sum(end <= cut + 1 for end in ends)  # a record without its line end is complete too
        assert [record["run"] for record in RunFolder(tmp_path).records] == list(range(complete))
        assert (tmp_path / RECORDS).read_bytes() == whole[:cut]  # a reader changes nothing: a writer may be active
        with RunFolder(tmp_path).writing() as folder:
            folder.append({"run": 99})
        assert [record["run"] for record in RunFolder(tmp_path).records] == [*range(complete), 99]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with RunFolder(tmp_path).writing():
        with pytest.raises(ValueError, match="another process"), RunFolder(tmp_path).writing():
            pass
        assert RunFolder(tmp_path).records == []
    with RunFolder(tmp_path).writing() as folder:
        folder.append({"run": 0})


def configured(**changes: Any) -> dict[str, Any]:
    settings = {"row_sum": 900, "networks": {"a": {"prior_strength": 0}}}
    return {"name": "x", "quick": False, "settings": settings, "methods": [{"name": "a"}], **changes}


def test_other_settings_are_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path).writing() as folder:
        folder.configure(configured())
        folder.append({"run": 0})
        folder.configure(configured())
        for settings in ({"row_sum": 800}, {"row_sum": 900, "networks": {"a": {"prior_strength": 1}}}):
            with pytest.raises(ValueError, match="other settings"):
                folder.configure(configured(settings=settings))


def test_other_networks_are_added(tmp_path: Path) -> None:
    with RunFolder(tmp_path).writing() as folder:
        folder.configure(configured())
        folder.append({"run": 0})
        settings = {"row_sum": 900, "networks": {"b": {"prior_strength": 1}}}
        folder.configure(configured(settings=settings, methods=[{"name": "b"}]))
    found = RunFolder(tmp_path).configuration
    assert {method["name"] for method in found["methods"]} == {"a", "b"}
    assert set(found["settings"]["networks"]) == {"a", "b"}


def test_arrays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.arrays("none") is None
    folder.save_arrays("some", x=np.arange(3), names=np.array(["a", "b"]))
    found = folder.arrays("some")
    assert found is not None
    assert found["x"].tolist() == [0, 1, 2]
    assert found["names"].tolist() == ["a", "b"]
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(2**27))
    with pytest.raises(DataError):
        folder.arrays("bomb")


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not a run folder"):
        _ = RunFolder(tmp_path).configuration
    (tmp_path / "protocol.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        _ = RunFolder(tmp_path).configuration
    (tmp_path / "protocol.json").write_text(json.dumps([1]))
    with pytest.raises(ValueError, match="damaged"):
        _ = RunFolder(tmp_path).configuration
