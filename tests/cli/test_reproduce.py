"""reproduce, report, tune and data on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tnesi.paper import RunFolder


@pytest.mark.slow
def test_reproduce_resumes_where_it_stopped(
    run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path
) -> None:
    words = ("reproduce", "digits-table", "--quick", "-o", tmp_path)
    said = run(*words).stdout
    assert "per class" in said
    assert "not comparable" in said
    records = tmp_path / "digits-table-quick" / "records.jsonl"
    whole = records.read_text().splitlines(keepends=True)
    assert len(whole) == 12
    before = _without_times(tmp_path)
    records.write_text("".join(whole[:5]) + whole[5][:20])
    told = run_json(*words)
    assert _without_times(tmp_path) == before
    again = records.read_text().splitlines(keepends=True)
    assert again[:5] == whole[:5]
    assert len(again) == 12
    summary = told["results"]["digits-table"]["summary"]
    assert [row["labels_per_class"] for row in summary] == [1, 2, 5, 10, 20, "all"]
    assert all(row["ours"]["runs"] == 2 for row in summary)
    assert (tmp_path / "digits-table-quick" / "report.html").stat().st_size > 10_000


def _without_times(folder: Path) -> list[str]:
    records = RunFolder(folder / "digits-table-quick").records
    return [str({key: value for key, value in r.items() if key != "seconds"}) for r in records]


@pytest.mark.slow
def test_the_same_seeds_give_the_same_records(run: Callable[..., Any], tmp_path: Path) -> None:
    for name in "ab":
        run("reproduce", "digits-table", "--quick", "--seeds", "3", "--runs", 1, "-o", tmp_path / name, "-q")
    assert _without_times(tmp_path / "a") == _without_times(tmp_path / "b")


@pytest.mark.slow
def test_labeling_methods(
    run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # otherwise the table header is split
    words = ("reproduce", "label-methods", "--quick", "-o", tmp_path)
    said = run(*words).stdout
    assert "auto minus best" in said
    assert "calibration error" in said
    folder = tmp_path / "label-methods-quick"
    assert len(RunFolder(folder).records) == 2 * 2 * 4
    lines = (folder / "summary.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 4
    assert "median" in lines[0]
    assert "| auto minus best |" in (folder / "summary.md").read_text()
    few = run_json(*words[:-1], tmp_path / "few", "--methods", "spreading,auto", "--tasks", "digits", "--runs", 1)
    assert {row["method"] for row in few["results"]["label-methods"]["summary"]} == {"spreading", "auto"}


@pytest.mark.slow
def test_report_can_be_written_elsewhere(run: Callable[..., Any], tmp_path: Path) -> None:
    run("reproduce", "digits-table", "--quick", "--runs", 1, "-o", tmp_path, "-q")
    run("report", tmp_path / "digits-table-quick", "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().lower().startswith("<!doctype html>")


def test_tune(run: Callable[..., Any], run_json: Callable[..., Any]) -> None:
    words = ["tune", "digits", "--labels-per-class", 8, "--splits", 2, "--fields", 80]
    words += ["--truncation", "5,10", "--row-sum", "250", "--threshold", "0.5,0.7"]
    told = run_json(*words)
    assert len(told["trials"]) == 4
    assert told["best"]["truncation"] in (5, 10)
    assert told["truncation_by_likelihood"] in (5, 10)
    assert (told["labels_training"], told["labels_validation"]) == (40, 40)
    assert "tnesi fit digits --truncation" in run(*words).stdout.replace("\n", " ")


def test_data(run: Callable[..., Any], run_json: Callable[..., Any]) -> None:
    names = [entry["name"] for entry in run_json("data", "list")["data"]]
    wanted = "digits mnist fashion-mnist emnist-digits emnist-letters nist-digits nist-letters 20newsgroups"
    assert set(names) == set(wanted.split())
    assert "8 x 8" in run("data", "info", "digits").stdout
