"""Sentences about the results in a run folder."""

from __future__ import annotations

from dataclasses import fields, replace
from math import isnan
from typing import Any

from tnesi.data import DataError
from tnesi.paper.likelihood import wanted_curves
from tnesi.paper.protocol import MOST_RUNS, Method, Protocol, Task
from tnesi.paper.summary import behind_best, by_setting
from tnesi.paper.table import record_key, wanted_runs
from tnesi.paper.weights import wanted_networks

Row = dict[str, Any]

CLEAR = 2.0
"""Differences of more joint standard errors than this are called clear."""

CLOSE = 0.01
"""Log-likelihoods that differ by less than this, in nats per row, are called close."""

QUICK = "A quick test with fewer rows, fields and runs, not comparable with the paper."


SOLVERS = {
    "em": "truncated variational EM, then self-labeling at a hundred times the published rate",
    "hebbian": "the published online rule",
    "hebbian-partial": "the published online rule with partial E-steps",
}
"""Description of the solvers."""
SHORT_SOLVERS = {"em": "EM", "hebbian": "published rule", "hebbian-partial": "published rule, partial E-steps"}


def measured(configuration: Row) -> str:
    """Return solver, machine, date, version and commit of the results, as far as known."""
    machine = configuration.get("machine", {})
    solver = SHORT_SOLVERS.get(configuration.get("solver", ""), "")
    version = f"tnesi {machine['tnesi']}" if machine.get("tnesi") else ""
    commit = f"commit {machine['commit']}" if machine.get("commit") else ""
    parts = [solver, machine.get("processor", ""), machine.get("date", ""), version, commit]
    return ", ".join(str(part) for part in parts if part)


def banners(configuration: Row, records: list[Row]) -> list[str]:
    """Return the notices at the top of the page."""
    found = [QUICK] if configuration.get("quick") else []
    found += [f"{note.rstrip('.')}." for note in configuration.get("notes", ())] + left_out(configuration)
    done, wanted = progress(configuration, records)
    if done < wanted:
        found.append(f"Unfinished: {done:,} of {wanted:,} runs are done. Run the same command to resume.")
    return found


def left_out(configuration: Row) -> list[str]:
    """Return a line for each task whose data are not on this machine."""
    found = configuration.get("data", {})
    return [
        f"{task['title']} is omitted because its data is not on this machine: tnesi data fetch {task['data'][-1]}"
        for task in configuration["tasks"]
        if not configuration.get("fetch", True) and task["name"] not in found
    ]


def progress(configuration: Row, records: list[Row]) -> tuple[int, int]:
    """Return how many of the protocol's runs are done, and how many there are."""
    given = {field.name: configuration[field.name] for field in fields(Protocol) if field.name in configuration}
    given["tasks"] = tuple(Task(**task) for task in configuration["tasks"])
    given["methods"] = tuple(Method(**method) for method in configuration.get("methods", ()))
    protocol = Protocol(**given)
    if not 0 < protocol.runs * protocol.one_label_factor <= 100 * MOST_RUNS:
        raise DataError(f"the run folder is damaged: invalid number of runs {protocol.runs}")
    done: set[Any]
    wanted: set[Any]
    if protocol.kind == "labels":
        protocol = replace(protocol, tasks=tuple(t for t in protocol.tasks if t.name in configuration.get("data", {})))
    if protocol.kind in ("table", "labels"):
        done, wanted = {record_key(record) for record in records}, set(wanted_runs(protocol))
    elif protocol.kind == "likelihood":
        done = {(record["truncation"], record["seed"]) for record in records}
        wanted = set(wanted_curves(protocol))
    else:
        done = {(record["task"], record["seed"]) for record in records}
        wanted = {(task.name, seed) for task, seed in wanted_networks(protocol)}
    return len(done & wanted), len(wanted)


def verdict(row: Row) -> str:
    """Compare our error with that of the paper in one setting; lower is better."""
    if row["paper"] is None or not row["comparable"]:
        return ""
    distance = row["distance"]
    if isnan(distance):
        return "▼ lower" if row["ours"]["mean"] <= row["paper"]["mean"] else "▲ higher"
    return "≈ equal" if abs(distance) <= CLEAR else "▼ better" if distance < 0 else "▲ worse"


def summary_of_table(configuration: Row, records: list[Row], rows: list[Row]) -> str:
    if not rows:
        return "No run has finished yet."
    methods = list(dict.fromkeys(row["method"] for row in rows))
    said = [f"{_count(len(records), 'run')} of {_and(methods)}."]
    for task in configuration["tasks"]:
        for method in methods:
            mine = [row for row in rows if (row["task"], row["method"]) == (task["name"], method)]
            if mine:
                said.append(_result(f"{task['title']}, {method}", mine))
    return " ".join(said)


