"""``tnesi predict`` of a million rows in a mapped file: speed compared with ``predict`` in memory, and memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from report import Row

from tnesi import SimpletronClassifier, save
from tnesi.data import few_labels

MANY, FEW = 1_000_000, 300_000
MEASURED = """
import json, sys, threading, time
def resident():  # without the pages of mapped files, which the system takes back when it needs them: and with them
    with open("/proc/self/status") as file:
        found = dict(line.split(":", 1) for line in file)
    return [int(found[key].split()[0]) / 1e3 for key in ("RssAnon", "VmRSS")]
peak, done = [0.0, 0.0], threading.Event()
def watch():
    while not done.wait(0.05):
        peak[:] = map(max, peak, resident())
"""
IN_MEMORY = """
import numpy as np, tnesi
model, X = tnesi.load(sys.argv[1]), np.load(sys.argv[2])
model.predict(X[:10_000])
began = time.perf_counter()
model.predict(X)
print(json.dumps({"seconds": time.perf_counter() - began}))
"""
STREAMED = """
from typer.testing import CliRunner
from tnesi.cli.app import app
import tnesi.prediction
threading.Thread(target=watch, daemon=True).start()
result = CliRunner().invoke(app, ["predict", sys.argv[1], sys.argv[2], "-o", sys.argv[2] + ".csv", "--json"])
done.set()
assert result.exit_code == 0, result.output
print(json.dumps({"seconds": json.loads(result.stdout)["seconds_predicting"], "anonymous": peak[0], "all": peak[1]}))
"""


def _measure(code: str, *arguments: Path) -> dict[str, float]:
    words = [sys.executable, "-c", MEASURED + code, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def streaming(options: argparse.Namespace) -> list[Row]:
    """Measure on MNIST's test images with a few random pixels changed, without the time to start and load."""
    mnist = options.mnist
    with tempfile.TemporaryDirectory(dir=options.output.parent) as name:
        folder = Path(name)
        y = few_labels(mnist.y, 10, np.random.default_rng(0))
        save(SimpletronClassifier(random_state=0).fit(mnist.X, y), folder / "m.tnesi", training=False)
        _write(folder / "many.npy", mnist.test.X, MANY)
        _write(folder / "few.npy", mnist.test.X, FEW)
        few = _measure(STREAMED, folder / "m.tnesi", folder / "few.npy")
        streamed, in_memory = [], []
        for _ in range(2):  # in turns, since the machine's speed changes
            streamed.append(_measure(STREAMED, folder / "m.tnesi", folder / "many.npy"))
            in_memory.append(_measure(IN_MEMORY, folder / "m.tnesi", folder / "many.npy")["seconds"])
    seconds = min(run["seconds"] for run in streamed)
    note = f"{MANY / seconds:,.0f} rows/s with reading and writing, {MANY / min(in_memory):,.0f} in memory"
    growth = max(run["all"] for run in streamed) - few["all"]
    return [
        Row(
            "tnesi predict, 1,000,000 rows: speed against predict in memory",
            min(in_memory) / seconds,
            "x",
            1,
            True,
            note,
        ),
        Row("its peak memory, total", max(run["all"] for run in streamed), "MB"),
        Row("growth of its memory from 300,000 to 1,000,000 rows", growth, "MB", 50),
    ]


def _write(place: Path, X: np.ndarray, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(place, "w+", np.uint8, (n_rows, X.shape[1]))
    for start in range(0, n_rows, len(X)):
        block = X[: n_rows - start].copy()
        changed = rng.integers(0, block.size, block.size // 50)
        block.reshape(-1)[changed] ^= rng.integers(0, 64, changed.size, dtype=np.uint8)
        out[start : start + len(block)] = block
