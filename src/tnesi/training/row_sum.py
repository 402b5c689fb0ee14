"""Choosing A, the sum to which every row is normalized, from the unlabeled data alone.

A - D is an inverse temperature. Where it is too small the posteriors are flat and the fields run into each other;
where it is too large every point belongs to one field alone and nothing is averaged. As t-SNE does for its
bandwidth, the rule fixes how sharply a point is assigned: small mixtures are learned on a sample, and A - D is the
value at which their posterior over the fields has the perplexity 1.8, so that a point is shared by "1.8 fields".

More fields lie closer together and want a larger A - D: it is multiplied by (C / c)^0.1 for a mixture of C fields when
the small one had c. Bags of words are another case: there the 1 that normalization adds to each feature smooths
rare words, and a small A - D would drown them. Where features are rare (the median one in fewer than 2 % of the rows),
A - D is at least a share, up to 0.3, of the number of features in use.

The constants were chosen by the test errors of MNIST, Fashion-MNIST, scikit-learn's digits and about twenty variants
of them; ``python benchmarks/run.py --only row-sum`` compares the choice with a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import issparse

from tnesi.execution.local import LocalEngine
from tnesi.execution.survey import Survey
from tnesi.model.fields import start_from_rows
from tnesi.model.rows import Matrix, dense, normalize
from tnesi.search.neighbors import NeighborSearch
from tnesi.training.em import run_em
from tnesi.training.monitor import Monitor
from tnesi.types import Array

PERPLEXITY = 1.8
_GROWTH = 0.1
_SAMPLE_ROWS, _SAMPLE_VALUES = 3000, 2_500_000
_ROWS_PER_FIELD, _FEWEST_FIELDS = 6, 15
_TRUNCATION, _ITERATIONS = 15, 8
_LEAST, _MOST_PER_FEATURE = 10.0, 100.0
_RARE, _SHARE = 0.02, 0.3
_FEWEST_ROWS = 10
_ROWS_TO_TELL = 100


def auto_row_sum(take: Callable[[Array], Any], survey: Survey, drawn: Array, n_fields: int, n_threads: int) -> float:
    """Return A for a mixture of `n_fields` fields of rows of which there is a survey.

    `drawn` has one index of each distinct row in random order; the first few thousand are the sample, which `take`
    gets.
    """
    used, floor = _rare_feature_floor(survey)
    n_features = survey.count.size
    # a sample of wide data must not become large
    n_sample = min(_SAMPLE_ROWS, max(200, _SAMPLE_VALUES // used))
    sample = _without_blank_features(take(drawn[:n_sample]))
    shares = sample / sample.sum(axis=1, keepdims=True, dtype=np.float64)
    variance = float(shares.var(axis=0).sum())
    if variance < 1e-12:  # all rows are proportional to each other
        return float(n_features + max(n_features, floor))
    n_small = min(n_fields, max(len(sample) // _ROWS_PER_FIELD, min(len(sample) // 2, _FEWEST_FIELDS)))
    low, high = _LEAST, _MOST_PER_FEATURE * used
    above = 1 / variance
    if len(sample) >= _FEWEST_ROWS and n_small >= 2:
        above = _above_for_entropy(sample, n_small, np.clip(above, low, high), low, high, n_threads)
    above *= max(n_fields / n_small, 1) ** _GROWTH
    return float(n_features + np.clip(max(above, floor), low, high))


def _without_blank_features(X: Matrix) -> Array:
    """Return rows as a dense array, without features that contribute nothing."""
    if issparse(X):
        return dense(X[:, np.unique(X.indices)])
    return np.ascontiguousarray(X[:, X.any(axis=0)])


def _rare_feature_floor(survey: Survey) -> tuple[int, float]:
    """Return the number of features in use, and the least A - D that rare features want."""
    used = survey.count[survey.count > 0]
    frequency = float(np.median(used)) / survey.total
    enough = survey.total >= _ROWS_TO_TELL
    share = _SHARE * float(np.clip(np.log(_RARE / frequency) / np.log(4), 0, 1)) if enough else 0.0
    return int(used.size), share * used.size


def _above_for_entropy(sample: Array, n_fields: int, guess: float, low: float, high: float, n_threads: int) -> float:
    """Return A - D at which a small mixture has the wanted posterior entropy; entropy falls with A - D."""
    wanted = np.log(min(np.log(PERPLEXITY), 0.3 * np.log(n_fields)))

    def excess(log_above: float) -> float:
        entropy = _posterior_entropy(sample, n_fields, float(np.exp(log_above)), n_threads)
        return float(np.log(max(entropy, 1e-6)) - wanted)

    here, ends = float(np.log(guess)), (float(np.log(low)), float(np.log(high)))
    value = excess(here)
    step = np.log(2) if value > 0 else -np.log(2)
    while True:  # double or halve until the root is between two values
        there = float(np.clip(here + step, *ends))
        if there == here:
            return float(np.exp(here))
        beyond = excess(there)
        if (beyond > 0) != (value > 0):
            break
        here, value = there, beyond
    root = brentq(excess, min(here, there), max(here, there), xtol=0.03)
    return float(np.exp(root))


def _posterior_entropy(sample: Array, n_fields: int, above: float, n_threads: int) -> float:
    """Return the mean entropy of the posterior, in nats, after a few iterations of EM."""
    rows = normalize(sample, sample.shape[1] + above)
    search = NeighborSearch(min(_TRUNCATION, n_fields), n_threads)
    fields = start_from_rows(rows, None, np.arange(n_fields))
    monitor = Monitor(tol=0)
    engine = LocalEngine.of(rows, None, n_threads)
    run_em(engine, fields, search, monitor, max_iter=_ITERATIONS)
    if monitor.interrupted:
        raise KeyboardInterrupt  # nothing to keep yet
    s = engine.activities.s.astype(np.float64)
    return float(-(s * np.log(np.maximum(s, 1e-30))).sum(axis=1).mean())
