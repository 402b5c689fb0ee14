"""Cost model of an iteration by parts: constants are fitted to small sizes and checked on another one.

For N rows of D features, C fields, truncation C', G grains of rows, and lists of g fields from S rows:

search      N (g + C') D          products of rows with the fields of a list and their own
statistics  N C' D  and  G C D    sums over the rows, added to the sums of all fields once per grain
lists       S C'^2                every third iteration
weights     C D                   W and its logarithms

Memory is that of the rows, a number of bytes per weight (C D), and a constant.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
from report import Row
from scipy.optimize import nnls

G, TURNS = 64, 3
FITTED = [  # (rows, side of the images, fields, truncation)
    (130_000, 28, 2_500, 15),
    (70_000, 28, 10_000, 15),
    (120_000, 28, 5_000, 8),
    (180_000, 28, 10_000, 15),
    (180_000, 14, 10_000, 15),
    (240_000, 14, 5_000, 8),
    (240_000, 28, 10_000, 8),
]
KERNELS = {
    "search": "search_groups",
    "statistics": "add_statistics",
    "lists": "build_lists",
    "weights": "finish_m_step",
}
CHECKED = (600_000, 28, 20_000, 15)
CODE = """
import json, sys, time
import numpy as np
from tnesi import PoissonMixture
from tnesi.execution import Local
from tnesi import kernels
from tnesi.data import load_named
n_rows, side, n_fields, truncation = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
images = load_named("mnist").X.reshape(-1, 28, 28)
if side < 28:
    images = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).astype(np.uint8)
parts = []
for start in range(0, n_rows, len(images)):
    part = np.roll(images, rng.integers(-1, 2, 2), axis=(1, 2)).reshape(len(images), -1)[: n_rows - start].copy()
    part[np.arange(len(part)), rng.integers(0, part.shape[1], len(part))] += 1
    parts.append(part)
X = np.concatenate(parts)
def resident(which):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1e3 for line in file if line.startswith(which))
before = resident("VmRSS")
spent = {}
def timed(name):
    kernel = getattr(kernels, name)
    def run(*arguments):
        began = time.perf_counter()
        kernel(*arguments)
        spent[name] = spent.get(name, 0.0) + time.perf_counter() - began
    setattr(kernels, name, run)
for name in ("search_groups", "add_statistics", "finish_m_step", "build_lists"):
    timed(name)
records = []
def callback(record):
    records.append((record["seconds"], dict(spent)))
    spent.clear()
PoissonMixture(n_fields, truncation=truncation, row_sum=side * side + 116, max_iter=6, tol=0, random_state=0,
               execution=Local(callback=callback)).fit(X)
best = {"start": records[0][0], "memory": resident("VmHWM") - before}
for name in ("search_groups", "add_statistics", "finish_m_step"):
    best[name] = min(parts.get(name, 0.0) for _, parts in records[1:])
best["build_lists"] = min((parts["build_lists"] for _, parts in records[1:] if "build_lists" in parts), default=0.0)
seconds = np.diff([at for at, _ in records])
best["iteration"] = min(seconds[i : i + 3].mean() for i in range(len(seconds) - 2))
print(json.dumps(best))
"""


class Size(NamedTuple):
    rows: int
    side: int
    fields: int
    truncation: int

    @property
    def features(self) -> int:
        return self.side**2

    def terms(self) -> dict[str, list[float]]:
        """Return the factors to which the parts of an iteration are proportional."""
        n, d, c, t = self.rows, self.features, self.fields, self.truncation
        grains = -(-n // 65536)
        sample = n // max(1, n // max(65536, 8 * c))
        return {
            "search": [n * (G + t) * d],
            "statistics": [n * t * d, c * d * grains],
            "lists": [sample * t * t],
            "weights": [c * d],
        }

    @property
    def memory_of_rows(self) -> float:
        """Return the known bytes: activities, sums, hashes and constants."""
        return self.rows * (8 * self.truncation + 4 + 40)

    @property
    def weights(self) -> int:
        return self.fields * self.features


def _measure(size: Size) -> dict[str, Any]:
    words = [sys.executable, "-c", CODE, *map(str, size)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {part: found[kernel] for part, kernel in KERNELS.items()}


def _best(sizes: list[Size]) -> list[dict[str, Any]]:
    """Measure all sizes several times in turn, so that a slow phase of the machine does not affect only one."""
    turns = [[_measure(size) for size in sizes] for _ in range(TURNS)]
    return [{key: min(one[key] for one in found) for key in found[0]} for found in zip(*turns, strict=True)]


def _constants(sizes: list[Size], measured: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Fit each part separately to relative errors."""
    constants = {}
    for part in KERNELS:
        terms = np.array([size.terms()[part] for size in sizes])
        seconds = np.array([found[part] for found in measured])
        constants[part] = nnls(terms / seconds[:, None], np.ones(len(seconds)))[0]
    return constants


def _memory_constants(sizes: list[Size], measured: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the bytes per weight and the constant."""
    terms = np.array([[size.weights, 1.0] for size in sizes])
    rest = np.array([found["memory"] - size.memory_of_rows for size, found in zip(sizes, measured, strict=True)])
    per_weight, other = nnls(terms, rest)[0]
    return float(per_weight), float(other)


def _predict(size: Size, constants: dict[str, np.ndarray]) -> dict[str, float]:
    return {part: float(np.dot(terms, constants[part])) for part, terms in size.terms().items()}


def cost_model(options: argparse.Namespace) -> list[Row]:
    sizes, checked = [Size(*one) for one in FITTED], Size(*CHECKED)
    *measured, found = _best([*sizes, checked])
    constants = _constants(sizes, measured)
    ratios = [
        one["iteration"] / _iteration(_predict(size, constants)) for size, one in zip(sizes, measured, strict=True)
    ]
    rest = float(np.median(ratios))
    expected = _predict(checked, constants)
    per_weight, other = _memory_constants(sizes, measured)
    seconds, memory = rest * _iteration(expected), checked.memory_of_rows + per_weight * checked.weights + other
    size = f"{checked.rows:,} rows, C = {checked.fields:,}"
    return [
        *(
            Row(f"{part}: constant {i + 1}", 1e12 * value, "ps")
            for part, values in constants.items()
            for i, value in enumerate(values)
        ),
        *(
            Row(f"{part}: predicted for {size}", value, "s", note=f"measured {found[part]:.3f} s")
            for part, value in expected.items()
        ),
        Row("iteration against the sum of its parts, sizes fitted on", rest, "x"),
        Row(
            "time of an iteration: measured / predicted (0.75 to 1.25)",
            found["iteration"] / seconds,
            "x",
            note=f"{found['iteration']:.2f} s against {seconds:.2f} s, {size}",
        ),
        Row(
            "memory of a fit for each of the C D weights",
            per_weight,
            "bytes",
            note=f"and {other / 1e6:.0f} MB in any case",
        ),
        Row(
            "memory of a fit beyond the data: measured / predicted (0.75 to 1.25)",
            found["memory"] / memory,
            "x",
            note=f"{found['memory'] / 1e6:.0f} MB against {memory / 1e6:.0f} MB",
        ),
        Row("start, in iterations", found["start"] / found["iteration"], "x"),
    ]


def _iteration(parts: dict[str, float]) -> float:
    return parts["search"] + parts["statistics"] + parts["lists"] / 3 + parts["weights"]
