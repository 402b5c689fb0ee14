"""Sparse rows compared with the same dense rows: MNIST, 20 newsgroups, and word counts of that shape; learning on them.

The newsgroups are skipped if they are not on this machine. The other counts are drawn from 20 topics whose words follow
Zipf's law, with about 150 different words per row.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from report import Row, best_of
from scipy.sparse import csr_array, save_npz
from speed import THREADS, TRUNCATION, A, C

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels, load_named
from tnesi.data.source import DataError
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.fields import Fields, draw_distinct, start_from_rows
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search.exact import ExactSearch
from tnesi.search.neighbors import search_all

N, WORDS, TOPICS = 18_774, 61_188, 20
NORM = 1.3
"""Row sum in units of the number of words."""
DENSE_ROWS = 1_000, 3_000
"""Numbers of rows whose time is measured; the time of all rows is extrapolated."""
ITERATIONS = 5
MEMORY = """
import resource, sys
from scipy.sparse import load_npz
from tnesi import PoissonMixture
from tnesi.data import load_named
from tnesi.data.source import DataError
def now():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
X = load_npz(sys.argv[1])
PoissonMixture(2, row_sum=1.3 * X.shape[1], max_iter=1, tol=0).fit(X[:100])
before = now()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
PoissonMixture(int(sys.argv[2]), row_sum=1.3 * X.shape[1], max_iter=3, tol=0, random_state=0).fit(X)
with open("/proc/self/status") as file:
    high = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print((high - before) / 1e6)
"""


def word_counts(n_rows: int = N, n_words: int = WORDS, seed: int = 0) -> tuple[csr_array, Any]:
    """Draw rows and their topics; three of ten words are from the row's topic, the others from all topics."""
    rng = np.random.default_rng(seed)
    zipf = np.arange(1, n_words + 1) ** -1.05
    common = np.cumsum(zipf / zipf.sum())
    words = np.stack([rng.permutation(n_words) for _ in range(TOPICS)])
    length = np.maximum(rng.lognormal(np.log(160), 0.8, n_rows).astype(int), 5)
    row = np.repeat(np.arange(n_rows), length)
    topic = rng.integers(0, TOPICS, n_rows)
    rank = np.minimum(np.searchsorted(common, rng.random(row.size)), n_words - 1)
    word = np.where(rng.random(row.size) < 0.3, words[topic[row], rank], rank)
    return csr_array(csr_array((np.ones(row.size, np.float32), (row, word)), shape=(n_rows, n_words))), topic


def sparse(options: argparse.Namespace) -> list[Row]:
    found = [*_learning(), *_images(options.mnist.X), *_words("word counts", word_counts()[0])]
    try:
        news = load_named("20newsgroups", download=False)
    except DataError as error:
        print(f"20 newsgroups are left out: {error}")
        return found
    return [*found, *_words("20 newsgroups", csr_array(news.X.astype(np.float32)))]


def _learning() -> list[Row]:
    """Time of the whole classifier on 20,000 documents of 50,000 words, and of another label set."""
    X, topic = word_counts(20_000, 50_000)
    few = [few_labels(topic, 10, np.random.default_rng(draw)) for draw in range(2)]
    classifier = SimpletronClassifier(random_state=0)
    rows = []
    for what, learn, reach in (
        ("20,000 documents x 50,000 words, 10 labels per class", partial(classifier.fit, X, few[0]), 5),
        ("another label set", partial(classifier.fit_labels, few[1]), None),
    ):
        began = time.process_time()
        seconds = best_of(1, learn)
        rows.append(Row(what, seconds, "s", reach, note=f"{time.process_time() - began:.1f} s of processor time"))
    return rows


def _images(X: Any) -> list[Row]:
    matrix = csr_array(X)
    dense, thin = normalize(X, A), normalize(matrix, A)
    fields = _start(dense, C)
    exact = ExactSearch(TRUNCATION, THREADS)
    with single_threaded_blas():
        by_blas, own = (best_of(3, partial(exact.find, fields, rows)) for rows in (dense, thin))
    filled = 100 * matrix.nnz / X.size
    note = f"{by_blas:.2f} s against {own:.2f} s; {filled:.0f} % of MNIST is not 0"
    return [Row("exact E-step, C = 10,000: dense by BLAS / sparse", by_blas / own, "x", 1, True, note)]


def _words(name: str, X: csr_array) -> list[Row]:
    some = [X[:n].toarray() for n in DENSE_ROWS]
    (n_rows, n_words), found = X.shape, []
    of = f"{name} ({n_rows:,} x {n_words:,})"
    for n_fields in (20, 500):
        fields = _start(normalize(X, NORM * n_words), n_fields)
        of_all = _extrapolated(n_rows, some, partial(_search, fields))
        found.append(_ratio(f"E-step, {of}, C = {n_fields}: dense / sparse", of_all, _search(fields, X)))
        of_all = _extrapolated(n_rows, some, partial(_fit, n_fields))
        own = min(_fit(n_fields, X) for _ in range(2))
        found.append(_ratio(f"fit of {ITERATIONS} iterations, {name}, C = {n_fields}: dense / sparse", of_all, own))
        sizes = f"W alone has {n_fields * n_words * 4 / 1e6:.0f} MB, the dense rows {n_rows * n_words * 4 / 1e9:.1f} GB"
        peak = _peak(X, n_fields)
        found.append(Row(f"its peak memory beyond libraries and data, C = {n_fields}", peak, "MB", note=sizes))
    return found


def _ratio(what: str, dense: float, own: float) -> Row:
    note = f"{dense:.2f} s, from {' and '.join(f'{n:,}' for n in DENSE_ROWS)} rows, against {own:.3f} s"
    return Row(what, dense / own, "x", 20, True, note)


def _start(rows: Rows, n_fields: int) -> Fields:
    return start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, THREADS), None)[:n_fields])


def _search(fields: Fields, X: Any) -> float:
    rows = normalize(X, NORM * X.shape[1])
    return best_of(10, lambda: search_all(fields, rows, None, TRUNCATION, THREADS))


def _fit(n_fields: int, X: Any) -> float:
    began = time.perf_counter()
    PoissonMixture(n_fields, row_sum=NORM * X.shape[1], max_iter=ITERATIONS, tol=0, random_state=0).fit(X)
    return time.perf_counter() - began


def _extrapolated(n_rows: int, some: list[Any], seconds_of: Callable[[Any], float]) -> float:
    """Return the extrapolated time of all rows: a constant plus a time per row."""
    few, more = (seconds_of(X) for X in some)
    return more + (more - few) * (n_rows - DENSE_ROWS[1]) / (DENSE_ROWS[1] - DENSE_ROWS[0])


def _peak(X: csr_array, n_fields: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "words.npz")
        save_npz(file, X, compressed=False)
        words = [sys.executable, "-c", MEMORY, str(file), str(n_fields)]
        return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
