"""Tables of a run folder as text, for the terminal and the page."""

from __future__ import annotations

from math import isnan
from typing import Any, NamedTuple

from tnesi.experiments.run_folder import RunFolder
from tnesi.experiments.summary import summarise


class TextTable(NamedTuple):
    title: str
    columns: list[str]
    rows: list[list[str]]


def plus_minus(summary: dict[str, Any] | None) -> str:
    """Return mean ± standard error (standard deviation), as the paper writes it."""
    if summary is None:
        return ""
    text = f"{summary['mean']:.2f}"
    if summary["sem"] is not None and not isnan(summary["sem"]):
        text += f" ± {summary['sem']:.2f}"
    if summary["std"] is not None and not isnan(summary["std"]):
        text += f" ({summary['std']:.2f})"
    return text


def text_tables(folder: RunFolder) -> list[TextTable]:
    """Return the results as tables, one per task."""
    configuration, found = folder.configuration, summarise(folder)
    if configuration["kind"] == "likelihood":
        columns = ["C'", "iterations", "free energy", "log-likelihood", "test error %"]
        rows = [
            [str(row["truncation"]), str(row["iterations"])]
            + [_value(row.get(key)) for key in ("free_energy", "log_likelihood", "error")]
            for row in found
        ]
        return [TextTable(configuration["title"], columns, rows)]
    if configuration["kind"] == "weights":
        rows = [[row["task"], str(row["n_labels"]), row["model"]] for row in found]
        return [TextTable(configuration["title"], ["task", "labels", "model"], rows)]
    return [_errors(task, [row for row in found if row["task"] == task["name"]]) for task in configuration["tasks"]]


def _value(summary: dict[str, Any] | None) -> str:
    return "" if summary is None else f"{summary['mean']:.3f}"


def _errors(task: dict[str, Any], found: list[dict[str, Any]]) -> TextTable:
    with_paper = any(row["paper"] for row in found)
    columns = ["network", "per class", "labels", "error % ± SEM (STD)", "runs"]
    columns += ["paper", "difference / SE"] if with_paper else []
    rows = []
    for row in found:
        cells = [row["method"], str(row["labels_per_class"]), f"{row['n_labels']:,}", plus_minus(row["ours"])]
        cells.append(str(row["ours"]["runs"]))
        if with_paper:
            distance = row["distance"]
            cells += [plus_minus(row["paper"]), "" if isnan(distance) else f"{distance:+.1f}"]
        rows.append(cells)
    return TextTable(task["title"], columns, rows)
