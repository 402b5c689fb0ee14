"""Tables of test errors: methods x numbers of labels, several runs each."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tnesi.data import Data
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.model.classes import margins
from tnesi.paper.network import Network, build
from tnesi.paper.protocol import Labels, Method, Protocol, Task
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.side_by_side import PASSES_FILE, Run, SideBySide
from tnesi.system.progress import Progress, tell_iterations
from tnesi.training.committee import mean_lower_bound
from tnesi.types import Array

Key = tuple[str, str, Labels, int, int]
"""Task, method, labels per class, run and seed of the mixture, which identify a run."""
_KEY = ("task", "method", "labels_per_class", "run", "seed")

_EXAMPLES = 20


def record_key(record: dict[str, Any]) -> Key:
    """Return the key of a recorded run."""
    task, method, labels, run, seed = (record[name] for name in _KEY)
    return task, method, labels, run, seed


def key_record(key: Key) -> dict[str, Any]:
    """Return a record with nothing but its key."""
    return dict(zip(_KEY, key, strict=True))


def wanted_runs(protocol: Protocol) -> list[Key]:
    """Return all runs of a protocol in order of execution: one mixture after the other."""
    runs: list[Key] = []
    for task in protocol.tasks:
        for method in protocol.methods:
            of_method = [
                (task.name, method.name, labels, run, protocol.seed_of(run, labels))
                for labels in protocol.labels_of(task)
                for run in range(protocol.n_runs(method, labels))
            ]
            runs += sorted(of_method, key=lambda key: key[4])
    return runs


def run_table(protocol: Protocol, folder: RunFolder, data_of: dict[str, Data], progress: Progress) -> None:
    """Make the missing runs and save each one as it finishes."""
    done = {record_key(record) for record in folder.records}
    pending = [key for key in wanted_runs(protocol) if key not in done]
    progress.begin(len(pending))
    for task in protocol.tasks:
        for method in protocol.methods:
            mine = [key for key in pending if key[:2] == (task.name, method.name)]
            for seed in dict.fromkeys(key[4] for key in mine):
                of_seed = [(key[2], key[3]) for key in mine if key[4] == seed]
                _runs_of_seed(protocol, folder, data_of[task.name], progress, task, method, seed, of_seed)


def _runs_of_seed(
    protocol: Protocol,
    folder: RunFolder,
    data: Data,
    progress: Progress,
    task: Task,
    method: Method,
    seed: int,
    runs: list[tuple[Labels, int]],
) -> None:
    name = f"{task.title}, {method.name}, mixture {seed}"
    progress.tell(name)
    online = build(protocol, method, seed)
    if isinstance(online, NeuralSimpletron):
        _side_by_side(protocol, folder, data, progress, task, method, online, seed, runs)
        return
    keep = folder.path / f"unfinished-{task.name}-{method.name}-{seed}.tnesi"
    network = Network(
        online,
        data,
        slice(protocol.train_rows),
        keep=keep,
        callback=tell_iterations(progress, name),
    )
    mixtures = network.classifier.mixtures_
    for labels, run in runs:
        progress.tell(f"{name}: {labels} labels per class, run {run + 1}")
        began = time.perf_counter()
        n_labels = network.learn(labels, label_seed(seed, run))
        learned = time.perf_counter()
        facts = {
            "free_energy": mean_lower_bound([mixture.learned_ for mixture in mixtures]),
            "iterations": network.classifier.n_iter_,
            "converged": all(mixture.converged_ for mixture in mixtures),
        }
        t = network.test_posterior()
        seconds = {
            "first layer": network.seconds,
            "second layer": learned - began,
            "prediction": time.perf_counter() - learned,
        }
        key = (task.name, method.name, labels, run, seed)
        _record(folder, data, key, n_labels, t, network.classifier.classes_, facts | {"seconds": seconds})
        progress.advance()
    keep.unlink(missing_ok=True)


def _side_by_side(
    protocol: Protocol,
    folder: RunFolder,
    data: Data,
    progress: Progress,
    task: Task,
    method: Method,
    network: NeuralSimpletron,
    seed: int,
    runs: list[tuple[Labels, int]],
) -> None:
    """Make the runs of a mixture by the online rule, all at once."""
    learning = SideBySide(
        network,
        data,
        slice(protocol.train_rows),
        [Run(labels, run, label_seed(seed, run), protocol.passes(labels)) for labels, run in runs],
        folder.path / f"unfinished-{task.name}-{method.name}-{seed}.npz",
        {"task": task.name, "method": method.name, "seed": seed},
    )
    name = f"{task.title}, {method.name}, mixture {seed}"
    for done in learning.learn(progress, name, folder.path / PASSES_FILE):
        key = (task.name, method.name, done.run.labels, done.run.run, seed)
        _record(folder, data, key, done.n_labels, done.posterior, done.classes, done.facts)
        progress.advance()


def _record(
    folder: RunFolder, data: Data, key: Key, n_labels: int, t: Array, classes: Array, facts: dict[str, Any]
) -> None:
    """Save a finished run."""
    task, method, labels, run, _ = key
    if run == 0:
        _save_examples(folder, f"examples-{task}-{method}-{labels}", classes, data, t)
    result = _result(classes, data, t)
    folder.append({**key_record(key), "n_labels": n_labels, **result, **facts, "data": data.name, "note": data.note})


def label_seed(seed: int, run: int) -> int:
    """Return the seed for drawing labels, which differs for each run and mixture."""
    return int(np.random.SeedSequence((seed, run)).generate_state(1)[0])


def _result(classes: Array, data: Data, t: Array) -> dict[str, Any]:
    assert data.test is not None
    predicted, truth = t.argmax(axis=1), np.searchsorted(classes, data.test.y)
    confusion = np.zeros((classes.size, classes.size), int)
    np.add.at(confusion, (truth, predicted), 1)
    return {
        "error": 100 * float(np.mean(predicted != truth)),
        "classes": [str(k) for k in classes.tolist()],
        "confusion": confusion.tolist(),
    }


def _save_examples(folder: RunFolder, name: str, classes: Array, data: Data, t: Array) -> None:
    """Save the test rows with the largest and smallest margins, and the most certain mistakes."""
    assert data.test is not None
    margin = margins(t)
    truth = np.asarray(data.test.y)
    predicted = classes[t.argmax(axis=1)]
    order = np.argsort(margin, kind="stable")
    most = _one_of_each_class_in_turn(order[::-1], predicted)
    wrong = most[(predicted != truth)[most]]
    chosen = {"least": order[:_EXAMPLES], "most": most[:_EXAMPLES], "wrong": wrong[:_EXAMPLES]}
    for kind, rows in chosen.items():
        folder.save_arrays(
            f"{name}-{kind}",
            rows=rows,
            images=np.asarray(data.test.X[rows]),
            shape=np.array(data.rows.image_shape or (1, data.rows.n_features)),
            truth=truth[rows].astype(str),
            predicted=predicted[rows].astype(str),
            margin=margin[rows],
        )


def _one_of_each_class_in_turn(rows: Array, classes: Array) -> Array:
    """Reorder rows: first the first of each class, then the second of each, and so on."""
    turn = np.empty(len(rows), int)
    for k in np.unique(classes):
        mine = classes[rows] == k
        turn[mine] = np.arange(mine.sum())
    return np.asarray(rows[np.argsort(turn, kind="stable")])
