"""Learning from a stream: time per row compared with an iteration of `fit`, and the result of one pass."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from report import Row

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels

A, C, FIRST = 900, 10_000, 20_000


def partial_fit(options: argparse.Namespace) -> list[Row]:
    X, test = options.mnist.X, options.mnist.test
    fitted = PoissonMixture(C, row_sum=A, max_iter=12, tol=0, random_state=0).fit(X)
    seconds = [record["seconds"] for record in fitted.history_]
    iteration = float(np.median([after - before for before, after in zip(seconds[:-3], seconds[3:], strict=True)])) / 3
    unit = iteration / len(X)  # three iterations at a time: one of them makes the lists
    rows = [Row("iteration of fit, per row", 1e6 * unit, "us")]
    for size in (1_000, 10_000):
        mixture = PoissonMixture(C, row_sum=A, random_state=0)
        spent = _one_pass(mixture, X, size) / (len(X) - FIRST)
        what = f"partial_fit in batches of {size:,} / iteration of fit, per row"
        rows.append(Row(what, spent / unit, "x", note=f"{1e6 * spent:.0f} us"))
    converged = PoissonMixture(C, row_sum=A, random_state=0).fit(X)
    gap = converged.score(test.X) - mixture.score(test.X)
    rows.append(Row("free energy of test rows: fit minus one pass of partial_fit", gap, "nats", 0.1))
    return rows + _errors(X, options.mnist.y, test)


def _errors(X: Any, y: Any, test: Any) -> list[Row]:
    rows = []
    for per_class in (1, 10):
        few = few_labels(y, per_class, np.random.default_rng(0))
        clf = SimpletronClassifier(PoissonMixture(C, row_sum=A), random_state=0)
        _one_pass(clf, X, 2_000, few)
        began = time.perf_counter()
        error = 100 * (1 - clf.score(test.X, test.y))
        note = f"{clf.labeling_}; the second layer and prediction take {time.perf_counter() - began:.1f} s"
        rows.append(Row(f"error after one pass, {10 * per_class} labels", error, "%", 5, note=note))
    return rows


def _one_pass(model: Any, X: Any, size: int, y: Any = None) -> float:
    """Learn from all rows; return the seconds after the first batch."""
    model.partial_fit(X[:FIRST], None if y is None else y[:FIRST])
    began = time.perf_counter()
    for start in range(FIRST, len(X), size):
        at = slice(start, start + size)
        model.partial_fit(X[at], None if y is None else y[at])
    return time.perf_counter() - began
