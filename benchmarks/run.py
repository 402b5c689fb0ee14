"""Measure tnesi on MNIST: speed as ratios within this one run, memory, accuracy. ``make bench`` runs it.

    python benchmarks/run.py [--only NAME ...] [--seeds N] [--output results.json]

Prints a table and writes JSON. Needs MNIST (see TNESI_DATA in the README). It takes about ten minutes on two cores.
Not run by default: ``--only online`` (the published online rule, 40 epochs) takes ten minutes, ``--only out-of-core``
ten minutes and 4 GB of disk, ``--only dask`` (two worker processes, 600,000 rows) six minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import accuracy
import cost_model
import dask_engine
import memory
import out_of_core
import partial_fit
import sparse
import speed
import streaming
from report import Row, print_table

from tnesi.data import load_named
from tnesi.paper.machine import machine
from tnesi.system.files import replacing

MEASURES: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "iteration": speed.iteration,
    "fit": speed.fit,
    "energy": speed.energy,
    "growth": speed.growth,
    "labels": speed.labels,
    "predict": speed.predict,
    "memory": memory.memory,
    "partial_fit": partial_fit.partial_fit,
    "streaming": streaming.streaming,
    "out-of-core": out_of_core.out_of_core,
    "cost-model": cost_model.cost_model,
    "sparse": sparse.sparse,
    "dask": dask_engine.dask_engine,
    "accuracy": accuracy.accuracy,
    "calibration": accuracy.calibration,
    "unknown": accuracy.unknown,
    "row-sum": accuracy.row_sums,
    "online": accuracy.online,
}
ON_REQUEST = ("out-of-core", "cost-model", "dask", "calibration", "unknown", "row-sum", "online")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", choices=MEASURES, metavar="NAME", help=f"choose from {', '.join(MEASURES)}"
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs for accuracy (default 5)")
    parser.add_argument("--iterations", type=int, default=20, help="iterations for the free energy (default 20)")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows for out-of-core (default 5,000,000)")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results.json")
    options = parser.parse_args()
    options.mnist = load_named("mnist")
    found_on = machine()
    print(", ".join(f"{key} {value}" for key, value in found_on.items()), flush=True)
    rows: list[Row] = []
    for name in options.only or [name for name in MEASURES if name not in ON_REQUEST]:
        found = MEASURES[name](options)
        print_table(found)
        rows += found
    result: dict[str, Any] = {"machine": found_on, "rows": [row._asdict() for row in rows]}
    with replacing(options.output) as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n")
    print(f"\nwritten to {options.output}")


if __name__ == "__main__":
    main()
