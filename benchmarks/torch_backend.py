"""The E-step on PyTorch's CPU device beside that of NumPy's BLAS: the same rows, fields and threads, in turns.

``python benchmarks/torch_backend.py`` measures both in each round, one after the other; the median ratio counts.
Rows are random bytes: the work of an E-step does not depend on them. On a machine with other load, set
``OMP_WAIT_POLICY=passive`` for more than one thread, or PyTorch's threads wait for each other actively.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.fields import Fields
from tnesi.model.rows import Rows, normalize
from tnesi.search import DeviceSearch, ExactSearch
from tnesi.system.devices import find_device

CASES = {"MNIST, 1,000 fields": (4000, 784, 1000), "MNIST, 10,000 fields": (2000, 784, 10_000)}
"""Rows, features and fields."""
TRUNCATION = 15


def problem(n_rows: int, n_features: int, n_fields: int) -> tuple[Rows, Fields]:
    """Return rows of random bytes, a fifth of them not zero as in MNIST, and fields that are rows."""
    rng = np.random.default_rng(0)
    shape = (n_rows + n_fields, n_features)
    x = rng.integers(1, 256, shape, np.uint8) * (rng.random(shape) < 0.2)
    rows = normalize(x.astype(np.uint8), n_features + 116.0)
    return rows.take(slice(n_rows)), Fields.from_weights(rows.take(slice(n_rows, None)).y())


def seconds(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def measured(case: tuple[int, int, int], n_threads: int, n_rounds: int) -> dict[str, float]:
    """Return the median times and the median ratio; the results have to agree."""
    rows, fields = problem(*case)
    blas = ExactSearch(TRUNCATION, n_threads)
    device = find_device("cpu")
    tensors = DeviceSearch(TRUNCATION, n_threads, device=device)
    with single_threaded_blas(), device.running(n_threads):
        expected, found = blas.find(fields, rows), tensors.find(fields, rows)
        np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-4)
        times = [
            (seconds(lambda: blas.find(fields, rows)), seconds(lambda: tensors.find(fields, rows)))
            for _ in range(n_rounds)
        ]
    return {
        "blas": statistics.median(one for one, _ in times),
        "torch": statistics.median(other for _, other in times),
        "ratio": statistics.median(other / one for one, other in times),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    for name, case in CASES.items():
        found = measured(case, options.threads, options.rounds)
        print(
            json.dumps(
                {"case": name, "threads": options.threads} | {key: round(value, 4) for key, value in found.items()}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
