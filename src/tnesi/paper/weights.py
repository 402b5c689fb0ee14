"""Networks learned from one label per class, whose fields are shown (the paper's Figs. 3 and 7)."""

from __future__ import annotations

import time

from tnesi.data import Data
from tnesi.model_file import save
from tnesi.paper.network import Network, build
from tnesi.paper.protocol import Protocol, Task
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.table import label_seed
from tnesi.system.progress import Progress, tell_iterations


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
        network = Network(
            build(protocol, method, seed),
            data,
            slice(protocol.train_rows),
            callback=tell_iterations(progress, name),
        )
        n_labels = network.learn(protocol.labels_per_class[0], label_seed(seed, 0))
        model = f"{task.name}-{seed}.tnesi"
        save(network.classifier, folder.path / model, image_shape=data.rows.image_shape, training=False)
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
