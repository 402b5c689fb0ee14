"""Summary of the records of a run folder, compared with the paper."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from math import nan
from statistics import fmean, median
from typing import Any

from tnesi.paper.protocol import Labels, paper_values
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.statistics import Summary, exchanged_classes


def summarize(folder: RunFolder) -> list[dict[str, Any]]:
    """Return a row per setting.

    Of a table: task, method, labels per class and in total, ``ours`` and ``paper`` (mean, sem, std, runs), the number
    of ``mixtures``, and of runs in which two classes have ``exchanged`` names, or a class is mostly taken for another
    one (``confused``); and ``distance``, ours minus the paper's mean in units of the joint standard error. That is for
    results that are ``comparable``: not those of a quick look, nor of other data than the paper's.

    Of labeling methods: the same without the paper, with the ``median``, the means of the calibration error, of the
    probability of the predicted classes (``confidence``) and of the seconds of the second layer, and how often which
    method was ``chosen``. Of a likelihood: truncation, and ``free_energy``, ``log_likelihood``, that of
    the test rows (``held_out``) and ``error`` after the last iteration. Of weights: the records.
    """
    kind = folder.configuration.get("kind")
    if kind == "table":
        return _table(folder)
    if kind == "labels":
        return _labels(folder)
    if kind == "likelihood":
        return _likelihood(folder)
    return [{key: record[key] for key in ("task", "seed", "n_labels", "model")} for record in folder.records]


def by_setting(rows: list[dict[str, Any]]) -> dict[tuple[str, Labels], dict[str, dict[str, Any]]]:
    """Return the rows of each method by task and labels per class."""
    found: dict[tuple[str, Labels], dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["task"], row["labels_per_class"]), {})[row["method"]] = row
    tasks = list(dict.fromkeys(task for task, _ in found))
    return {key: found[key] for key in sorted(found, key=lambda key: tasks.index(key[0]))}


def behind_best(methods: dict[str, dict[str, Any]]) -> float | None:
    """Return the mean error of "auto" minus that of the best other method; None if one is missing."""
    others = [row["ours"]["mean"] for name, row in methods.items() if name != "auto"]
    return float(methods["auto"]["ours"]["mean"] - min(others)) if others and "auto" in methods else None


def _settings(folder: RunFolder) -> dict[tuple[str, str, Labels], list[dict[str, Any]]]:
    """Return the records by task, method and labels per class, in the order of the protocol."""
    configuration = folder.configuration
    order: list[Labels] = configuration["labels_per_class"]
    settings: dict[tuple[str, str, Labels], list[dict[str, Any]]] = {}
    for record in folder.records:
        settings.setdefault((record["task"], record["method"], record["labels_per_class"]), []).append(record)
    tasks = [task["name"] for task in configuration["tasks"]]
    methods = list(dict.fromkeys(method for _, method, _ in settings))
    keys = sorted(settings, key=lambda k: (tasks.index(k[0]), methods.index(k[1]), order.index(k[2])))
    return {key: settings[key] for key in keys}


def _labels(folder: RunFolder) -> list[dict[str, Any]]:
    rows = []
    for (task, method, labels), records in _settings(folder).items():
        errors = [record["error"] for record in records]
        rows.append(
            {
                "task": task,
                "method": method,
                "labels_per_class": labels,
                "n_labels": records[0]["n_labels"],
                "ours": asdict(Summary.of(errors)),
                "median": median(errors),
                "calibration_error": fmean(record["calibration_error"] for record in records),
                "confidence": fmean(record["confidence"] for record in records),
                "seconds": fmean(record["seconds"]["second layer"] for record in records),
                "chosen": dict(Counter(record["chosen"] for record in records).most_common()),
            }
        )
    return rows


def _table(folder: RunFolder) -> list[dict[str, Any]]:
    configuration = folder.configuration
    paper = {
        (row["task"], row["method"], row["labels_per_class"]): row
        for row in paper_values(configuration.get("paper", ""))
    }
    published = {method["name"]: method.get("paper") or method["name"] for method in configuration["methods"]}
    used = configuration.get("data", {})
    same_data = {task["name"] for task in configuration["tasks"] if used.get(task["name"]) == task["data"][0]}
    rows = []
    for (task, method, labels), records in _settings(folder).items():
        ours = Summary.of([record["error"] for record in records], [record["seed"] for record in records])
        lost = [exchanged_classes(record["confusion"]) for record in records]
        in_paper = published.get(method, method)
        comparable = task in same_data and not configuration.get("quick")
        theirs = _published(paper.get((task, in_paper, str(labels))))
        rows.append(
            {
                "task": task,
                "method": method,
                "labels_per_class": labels,
                "n_labels": records[0]["n_labels"],
                "ours": asdict(ours),
                "mixtures": len({record["seed"] for record in records}),
                "exchanged": sum(pairs > 0 for pairs, _ in lost),
                "confused": sum(classes > 0 for _, classes in lost),
                "paper": None if theirs is None else asdict(theirs),
                "paper_method": in_paper,
                "comparable": comparable,
                "distance": ours.distance(theirs) if theirs and comparable else nan,
            }
        )
    return rows


def _published(row: dict[str, str] | None) -> Summary | None:
    if row is None:
        return None
    number = {key: float(row[key]) if row[key] else nan for key in ("mean", "sem", "std")}
    return Summary(**number, runs=int(row["runs"] or 0))


def _likelihood(folder: RunFolder) -> list[dict[str, Any]]:
    rows = []
    for truncation in folder.configuration["truncations"]:
        ends = [r["curve"][-1] for r in folder.records if r["truncation"] == truncation]
        if ends:
            keys = [
                key for key in ("free_energy", "log_likelihood", "held_out", "error") if all(key in end for end in ends)
            ]
            rows.append(
                {"truncation": truncation, "iterations": ends[0]["iteration"]}
                | {key: asdict(Summary.of([end[key] for end in ends])) for key in keys}
            )
    return rows
