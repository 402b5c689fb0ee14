"""Networks learned from one label per class, whose fields are shown (the paper's Figs. 3 and 7)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tnesi.data import Data
from tnesi.estimators.interruption import raise_interrupts
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.execution.settings import Local
from tnesi.model_file import save
from tnesi.paper.network import Classifier, Network, build, drawn_labels
from tnesi.paper.protocol import Method, Protocol, Task
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.table import label_seed
from tnesi.system.progress import Progress, tell_iterations
from tnesi.training.rules import OnlineRule


def wanted_networks(protocol: Protocol) -> list[tuple[Task, int]]:
    """Return task and seed of all networks of a protocol."""
    return [(task, protocol.seed_of(run)) for task in protocol.tasks for run in range(protocol.runs)]


def run_weights(protocol: Protocol, folder: RunFolder, data_of: dict[str, Data], progress: Progress) -> None:
    """Learn and save a network for each task; the report draws its fields."""
    done = {(record["task"], record["seed"]) for record in folder.records}
    pending = [key for key in wanted_networks(protocol) if (key[0].name, key[1]) not in done]
    progress.begin(len(pending))
    for task, seed in pending:
        data, method = data_of[task.name], protocol.methods[0]
        name = f"{task.title}, {method.name}"
        progress.tell(name)
        began = time.perf_counter()
        classifier, n_labels = _learned(protocol, method, data, seed, tell_iterations(progress, name))
        model = f"{task.name}-{seed}.tnesi"
        save(classifier, folder.path / model, image_shape=data.rows.image_shape, training=False)
        folder.append(
            {
                "task": task.name,
                "seed": seed,
                "n_labels": n_labels,
                "model": model,
                "seconds": {"all": time.perf_counter() - began},
                "data": data.name,
                "note": data.note,
            }
        )
        progress.advance()


def _learned(
    protocol: Protocol, method: Method, data: Data, seed: int, callback: Callable[[dict[str, Any]], None]
) -> tuple[Classifier, int]:
    """Return the network and the number of its labels; by the online rule, both layers learn together."""
    classifier, labels = build(protocol, method, seed), protocol.labels_per_class[0]
    rows = slice(protocol.train_rows)
    if not isinstance(classifier, NeuralSimpletron):
        network = Network(classifier, data, rows, callback=callback)
        return network.classifier, network.learn(labels, label_seed(seed, 0))
    assert isinstance(classifier.rule, OnlineRule)
    y = drawn_labels(data.y[rows], labels, label_seed(seed, 0))
    rule = replace(classifier.rule, max_iter=protocol.passes(labels))
    with raise_interrupts():
        classifier.set_params(rule=rule, execution=Local(callback=callback)).fit(data.X[rows], y)
    return classifier.set_params(execution=None), sum(label is not None for label in y.tolist())
