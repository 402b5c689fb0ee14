"""Compare labeling methods on the same first layers and labels."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from tnesi.data import Data, few_labels
from tnesi.paper.network import Network, build
from tnesi.paper.protocol import Labels, Protocol, Task
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.statistics import calibration_error
from tnesi.paper.table import Key, key_record, label_seed, record_key, wanted_runs
from tnesi.paper.variants import mislabel
from tnesi.system.progress import Progress, tell_iterations
from tnesi.types import Array


def possible_labels(protocol: Protocol, task: Task, y: Array) -> tuple[Labels, ...]:
    """Return the numbers of labels per class that all classes of a task have."""
    fewest = int(np.unique(y[: protocol.train_rows], return_counts=True)[1].min())
    return tuple(n for n in protocol.labels_of(task) if n == "all" or n <= fewest)


def draw_labels(y: Array, per_class: int, noise: float, seed: int) -> Array:
    """Keep `per_class` labels of each class, a share `noise` of them wrong, and set the others to None."""
    rng = np.random.default_rng(seed)
    few = few_labels(y, per_class, rng, unlabeled=None)
    return mislabel(few, noise, rng) if noise else few


def run_labeling(protocol: Protocol, folder: RunFolder, data_of: dict[str, Data], progress: Progress) -> None:
    """Make the missing runs and save each one as it finishes."""
    done = {record_key(record) for record in folder.records}
    sharing: dict[tuple[str, int], list[Key]] = {}  # tasks with the same rows share mixtures
    for key in wanted_runs(protocol):
        sharing.setdefault((data_of[key[0]].fingerprint, key[4]), []).extend([key] if key not in done else [])
    progress.begin(sum(map(len, sharing.values())))
    for (rows, seed), keys in sharing.items():
        if not keys:
            continue
        data = data_of[keys[0][0]]
        name = f"{data.name}, mixture {seed}"
        progress.tell(name)
        keep = folder.path / f"unfinished-{rows[:8]}-{seed}.tnesi"
        first_layer = build(protocol, replace(protocol.methods[0], parameters={}), seed)
        callback = tell_iterations(progress, name)
        network = Network(first_layer, data, slice(protocol.train_rows), keep=keep, callback=callback)
        for key in sorted(keys, key=lambda key: key[3]):  # all methods of a draw, then the next draw
            progress.tell(f"{key[0]}, mixture {seed}: {key[2]} labels per class, draw {key[3] + 1}, {key[1]}")
            folder.append(_run(protocol, network, data_of[key[0]], key))
            progress.advance()
        keep.unlink(missing_ok=True)


def _run(protocol: Protocol, network: Network, data: Data, key: Key) -> dict[str, Any]:
    assert data.test is not None
    name, method, labels, run, seed = key
    assert labels != "all"
    task = next(task for task in protocol.tasks if task.name == name)
    network.classifier.set_params(**next(m.parameters for m in protocol.methods if m.name == method))
    drawn = label_seed(seed, run)
    y = draw_labels(data.y[: protocol.train_rows], labels, task.noise, drawn)
    began = time.perf_counter()
    n_labels = network.learn_from(y, drawn)
    learned = time.perf_counter()
    t = network.test_posterior()
    right, top = network.classifier.classes_[t.argmax(axis=1)] == data.test.y, t.max(axis=1)
    return {
        **key_record(key),
        "n_labels": n_labels,
        "error": 100 * float(np.mean(~right)),
        "calibration_error": 100 * calibration_error(top, right),
        "confidence": 100 * float(np.mean(top)),
        "chosen": network.classifier.labeling_,
        "seconds": {
            "first layer": network.seconds,
            "second layer": learned - began,
            "prediction": time.perf_counter() - learned,
        },
        "data": data.name,
        "note": data.note,
    }
