"""Run folders as a reproduction writes them, with made-up figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi.paper.machine import machine
from tnesi.paper.protocol import read_protocol
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.table import wanted_runs

MakeFolder = Callable[..., RunFolder]


@pytest.fixture
def new_folder(tmp_path: Path) -> MakeFolder:
    """Return a function that makes a folder of a protocol, without records."""

    def make(
        name: str, *, quick: bool = False, runs: int | None = None, place: str | None = None, **changes: Any
    ) -> RunFolder:
        protocol = read_protocol(name, quick=quick, runs=runs)
        (tmp_path / (place or name)).mkdir()
        folder = RunFolder(tmp_path / (place or name))
        known = {"machine": machine(), "notes": [], "sizes": {t.name: [60000, 10000] for t in protocol.tasks}}
        folder.configure(protocol.as_json() | known | {"data": {t.name: t.data[0] for t in protocol.tasks}} | changes)
        return folder

    return make


@pytest.fixture
def table_folder(new_folder: MakeFolder) -> MakeFolder:
    """Return a function that makes a folder of a table with all its runs, and examples of its first methods."""

    def make(
        name: str = "mnist-table",
        *,
        n_classes: int = 10,
        shape: tuple[int, int] = (4, 4),
        with_examples: int | None = None,
        **options: Any,
    ) -> RunFolder:
        options = {"runs": 2} | options
        folder = new_folder(name, **options)
        protocol = read_protocol(name, runs=options["runs"], quick=options.get("quick", False))
        for key in wanted_runs(protocol):
            task, method, labels, run, seed = key
            folder.append(new_table_record(task, method, labels, run, n_classes) | {"seed": seed})
        for task in protocol.tasks:
            for method in protocol.methods[:with_examples]:
                for labels in protocol.labels_per_class:
                    for kind in ("least", "most", "wrong"):
                        new_examples(folder, f"examples-{task.name}-{method.name}-{labels}-{kind}", shape)
        return folder

    return make


@pytest.fixture
def table_record() -> Callable[..., dict[str, Any]]:
    return new_table_record


@pytest.fixture
def labels_record() -> Callable[..., dict[str, Any]]:
    return new_labels_record


@pytest.fixture
def save_examples() -> Callable[..., None]:
    return new_examples


@pytest.fixture
def likelihood_record() -> Callable[..., dict[str, Any]]:
    return new_likelihood_record


def new_table_record(task: str, method: str, labels: int | str, run: int, n_classes: int = 10) -> dict[str, Any]:
    rng = np.random.default_rng(run)
    n_labels = 60000 if labels == "all" else int(labels) * n_classes
    confusion = rng.integers(0, 9, (n_classes, n_classes)) + 100 * np.eye(n_classes, dtype=int)
    return {
        "task": task,
        "method": method,
        "labels_per_class": labels,
        "run": run,
        "seed": run,
        "n_labels": n_labels,
        "error": 3 + 30 / n_labels + float(rng.uniform()),
        "classes": [chr(ord("A") + k) for k in range(n_classes)],
        "confusion": confusion.tolist(),
        "seconds": {"first layer": 10.0, "second layer": 0.5, "prediction": 0.1},
    }


def new_labels_record(task: str, method: str, labels: int, run: int, seed: int) -> dict[str, Any]:
    place = ("clusters", "auto", "spreading", "self-labeling").index(method)
    return {
        "task": task,
        "method": method,
        "labels_per_class": labels,
        "run": run,
        "seed": seed,
        "n_labels": 10 * labels,
        "error": 4 + 0.5 * place + 0.1 * run + 1 / labels,
        "calibration_error": 1.2,
        "confidence": 95.0,
        "chosen": "clusters" if method == "auto" else method,
        "seconds": {"first layer": 10.0 + seed, "second layer": 0.3, "prediction": 0.1},
    }


def new_examples(folder: RunFolder, name: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 3, (2, 5)).astype(str)
    images = rng.integers(0, 255, (5, shape[0] * shape[1])).astype(np.uint8)
    folder.save_arrays(
        name, rows=np.arange(5), images=images, shape=np.array(shape), truth=truth, predicted=predicted,
        margin=rng.uniform(size=5),
    )  # fmt: skip


def new_likelihood_record(truncation: int | str, run: int, iterations: int = 20) -> dict[str, Any]:
    curve: list[dict[str, Any]] = []
    for i in range(iterations + 1):
        point = {"iteration": i, "seconds": i + 1.0, "free_energy": -835 + i / 20 + 0.01 * run}
        if i % 4 == 0:
            height = 0.1 if truncation == 15 else 0.0
            point |= {"log_likelihood": -834 + i / 20 + height, "error": 8 - i / 8}
        curve.append(point)
    return {"truncation": truncation, "run": run, "seed": run, "curve": curve}
