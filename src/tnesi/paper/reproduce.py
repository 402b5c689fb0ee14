"""Reproduce a table or figure of the paper in a folder, resuming earlier runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tnesi.data import Data, DataNotFoundError, load_named
from tnesi.estimators.stored_parameters import plain_parameters
from tnesi.paper.labeling import possible_labels, run_labeling
from tnesi.paper.likelihood import run_likelihood
from tnesi.paper.machine import machine
from tnesi.paper.network import build
from tnesi.paper.protocol import Protocol, Task
from tnesi.paper.run_folder import CONFIGURATION, RunFolder, settings_difference
from tnesi.paper.table import record_key, run_table, wanted_runs
from tnesi.paper.variants import vary
from tnesi.paper.weights import run_weights
from tnesi.system.progress import Progress, tell_parts

_RUNNERS = {"table": run_table, "labels": run_labeling, "likelihood": run_likelihood, "weights": run_weights}


def reproduce(protocol: Protocol, folder: str | Path, progress: Progress | None = None) -> RunFolder:
    """Make the missing runs of a protocol.

    Parameters
    ----------
    protocol : Protocol
        See `read_protocol`.
    folder : path
        Created if needed. Each run is saved as it finishes; call again to resume after an interruption.
    progress : Progress, optional
        Receives progress messages.

    Returns
    -------
    folder : RunFolder

    Examples
    --------
    >>> import tempfile
    >>> from tnesi.paper import read_protocol, reproduce
    >>> found = reproduce(read_protocol("digits-table", runs=1, quick=True), tempfile.mkdtemp())
    >>> sorted({record["labels_per_class"] for record in found.records if record["labels_per_class"] != "all"})
    [1, 2, 5, 10, 20]
    """
    progress = progress or Progress()
    data_of = {task.name: data for task in protocol.tasks if (data := _find(protocol, task, progress))}
    if protocol.kind == "labels":
        protocol = replace(protocol, tasks=tuple(_possible(protocol, task, data_of) for task in protocol.tasks))
    networks = {method.name: plain_parameters(build(protocol, method, 0)) for method in protocol.methods}
    fingerprints = {name: data.fingerprint for name, data in data_of.items()}
    configuration = protocol.as_json() | {
        "settings": protocol.settings() | {"networks": networks, "data": fingerprints},
        "machine": machine(),
        "notes": sorted({data.note for data in data_of.values() if data.note}),
        "data": {name: data.name for name, data in data_of.items()},
        "sizes": {name: [len(d.rows), len(d.test.rows) if d.test else 0] for name, d in data_of.items()},
    }
    with RunFolder(folder).writing() as runs:
        runs.configure(configuration)
        if protocol.same_runs_as:
            _adopt(protocol, runs, Path(folder).parent / protocol.folder_name(protocol.same_runs_as))
        found = tuple(task for task in protocol.tasks if task.name in data_of)
        _RUNNERS[protocol.kind](replace(protocol, tasks=found), runs, data_of, progress)
    return runs


def _find(protocol: Protocol, task: Task, progress: Progress) -> Data | None:
    """Return the first data set of a task on this machine, else download the last one if allowed."""
    for name in task.data:
        try:
            return vary(load_named(name, download=False, progress=tell_parts(progress)), task.variant)
        except DataNotFoundError:
            continue
    if not protocol.fetch:
        return None
    progress.tell(f"downloading {task.data[-1]}")
    return vary(load_named(task.data[-1], progress=tell_parts(progress)), task.variant)


def _possible(protocol: Protocol, task: Task, data_of: dict[str, Data]) -> Task:
    """Return a task without numbers of labels that its classes do not have."""
    if task.name not in data_of:
        return task
    return replace(task, labels_per_class=possible_labels(protocol, task, data_of[task.name].y))


def _adopt(protocol: Protocol, runs: RunFolder, neighbor: Path) -> None:
    """Copy the runs of another protocol with the same settings."""
    if not (neighbor / CONFIGURATION).exists():
        return
    other = RunFolder(neighbor)
    if settings_difference(other.configuration.get("settings", {}), runs.configuration["settings"]):
        return
    missing = set(wanted_runs(protocol)) - {record_key(record) for record in runs.records}
    for record in other.records:
        if record_key(record) in missing:
            runs.append(record)
