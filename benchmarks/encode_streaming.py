"""``tnesi fit`` and ``tnesi predict`` of a million documents and of a million pictures: time and memory.

    python benchmarks/encode_streaming.py [--rows N] [--only documents images] [--folder FOLDER]

Documents are a CSV file of 20 words each, from 2,000 words in four topics; pictures are a .npy file of 28 x 28 pixels
with bars in four directions. A thousand rows have labels. Memory is the peak of the command, without the pages of
mapped files, which the system takes back when it needs them, and with them. It is also measured with a quarter of the
rows: encoding keeps nothing of a row, and learning little, since the activities of many rows are in a file. Needs 4 GB
of disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tnesi.paper.machine import machine

COMMAND = [sys.executable, "-c", "from tnesi.cli import main; main()"]
LABELED, BLOCK = 1000, 10_000


def documents(place: Path, n_rows: int) -> Path:
    """Write a CSV file of documents in four topics."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(2_000)])
    with (place / "documents.csv").open("w") as file:
        file.write("text,label\n")
        for start in range(0, n_rows, BLOCK):
            topic = rng.integers(0, 4, min(BLOCK, n_rows - start))
            common = rng.integers(0, 1_000, (len(topic), 14))
            special = 1_000 + 250 * topic[:, None] + rng.integers(0, 250, (len(topic), 6))
            lines = words[np.hstack([common, special])]
            for row, (line, k) in enumerate(zip(lines.tolist(), topic.tolist(), strict=True), start):
                file.write(f'"{" ".join(line)}",{f"topic{k}" if row < LABELED else ""}\n')
    return place / "documents.csv"


def images(place: Path, n_rows: int) -> Path:
    """Write a .npy file of pictures of bars in four directions, with noise, and their labels."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:28, :28] - 13.5
    across = np.stack([x, y, (x + y) / 2**0.5, (x - y) / 2**0.5])
    file = np.lib.format.open_memmap(place / "images.npy", "w+", np.uint8, (n_rows, 28, 28))
    kinds = rng.integers(0, 4, n_rows)
    for start in range(0, n_rows, BLOCK):
        part = kinds[start : start + BLOCK]
        bars = np.abs(across[part] - rng.uniform(-8, 8, (len(part), 1, 1))) < 3
        file[start : start + BLOCK] = rng.integers(0, 90, bars.shape) + 150 * bars
    file.flush()
    labels = [f"bar{k}" if row < LABELED else "" for row, k in enumerate(kinds.tolist())]
    (place / "labels.csv").write_text("\n".join(["label", *labels]) + "\n")
    return place / "images.npy"


def measured(*words: object) -> dict[str, float]:
    """Run a command; return its time and the peaks of its memory, in MB."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([*COMMAND, *map(str, words), "--quiet"], stdout=said, stderr=said)
        peaks = {"RssAnon": 0.0, "VmRSS": 0.0}
        while process.poll() is None:
            try:
                text = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                break
            found = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
            for key in peaks:
                peaks[key] = max(peaks[key], int(found.get(key, "0 kB").split()[0]) / 1e3)
            time.sleep(0.05)
        if process.wait():
            said.seek(0)
            raise SystemExit(f"tnesi {' '.join(map(str, words))} failed:\n{said.read().decode()}")
    return {"seconds": time.perf_counter() - began, "memory_mb": peaks["RssAnon"], "with_mapped_mb": peaks["VmRSS"]}


def run(kind: str, n_rows: int, place: Path) -> dict[str, dict[str, float]]:
    """Fit and predict `n_rows` items."""
    data = documents(place, n_rows) if kind == "documents" else images(place, n_rows)
    labels = [] if kind == "documents" else ["--labels", place / "labels.csv"]
    small = ["--fields", 100, "--max-iter", 10, "--no-training-state"]
    model, out = place / "model.tnesi", place / "predictions.csv"
    found = {"fit": measured("fit", data, *labels, *small, "-o", model), "predict": measured("predict", model, data,
             "-o", out)}  # fmt: skip
    with out.open() as file:
        n_predicted = sum(1 for _ in file) - 1
    if n_predicted != n_rows:
        raise SystemExit(f"{n_predicted} rows were predicted instead of {n_rows}")
    for file_name in place.iterdir():
        file_name.unlink()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each kind (default 1,000,000)")
    parser.add_argument("--only", nargs="+", choices=("documents", "images"), default=("documents", "images"))
    parser.add_argument("--folder", type=Path, help="for the data (default: the folder of temporary files)")
    options = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in machine().items()), flush=True)
    for kind in options.only:
        for n_rows in (options.rows // 4, options.rows):
            with tempfile.TemporaryDirectory(dir=options.folder) as name:
                for command, figures in run(kind, n_rows, Path(name)).items():
                    print(json.dumps({"kind": kind, "rows": n_rows, "command": command} | figures), flush=True)


if __name__ == "__main__":
    main()
