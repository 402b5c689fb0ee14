"""Nearest neighbors of all rows of a data set, for methods that learn on graphs; kept on disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from tnesi.system.files import replacing

Array = npt.NDArray[Any]

N_NEIGHBORS = 10
"""Besides the row itself, for methods that learn from all rows."""
N_TRAINING = 7
"""For methods that learn from training rows, counting the row itself if it is one: LabelSpreading's default."""
_SEARCHED = 20


class Neighbors(NamedTuple):
    """The nearest rows of each row, and how long the search took.

    Attributes
    ----------
    rows, distances : (N, 1 + N_NEIGHBORS) array
        Among training and test rows, the row itself first.
    training : (N, N_TRAINING) array
        Among the training rows.
    """

    rows: Array
    distances: Array
    training: Array
    seconds: float
    cpu_seconds: float

    @property
    def graph(self) -> sparse.csr_matrix:
        """The edges from all rows to their nearest training rows, all with the weight 1."""
        n, k = self.training.shape
        edges = np.ones(n * k), self.training.ravel(), np.arange(0, n * k + 1, k)
        return sparse.csr_matrix(edges, shape=(n, int(self.training.max()) + 1))


def neighbors(X: Any, n_train: int, path: Path) -> Neighbors:
    """Return the exact nearest neighbors of rows, from the file at `path` or computed and stored there.

    The first `n_train` rows are for training.
    """
    if not path.exists():
        began, cpu_began = time.perf_counter(), time.process_time()
        rows = neighbor_rows(X)
        found, distances = _search(rows, rows, min(_SEARCHED + 1, rows.shape[0]))
        found, distances = _itself_first(found, distances)
        training = _training(found, rows, n_train)
        seconds = [time.perf_counter() - began, time.process_time() - cpu_began]
        k = N_NEIGHBORS + 1
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, rows=found[:, :k], distances=distances[:, :k], training=training, seconds=seconds)
    with np.load(path, allow_pickle=False) as stored:
        return Neighbors(stored["rows"], stored["distances"], stored["training"], *stored["seconds"].tolist())


def neighbor_rows(X: Any) -> Any:
    """Return the rows between which distances make sense: those of documents scaled to length 1."""
    rows: Any = X
    return normalize(rows.astype(np.float32)) if sparse.issparse(X) else rows


def _search(rows: Any, asked: Any, k: int) -> tuple[Array, Array]:
    distances, found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(rows).kneighbors(asked)
    return found, distances


def _itself_first(found: Array, distances: Array) -> tuple[Array, Array]:
    """Put each row first among its neighbors; among many equal rows it may not even be one of them."""
    itself = np.arange(len(found))[:, None]
    order = np.argsort(found != itself, axis=1, kind="stable")
    found, distances = np.take_along_axis(found, order, axis=1), np.take_along_axis(distances, order, axis=1)
    found[:, 0], distances[:, 0] = itself[:, 0], 0
    return found, distances


def _training(found: Array, rows: Any, n_train: int) -> Array:
    """Return the nearest training rows: those that were found, and where these are too few, those of a new search."""
    training = found < n_train
    order = np.argsort(~training, axis=1, kind="stable")[:, :N_TRAINING]
    out = np.take_along_axis(found, order, axis=1)
    too_few = np.flatnonzero(training.sum(axis=1) < N_TRAINING)
    if too_few.size:
        out[too_few] = _search(rows[:n_train], rows[too_few], N_TRAINING)[0]
    return out
