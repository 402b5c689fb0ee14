"""Reproduce a table or figure of the paper: protocol, data, runs, in a folder that can be continued."""

from __future__ import annotations

from pathlib import Path

from tnesi._progress import Progress, tell_parts
from tnesi.data import Data, DataNotFoundError, load_named
from tnesi.experiments.likelihood import run_likelihood
from tnesi.experiments.machine import machine
from tnesi.experiments.network import build
from tnesi.experiments.protocol import Protocol, Task
from tnesi.experiments.run_folder import CONFIGURATION, RunFolder, settings_difference
from tnesi.experiments.table import record_key, run_table, wanted_runs
from tnesi.experiments.weights import run_weights

_RUNNERS = {"table": run_table, "likelihood": run_likelihood, "weights": run_weights}


def reproduce(protocol: Protocol, folder: str | Path, progress: Progress | None = None) -> RunFolder:
    """Make the runs of a protocol that the folder lacks.

    Parameters
    ----------
    protocol : Protocol
        See `read_protocol`.
    folder : path
        Created if need be. A record per run is appended as it finishes: call again to go on after an
        interruption.
    progress : Progress, optional
        Hears how far it is.

    Returns
    -------
    folder : RunFolder

    Examples
    --------
    >>> import tempfile
    >>> from tnesi.experiments import read_protocol, reproduce
    >>> found = reproduce(read_protocol("digits-table", runs=1, quick=True), tempfile.mkdtemp())
    >>> sorted({record["labels_per_class"] for record in found.records if record["labels_per_class"] != "all"})
    [1, 2, 5, 10, 20]
    """
    progress = progress or Progress()
    data_of = {task.name: _find(task, progress) for task in protocol.tasks}
    networks = {method.name: build(protocol, method, 0).get_params() for method in protocol.methods}
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
        _RUNNERS[protocol.kind](protocol, runs, data_of, progress)
    return runs


def _find(task: Task, progress: Progress) -> Data:
    """Return the first of a task's data sets that is on this machine; else fetch the last."""
    for name in task.data:
        try:
            return load_named(name, download=False, progress=tell_parts(progress))
        except DataNotFoundError:
            continue
    progress.tell(f"fetching {task.data[-1]}")
    return load_named(task.data[-1], progress=tell_parts(progress))


def _adopt(protocol: Protocol, runs: RunFolder, neighbour: Path) -> None:
    """Take over the runs of another protocol with the same settings, so that nothing is computed twice."""
    if not (neighbour / CONFIGURATION).exists():
        return
    other = RunFolder(neighbour)
    if settings_difference(other.configuration.get("settings", {}), runs.configuration["settings"]):
        return
    missing = set(wanted_runs(protocol)) - {record_key(record) for record in runs.records}
    for record in other.records:
        if record_key(record) in missing:
            runs.append(record)