def _result(name: str, rows: list[Row]) -> str:
    published = [row for row in rows if row["paper"] and row["comparable"]]
    if not published:
        first, last = rows[0], rows[-1]
        text = f"{name}: a mean test error of {first['ours']['mean']:.2f} % with {_count(first['n_labels'], 'label')}"
        return text + (f", {last['ours']['mean']:.2f} % with {last['n_labels']:,}." if last is not first else ".")
    low = [row for row in published if row["ours"]["mean"] <= row["paper"]["mean"]]
    high = [row for row in published if row["ours"]["mean"] > row["paper"]["mean"]]
    parts = []
    if low:
        parts.append(f"at or below the paper's error {_where(low, published)}{_clearly(low)}")
    if high:
        parts.append(f"above it {_where(high, published)}{_clearly(high)}")
    return f"{name}: ours is {', and '.join(parts)}."


def _where(rows: list[Row], every: list[Row]) -> str:
    if len(rows) == len(every):
        return f"for every number of labels ({_numbers(rows)})"
    return f"with {_numbers(rows)} labels"


def _numbers(rows: list[Row]) -> str:
    return _and([f"{row['n_labels']:,}" for row in rows])


def _clearly(rows: list[Row]) -> str:
    clear = [row for row in rows if abs(row["distance"]) > CLEAR]
    if not clear:
        return ""
    if len(clear) == len(rows):
        return " (clearly)"
    return f" (clearly: {_numbers(clear)})"


def summary_of_labels(configuration: Row, records: list[Row], rows: list[Row]) -> str:
    """State the largest difference between "auto" and the best other method."""
    if not rows:
        return "No run has finished yet."
    said = [f"{_count(len(records), 'run')} of {_and(list(dict.fromkeys(row['method'] for row in rows)))}."]
    behind = {key: value for key, of in by_setting(rows).items() if (value := behind_best(of)) is not None}
    if behind:
        task, labels = max(behind, key=lambda key: behind[key])
        most = behind[task, labels]
        where = f"{title_of(configuration, task)} with {_count(int(labels), 'label')} per class"
        said.append(
            f"In {_count(len(behind), 'setting')} auto is at most {most:.2f} points above the best other method "
            f"({where})."
            if most > 0
            else f"In all of {_count(len(behind), 'setting')} auto is at least as good as the best other method."
        )
    return " ".join(said)


def summary_of_likelihood(rows: list[Row]) -> str:
    """State which truncation has the highest likelihood and which the lowest error."""
    if not rows:
        return "No run has finished yet."
    seeds = max(row["free_energy"]["runs"] for row in rows)
    said = [f"{_count(len(rows), 'degree')} of truncation, {_count(seeds, 'seed')} each."]
    seen = [row for row in rows if "log_likelihood" in row]
    if seen:
        best = max(seen, key=lambda row: row["log_likelihood"]["mean"])
        said.append(
            f"After {best['iterations']} iterations, C' = {best['truncation']} has the highest log-likelihood: "
            f"{best['log_likelihood']['mean']:.3f} nats per row"
        )
        highest = best["log_likelihood"]["mean"]
        near = [row for row in seen if row is not best and highest - row["log_likelihood"]["mean"] < CLOSE]
        close = _and([str(row["truncation"]) for row in near]) if near else ""
        said[-1] += f". C' = {close} {'is' if len(near) == 1 else 'are'} within {CLOSE} nats of it." if near else "."
    tested = [row for row in rows if "error" in row]
    if tested:
        least = min(tested, key=lambda row: row["error"]["mean"])
        said.append(f"C' = {least['truncation']} has the lowest test error, {least['error']['mean']:.2f} %.")
    return " ".join(said)


def summary_of_weights(configuration: Row, records: list[Row]) -> str:
    if not records:
        return "No run has finished yet."
    learned = [f"{title_of(configuration, r['task'])} from {_count(r['n_labels'], 'label')}" for r in records]
    return (
        f"Fields learned of {_and(learned)}. Each picture is one field of the first layer, a random choice ordered by "
        "class; the column next to it shows its classes, the first class at the top."
    )


def title_of(configuration: Row, task: str) -> str:
    """Return the title of a task."""
    return next((str(known["title"]) for known in configuration["tasks"] if known["name"] == task), task)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _and(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
