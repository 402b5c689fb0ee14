"""Dask workers compared with each other and with threads: seconds per iteration, in one run.

They take turns of three iterations (one of which rebuilds the lists of neighbors), so that other load on the machine
affects all of them. The best turn of each counts.
"""

from __future__ import annotations

import argparse
import copy
import time
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from report import Row

from tnesi.execution.dask.cluster import Cluster, own_cluster
from tnesi.execution.engine import Engine
from tnesi.execution.local import LocalEngine
from tnesi.execution.part import Part
from tnesi.execution.store import ArrayStore
from tnesi.model.fields import Fields, draw_distinct, start_around
from tnesi.model.rows import normalize
from tnesi.search.neighbors import NeighborSearch

A, C, TRUNCATION, THREADS = 900, 10_000, 15, 2
COPIES, TURNS, AT_A_TIME = 10, 10, 3


def many_digits(digits: npt.NDArray[np.uint8], copies: int) -> npt.NDArray[np.uint8]:
    """Return several copies of the digits, each with a different shift and different noise."""
    rng = np.random.default_rng(0)
    images = digits.reshape(-1, 28, 28)
    out = np.empty((copies, *images.shape), np.uint8)
    for copied, target in enumerate(out):
        shifted = np.roll(images, (copied % 3 - 1, copied // 3 % 3 - 1), axis=(1, 2))
        noise = rng.integers(0, 17, images.shape, dtype=np.uint8)
        np.copyto(target, np.clip(shifted, 8, 247) + noise - 8, where=shifted > 0)
        target[shifted == 0] = 0
    return out.reshape(-1, digits.shape[1])


class Contender:
    """An engine during learning."""

    def __init__(self, name: str, engine: Engine, fields: Fields, search: NeighborSearch) -> None:
        self.name, self.engine, self.search = name, engine, copy.copy(search)
        engine.normalize(A)
        own = [fields.take(np.arange(C)) for _ in range(2)]  # not shared with other writers
        engine.begin(own[0], self.search, None)
        self.fields, self.spare, self.turns = *own, list[float]()

    def take_turn(self) -> None:
        began = time.perf_counter()
        for _ in range(AT_A_TIME):
            new = self.engine.m_step(self.fields, None, self.spare)
            self.engine.step(new, self.search, None)
            self.fields, self.spare = new, self.fields
        self.turns.append((time.perf_counter() - began) / AT_A_TIME)

    @property
    def best(self) -> float:
        return min(self.turns)


def dask_engine(options: argparse.Namespace) -> list[Row]:
    X = many_digits(np.asarray(options.mnist.X), COPIES)
    sums, rows = X.sum(axis=1, dtype=np.float64), ArrayStore(X)
    local = LocalEngine(Part(rows, sums, None, THREADS))
    survey = local.survey(0)
    chosen = normalize(X[draw_distinct(survey.hashes, None)[:C]], A)
    search = NeighborSearch(TRUNCATION, THREADS)
    fields = search.arrange(start_around(1 + survey.mean_above(A), chosen))
    with ExitStack() as stack:
        contenders = [
            Contender("2 local threads", local, fields, search),
            Contender("1 local thread", LocalEngine(Part(rows, sums, None, 1)), fields, replace(search, n_threads=1)),
        ]
        for n_workers in (2, 1):
            client = stack.enter_context(own_cluster(n_workers))
            engine = Cluster(client).engine(rows, sums, None, THREADS)
            contenders.append(Contender(f"{n_workers} Dask workers", engine, fields, search))
        for _ in range(TURNS):
            for contender in contenders:
                contender.take_turn()
    here, alone, two, one = contenders
    for contender in contenders:
        print(f"{contender.name}: {'  '.join(f'{each:.2f}' for each in contender.turns)} s", flush=True)
        if not np.array_equal(contender.fields.w, here.fields.w):
            raise AssertionError(f"{contender.name} have learned other fields than {here.name}")
    out, back = C * X.shape[1] * 4 / 1e6, (2 * C * X.shape[1] * 8 + len(X) * TRUNCATION * 2) / 1e6
    note = f"1 worker {one.best:.2f} s, 2 workers {two.best:.2f} s; {len(X):,} rows"
    moved = f"local {here.best:.2f} s; {out:.0f} MB shared with the workers, {back:.0f} MB with the client"
    return [
        Row("local iteration: 2 threads against 1", alone.best / here.best, "x", note=f"1 thread {alone.best:.2f} s"),
        Row("Dask iteration: 2 workers of 1 thread against 1", one.best / two.best, "x", 1.7, True, note),
        Row("Dask iteration: 2 workers of 1 thread / 2 local threads", two.best / here.best, "x", 1.25, note=moved),
    ]
