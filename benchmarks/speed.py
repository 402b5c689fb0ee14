"""Speed, as ratios within one run."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from report import Row, best_of

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.execution.local import LocalEngine
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, draw_distinct, start_from_rows
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search.exact import ExactSearch, blocks_for
from tnesi.search.neighbors import NeighborSearch, search_lists
from tnesi.system.threads import resolve_threads
from tnesi.training.em import run_em
from tnesi.training.monitor import Monitor

A, C, TRUNCATION = 900, 10_000, 15
THREADS = resolve_threads(None)


def product(fields: Fields, rows: Rows) -> None:
    """Compute the matrix product of an exact E-step by multithreaded BLAS, which is the unit of time."""
    for _, block in blocks_for(fields, rows):
        block.raw() @ fields.log_w[:, : rows.n_features].T


def prepared(rows: Rows, n_fields: int) -> tuple[Fields, NeighborSearch, Activities]:
    """Return a mixture after two iterations."""
    search = NeighborSearch(TRUNCATION, THREADS)
    fields = search.arrange(start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, THREADS), None)[:n_fields]))
    engine = LocalEngine.of(rows, None, THREADS)
    fields = run_em(engine, fields, search, Monitor(tol=0), max_iter=2)
    return fields, search, engine.activities


def iteration(options: argparse.Namespace) -> list[Row]:
    rows = normalize(options.mnist.X, A)
    fields, search, activities = prepared(rows, C)
    exact = ExactSearch(TRUNCATION, THREADS)
    unit = best_of(3, lambda: product(fields, rows))
    with single_threaded_blas():
        exact_e = best_of(3, lambda: exact.find(fields, rows))
    spare, _ = fields.m_step(rows, None, activities, THREADS)
    m_step = best_of(5, lambda: fields.m_step(rows, None, activities, THREADS, spare))
    lists = best_of(5, lambda: search.build_lists(activities.ids, C))
    near: Any = search.lists
    search_time = best_of(
        5, lambda: search_lists(fields, rows, None, activities.best, near, activities.copy(), THREADS)
    )
    exact_time, time_without_lists = exact_e + m_step, search_time + m_step
    return [
        Row("unit: product of one exact E-step, 60,000 x 784 x 10,000", unit, "s"),
        Row("exact iteration (product + top C' + M-step)", exact_time, "s"),
        Row("neighborhood iteration: search", search_time, "s"),
        Row("neighborhood iteration: M-step", m_step, "s"),
        Row("neighborhood iteration: lists (every third iteration)", lists, "s"),
        Row("exact / neighborhood iteration (search + M-step)", exact_time / time_without_lists, "x", 20, True),
        Row("the same with the lists, amortized", exact_time / (time_without_lists + lists / 3), "x"),
    ]


def fit(options: argparse.Namespace) -> list[Row]:
    rows = normalize(options.mnist.X, A)
    fields, _, _ = prepared(rows, C)
    unit = best_of(3, lambda: product(fields, rows))
    began = time.perf_counter()
    mixture = PoissonMixture(C, row_sum=A, random_state=0).fit(options.mnist.X)
    seconds = time.perf_counter() - began
    start = mixture.history_[0]["seconds"]
    note = f"{mixture.n_iter_} iterations, {seconds:.1f} s; the start takes {100 * start / seconds:.0f} % of it"
    began = time.perf_counter()
    auto = PoissonMixture(random_state=0).fit(options.mnist.X)
    seconds_auto = time.perf_counter() - began
    note_auto = f"{auto.n_iter_} iterations, {seconds_auto:.1f} s, row_sum {auto.row_sum_:.0f}"
    return [
        Row("fit from start to convergence, row_sum=900, in units", seconds / unit, "units", 2.5, note=note),
        Row("the same with row_sum chosen from the data", seconds_auto / unit, "units", 2.5, note=note_auto),
    ]


def energy(options: argparse.Namespace) -> list[Row]:
    rows = normalize(options.mnist.X, A)
    start = start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, THREADS), None)[:C])
    ends = []
    for search in (NeighborSearch(TRUNCATION, THREADS), ExactSearch(TRUNCATION, THREADS)):
        monitor = Monitor(tol=0)
        fields = search.arrange(start)
        with single_threaded_blas():
            run_em(LocalEngine.of(rows, None, THREADS), fields, search, monitor, max_iter=options.iterations)
        ends.append(monitor.history[-1]["free_energy"])
    note = f"neighborhood {ends[0]:.4f}, exact {ends[1]:.4f} after {options.iterations} iterations"
    return [Row("free energy: exact EM minus neighborhood EM", ends[1] - ends[0], "nats", 0.015, note=note)]


def growth(options: argparse.Namespace) -> list[Row]:
    rows = normalize(options.mnist.X, A)
    chosen = draw_distinct(row_hashes(rows.x, 0, THREADS), None)
    seconds: dict[int, float] = {}
    for n_fields in (2_500, 10_000, 40_000):
        search, monitor = NeighborSearch(TRUNCATION, THREADS), Monitor(tol=0)
        fields = search.arrange(start_from_rows(rows, None, chosen[:n_fields]))
        run_em(LocalEngine.of(rows, None, THREADS), fields, search, monitor, max_iter=10)
        # three iterations each: one of them rebuilds the lists
        at = [record["seconds"] for record in monitor.history]
        seconds[n_fields] = min(later - earlier for earlier, later in zip(at, at[3:], strict=False)) / 3
    note = ", ".join(f"C = {n}: {s:.3f} s" for n, s in seconds.items())
    ratio = seconds[40_000] / seconds[2_500]
    return [Row("one iteration with its lists, C = 40,000 against 2,500", ratio, "x", 2, note=note)]


def labels(options: argparse.Namespace) -> list[Row]:
    mnist = options.mnist
    few = few_labels(mnist.y, 10, np.random.default_rng(0))
    classifier = SimpletronClassifier(PoissonMixture(C, row_sum=A), random_state=0).fit(mnist.X, mnist.y)
    rows = []
    for per_class in (1, 10, 300):
        y = few_labels(mnist.y, per_class, np.random.default_rng(0))
        began = time.perf_counter()
        classifier.fit_labels(y)
        first, again = time.perf_counter() - began, best_of(5, partial(classifier.fit_labels, y))
        rows.append(Row(f"another set of {10 * per_class} labels (fit_labels), 60,000 rows", again, "s", 0.3))
        if per_class == 1:
            rows.insert(0, Row("learned once before, without labels", first - again, "s", 1.0))
    classifier.set_params(labeling="self-labeling")
    seconds = best_of(3, lambda: classifier.fit_labels(few))
    return [*rows, Row("100 passes of self-labeling (fit_labels), 60,000 rows", seconds, "s", 1.0)]


def predict(options: argparse.Namespace) -> list[Row]:
    mnist = options.mnist
    classifier = SimpletronClassifier(PoissonMixture(C, row_sum=A), random_state=0).fit(mnist.X, mnist.y)
    found, model = {}, classifier.model_
    exact = replace(model, mixtures=(replace(model.mixtures[0], search=ExactSearch(TRUNCATION, THREADS)),))
    contenders = {"neighbors": classifier, "exact": SimpletronClassifier.from_model(exact, classifier.mixtures_)}
    for name, contender in contenders.items():
        error = 100 * (1 - contender.score(mnist.test.X, mnist.test.y))
        found[name] = (best_of(3, partial(contender.predict, mnist.test.X)), error)
    ratio, difference = found["exact"][0] / found["neighbors"][0], found["neighbors"][1] - found["exact"][1]
    note = f"{found['neighbors'][0]:.2f} s against {found['exact'][0]:.2f} s"
    return [
        Row("prediction of 10,000 images, exact / neighborhood", ratio, "x", 5, True, note),
        Row("error of neighborhood prediction minus exact", difference, "points", 0.05),
    ]
