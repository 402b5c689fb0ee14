"""Learning from five million rows in a file: memory, and time per row compared with memory and with fewer rows."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from report import Row

C = 10_000
FEW, SOME = 60_000, 600_000
CODE = """
import json, resource, sys
import numpy as np
from tnesi import PoissonMixture
path, how, n_rows, n_fields, max_iter = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
X = np.load(path, mmap_mode="r")[:n_rows]
if how == "memory":
    X = np.array(X)
mixture = PoissonMixture(n_fields, row_sum=900, max_iter=max_iter, tol=0, random_state=0).fit(X)
at = [record["seconds"] for record in mixture.history_]
print(json.dumps({
    "start": at[0],
    "iteration": min(later - earlier for earlier, later in zip(at, at[3:])) / 3,  # one of three rebuilds the lists
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    "energy": [record["free_energy"] for record in mixture.history_],
}))
"""


def _fit(path: Path, how: str, n_rows: int, max_iter: int) -> dict[str, Any]:
    words = [sys.executable, "-c", CODE, str(path), how, str(n_rows), str(C), str(max_iter)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def out_of_core(options: argparse.Namespace) -> list[Row]:
    many = options.rows
    with tempfile.TemporaryDirectory(dir=options.output.parent) as folder:
        path = Path(folder) / "rows.npy"
        write_rows(path, options.mnist.X, many)
        few = [_fit(path, "file", FEW, 9) for _ in range(2)]
        in_memory, in_file = [], []
        for _ in range(2):  # in turns, since the machine's speed changes
            in_memory.append(_fit(path, "memory", SOME, 6))
            in_file.append(_fit(path, "file", SOME, 6))
        large = _fit(path, "file", many, 8)
        few.append(_fit(path, "file", FEW, 9))

    def per_row(runs: list[dict[str, Any]], n_rows: int) -> float:
        return float(1e6 * min(run["iteration"] for run in runs) / n_rows)

    costs = {n: per_row(runs, n) for n, runs in ((FEW, few), (SOME, in_file), (many, [large]))}
    note = ", ".join(f"{n:,} rows: {cost:.2f} us a row" for n, cost in costs.items())
    same = in_memory[0]["energy"] == in_file[0]["energy"]
    return [
        Row(f"peak memory of a fit of {many:,} x 784 bytes in a file, total", large["peak"], "MB", 3000),
        Row(
            f"its start (before the first iteration), and an iteration: {large['iteration']:.1f} s", large["start"], "s"
        ),
        Row(
            f"an iteration from a file against one in memory, {SOME:,} rows",
            costs[SOME] / per_row(in_memory, SOME),
            "x",
            1.3,
            note=f"{per_row(in_memory, SOME):.2f} us a row in memory; {'same' if same else 'OTHER'} free energies",
        ),
        Row(
            f"cost of an iteration per row, {many:,} rows against {FEW:,}",
            costs[many] / costs[FEW],
            "x",
            1.2,
            note=note,
        ),
    ]


def write_rows(path: Path, X: np.ndarray, n_rows: int) -> None:
    """Write images moved by up to two pixels, with noise."""
    rng = np.random.default_rng(0)
    images = X.reshape(-1, 28, 28)
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (n_rows, 784)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n_rows, len(X)):
            block = np.roll(images, rng.integers(-2, 3, 2), axis=(1, 2)).reshape(len(X), 784)[: n_rows - start]
            if start:
                block = block.copy()
                changed = rng.integers(0, block.size, block.size // 100)
                block.reshape(-1)[changed] ^= rng.integers(0, 64, changed.size, dtype=np.uint8)
            file.write(np.ascontiguousarray(block).data)
