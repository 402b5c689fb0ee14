"""Dask workers against each other and against threads: seconds of an iteration, in one run."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client, LocalCluster
from report import Row

from tnesi import PoissonMixture

A, C = 900, 10_000
COPIES, ITERATIONS = 10, 9


def many_digits(digits: npt.NDArray[np.uint8], copies: int) -> npt.NDArray[np.uint8]:
    """Return the digits so many times, each time shifted otherwise and with other noise."""
    rng = np.random.default_rng(0)
    images = digits.reshape(-1, 28, 28)
    out = np.empty((copies, *images.shape), np.uint8)
    for copy, target in enumerate(out):
        shifted = np.roll(images, (copy % 3 - 1, copy // 3 % 3 - 1), axis=(1, 2))
        noise = rng.integers(0, 17, images.shape, dtype=np.uint8)
        np.copyto(target, np.clip(shifted, 8, 247) + noise - 8, where=shifted > 0)
        target[shifted == 0] = 0
    return out.reshape(-1, digits.shape[1])


def seconds(X: npt.NDArray[np.uint8], **engine: Any) -> tuple[float, npt.NDArray[np.float32]]:
    """Return the time of an iteration: three at a time, one of which makes the lists anew; and the fields."""
    mixture = PoissonMixture(C, norm=A, max_iter=ITERATIONS, tol=0, random_state=0, **engine).fit(X)
    at = [record["seconds"] for record in mixture.history_]
    print(engine, "  ".join(f"{each:.2f}" for each in np.diff(at)), "s", flush=True)
    return min(later - earlier for earlier, later in zip(at, at[3:], strict=False)) / 3, mixture.weights_


def dask_engine(options: argparse.Namespace) -> list[Row]:
    X = many_digits(np.asarray(options.mnist.X), COPIES)
    local, same = seconds(X, n_threads=2)
    found = {}
    for n_workers in (2, 1):
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster) as client,
        ):
            found[n_workers], fields = seconds(X, n_threads=2, engine="dask", scheduler=client)
        if not np.array_equal(fields, same):
            raise AssertionError("Dask and the local engine have learned different fields")
    n_features = X.shape[1]
    out, back = C * n_features * 4 / 1e6, (C * n_features * 8 + len(X) * 15 * 2) / 1e6
    note = f"1 worker {found[1]:.2f} s, 2 workers {found[2]:.2f} s; {len(X):,} rows"
    moved = f"local {local:.2f} s; {out:.0f} MB out to each worker, {back:.0f} MB back to the client"
    return [
        Row("Dask iteration: 2 workers of 1 thread against 1", found[1] / found[2], "x", 1.7, True, note),
        Row("Dask iteration: 2 workers of 1 thread / 2 local threads", found[2] / local, "x", 1.25, note=moved),
    ]
