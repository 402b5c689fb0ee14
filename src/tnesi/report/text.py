"""Tables of a run folder as text: for the terminal, the page, and files."""

from __future__ import annotations

import csv
import io
from math import isnan
from typing import Any, NamedTuple

from tnesi.paper.run_folder import RunFolder
from tnesi.paper.summary import behind_best, by_setting, summarize
from tnesi.report.words import measured
from tnesi.system.files import replacing


class TextTable(NamedTuple):
    title: str
    columns: list[str]
    rows: list[list[str]]


def plus_minus(summary: dict[str, Any] | None) -> str:
    """Return mean ± standard error (standard deviation), as the paper writes it."""
    text = mean_error(summary)
    if summary is not None and summary["std"] is not None and not isnan(summary["std"]):
        text += f" ({summary['std']:.2f})"
    return text


def mean_error(summary: dict[str, Any] | None) -> str:
    """Return mean ± standard error."""
    if summary is None:
        return ""
    text = f"{summary['mean']:.2f}"
    if summary["sem"] is not None and not isnan(summary["sem"]):
        text += f" ± {summary['sem']:.2f}"
    return text


def text_tables(folder: RunFolder) -> list[TextTable]:
    """Return the results as tables: of errors, one per task."""
    configuration, found = folder.configuration, summarize(folder)
    if configuration["kind"] == "likelihood":
        columns = ["C'", "iterations", "free energy", "log-likelihood", "held out", "test error %"]
        rows = [
            [str(row["truncation"]), str(row["iterations"])]
            + [_value(row.get(key)) for key in ("free_energy", "log_likelihood", "held_out", "error")]
            for row in found
        ]
        return [TextTable(configuration["title"], columns, rows)]
    if configuration["kind"] == "labels":
        return _methods(configuration, found)
    if configuration["kind"] == "weights":
        rows = [[row["task"], str(row["n_labels"]), row["model"]] for row in found]
        return [TextTable(configuration["title"], ["task", "labels", "model"], rows)]
    return [_errors(task, [row for row in found if row["task"] == task["name"]]) for task in configuration["tasks"]]


def write_tables(folder: RunFolder) -> None:
    """Write the tables to ``summary.md``, and all values to ``summary.csv``, with a line per setting."""
    lines = []
    for title, columns, rows in text_tables(folder):
        lines += [f"## {title}", ""]
        lines += ["| " + " | ".join(cells) + " |" for cells in (columns, ["---"] * len(columns), *rows)]
        lines.append("")
    lines += [f"{measured(folder.configuration)}.", ""]
    with replacing(folder.path / "summary.md") as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    settings = [_flat(row) for row in summarize(folder)]
    columns = list(dict.fromkeys(key for row in settings for key in row))
    content = io.StringIO(newline="")
    writer = csv.DictWriter(content, columns)
    writer.writeheader()
    writer.writerows(settings)
    with replacing(folder.path / "summary.csv") as temporary:
        temporary.write_bytes(content.getvalue().encode("utf-8", "replace"))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Flatten a row of a summary: the mean of ``ours`` becomes ``ours_mean``."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        flat |= {f"{key}_{part}": one for part, one in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def _methods(configuration: dict[str, Any], found: list[dict[str, Any]]) -> list[TextTable]:
    """Return a table of errors with a column per labeling method, and one about "auto"."""
    titles = {task["name"]: task["title"] for task in configuration["tasks"]}
    methods = [method["name"] for method in configuration["methods"]]
    errors, autos = [], []
    for (task, labels), of in by_setting(found).items():
        head = [titles[task], str(labels)]
        behind, auto = behind_best(of), of.get("auto")
        cells = [mean_error(of[method]["ours"] if method in of else None) for method in methods]
        errors.append([*head, *cells, "" if behind is None else f"{behind:+z.2f}"])
        if auto:
            chosen = ", ".join(f"{name} {n}" for name, n in auto["chosen"].items())
            numbers = [f"{auto['confidence']:.1f}", f"{auto['calibration_error']:.2f}", f"{auto['seconds']:.2f}"]
            autos.append([*head, *numbers, chosen])
    known = ["task", "per class"]
    last = ["mean top probability %", "calibration error %", "seconds", "chosen (runs)"]
    tables = [TextTable("Test error %, mean ± SEM", [*known, *methods, "auto minus best"], errors)]
    return [*tables, TextTable("Methods chosen by auto", [*known, *last], autos)] if autos else tables


def _value(summary: dict[str, Any] | None) -> str:
    return "" if summary is None else f"{summary['mean']:.3f}"


def _errors(task: dict[str, Any], found: list[dict[str, Any]]) -> TextTable:
    with_paper = any(row["paper"] for row in found)
    columns = ["network", "per class", "labels", "error % ± SEM (STD)", "runs", "confused"]
    columns += ["paper", "difference / SE"] if with_paper else []
    rows = []
    for row in found:
        cells = [row["method"], str(row["labels_per_class"]), f"{row['n_labels']:,}", plus_minus(row["ours"])]
        cells += [str(row["ours"]["runs"]), str(row["confused"])]
        if with_paper:
            distance = row["distance"]
            cells += [plus_minus(row["paper"]), "" if isnan(distance) else f"{distance:+.1f}"]
        rows.append(cells)
    return TextTable(task["title"], columns, rows)
