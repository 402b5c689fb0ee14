"""Automatic choice of A, the sum to which every row is normalized, from unlabeled data.

A - D is an inverse temperature. If it is too small, the posteriors are flat and the fields become similar; if it is too
large, every row belongs to a single field and nothing is averaged. Like the bandwidth of t-SNE, A - D is chosen by
perplexity: small mixtures are learned on a sample, and A - D is the value at which their posterior over the fields has
a perplexity of 1.8.

More fields lie closer together and need a larger A - D: it is multiplied by (C / c)^0.1 for C fields if the small
mixture has c fields.

Bags of words need the opposite of sharp posteriors: single documents share few words, so a document says little about
which field it belongs to. If features are rare (the median feature occurs in fewer than 2 % of the rows), A - D is the
value at which the posterior over the C' = 15 fields is almost even, with a perplexity of 14.5. There (A - D) M_cd is
small, log W is nearly linear, and the inputs compare rows with fields like a cosine. Labels then spread over many
fields. From 2 to 8 % the rule passes over to the usual one.

The usual constants minimize the test errors on MNIST, Fashion-MNIST, scikit-learn's digits and about twenty variants
of them; ``python benchmarks/run.py --only row-sum`` compares the choice with a grid. The perplexity for rare features
was chosen on the unlabeled part of training documents of BBC news (tf-idf, counts, first 30 words, 200 documents) and
on two sets of synthetic topics, with 1, 10 and 30 labels per class; seven values of A - D were compared on each.
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
_LEAST, _LEAST_RARE, _MOST_PER_FEATURE = 10.0, 1.0, 100.0
_RARE, _COMMON = 0.02, 0.08
_EVEN = 14.5 / 15
"""Perplexity of the posterior for rare features, as a share of the number of fields that explain a row."""
_FEWEST_ROWS = 10
_ROWS_FOR_FREQUENCIES = 100


def auto_row_sum(take: Callable[[Array], Any], survey: Survey, drawn: Array, n_fields: int, n_threads: int) -> float:
    """Return A for a mixture of `n_fields` fields.

    `drawn` has one index of each distinct row in random order; `take` reads the first few thousand as the sample.
    """
    used, rarity = _rarity(survey)
    n_features = survey.count.size
    n_sample = min(_SAMPLE_ROWS, max(200, _SAMPLE_VALUES // used))
    sample = _without_blank_features(take(drawn[:n_sample]))
    shares = sample / sample.sum(axis=1, keepdims=True, dtype=np.float64)
    variance = float(shares.var(axis=0).sum())
    if variance < 1e-12:  # all rows are proportional to each other
        return float(2 * n_features)
    n_small = min(n_fields, max(len(sample) // _ROWS_PER_FIELD, min(len(sample) // 2, _FEWEST_FIELDS)))
    low, high = _LEAST ** (1 - rarity) * _LEAST_RARE**rarity, _MOST_PER_FEATURE * used
    above = 1 / variance
    if len(sample) >= _FEWEST_ROWS and n_small >= 2:
        entropy = _wanted_entropy(n_small, rarity)
        above = _above_for_entropy(sample, n_small, entropy, np.clip(above, low, high), low, high, n_threads)
    above *= max(n_fields / n_small, 1) ** (_GROWTH * (1 - rarity))
    return float(n_features + np.clip(above, low, high))


def _without_blank_features(X: Matrix) -> Array:
    """Return rows as a dense array, without all-zero features."""
    if issparse(X):
        return dense(X[:, np.unique(X.indices)])
    return np.ascontiguousarray(X[:, X.any(axis=0)])


def _rarity(survey: Survey) -> tuple[int, float]:
    """Return the number of features in use, and how rare they are: 0 for pictures, 1 for bags of words."""
    used = survey.count[survey.count > 0]
    frequency = float(np.median(used)) / survey.total
    if survey.total < _ROWS_FOR_FREQUENCIES:
        return int(used.size), 0.0
    return int(used.size), float(np.clip(np.log(_COMMON / frequency) / np.log(_COMMON / _RARE), 0, 1))


def _wanted_entropy(n_fields: int, rarity: float) -> float:
    """Return the entropy of the posterior over `n_fields` fields that suits the data, in nats."""
    usual = min(np.log(PERPLEXITY), 0.3 * np.log(n_fields))
    even = np.log(max(_EVEN * min(_TRUNCATION, n_fields), 1.2))
    return float(usual ** (1 - rarity) * even**rarity)


def _above_for_entropy(
    sample: Array, n_fields: int, entropy: float, guess: float, low: float, high: float, n_threads: int
) -> float:
    """Return A - D at which a small mixture has the target posterior entropy, which decreases with A - D."""
    wanted = np.log(entropy)

    def excess(log_above: float) -> float:
        found = _posterior_entropy(sample, n_fields, float(np.exp(log_above)), n_threads)
        return float(np.log(max(found, 1e-6)) - wanted)

    here, ends = float(np.log(guess)), (float(np.log(low)), float(np.log(high)))
    value = excess(here)
    step = np.log(2) if value > 0 else -np.log(2)
    while True:  # double or halve until the root is bracketed
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
        raise KeyboardInterrupt  # nothing learned yet
    s = engine.activities.s.astype(np.float64)
    return float(-(s * np.log(np.maximum(s, 1e-30))).sum(axis=1).mean())
