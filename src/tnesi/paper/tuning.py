"""Choose truncation, row sum and threshold from the labels, as in the paper, or the truncation without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import issparse

from tnesi.errors import InvalidParameterError
from tnesi.estimators.interruption import raise_interrupts
from tnesi.estimators.parameters import canonical, check_integer
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.execution.settings import Local
from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.labels import encode_labels
from tnesi.labeling.second_layer import SelfLabeling
from tnesi.model.free_energy import FreeEnergy
from tnesi.model.rows import Matrix, normalize
from tnesi.search.exact import log_likelihood
from tnesi.system.progress import Progress, tell_iterations
from tnesi.system.threads import resolve_threads
from tnesi.types import Array

_HELD_OUT, _MOST_HELD_OUT = 0.1, 5000
"""Share of the unlabeled rows on which the likelihood is measured, and its maximum."""
_ROW_SUM_FACTORS = (1.0, 0.5, 2.0)
"""Factors of the row sum above 1 per feature, relative to that of `row_sum="auto"`."""


@dataclass(frozen=True)
class Trial:
    """One setting: mean and standard error (over the splits) of the validation error in percent."""

    truncation: int
    row_sum: float
    threshold: float
    error: float
    sem: float


@dataclass(frozen=True)
class Tuned:
    """Result of tuning.

    Attributes
    ----------
    trials : list of Trial
        All settings, best first.
    likelihoods : dict
        Exact log-likelihood per row in nats by (row_sum, truncation), on rows that the mixtures have not seen (the mean
        over the mixtures of a committee); comparable between truncations of one row sum. That of the training rows
        would prefer the largest truncation.
    n_train, n_validation : int
        Labels in the two halves.
    """

    trials: list[Trial]
    likelihoods: dict[tuple[float, int], float]
    n_train: int
    n_validation: int

    @property
    def best(self) -> dict[str, Any]:
        """Parameters for SimpletronClassifier."""
        first = self.trials[0]
        return {"truncation": first.truncation, "row_sum": first.row_sum, "threshold": first.threshold}

    def truncation_by_likelihood(self, row_sum: float | None = None) -> int:
        """Return the truncation of highest held-out likelihood, which needs no labels (the paper's section IV-A2)."""
        row_sum = self.trials[0].row_sum if row_sum is None else row_sum
        of_norm = {c: value for (a, c), value in self.likelihoods.items() if a == row_sum}
        return max(of_norm, key=lambda c: of_norm[c])


def split_half(codes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Split labeled rows in half within each class; a single label belongs to the first half.

    Examples
    --------
    >>> train, validation = split_half(np.array([0, 0, 1, 1, 1, -1]), np.random.default_rng(0))
    >>> len(train), len(validation)
    (3, 2)
    """
    halves: tuple[list[Array], list[Array]] = ([], [])
    for k in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero(codes == k))
        halves[0].append(members[: -(-members.size // 2)])
        halves[1].append(members[-(-members.size // 2) :])
    return np.concatenate(halves[0]), np.concatenate(halves[1])


def tune(
    X: Any,
    y: Any,
    *,
    truncations: Sequence[int] = (5, 15, 50),
    row_sums: Sequence[float] | None = None,
    thresholds: Sequence[float] = (0.4, 0.6, 0.8),
    n_splits: int = 10,
    n_mixtures: int = 1,
    unlabeled: Any = -1,
    random_state: int = 0,
    progress: Progress | None = None,
    **parameters: Any,
) -> Tuned:
    """Compare settings by the paper's protocol.

    Only the given labels are used: half of them (in each class) to learn from, the other half to compare. A
    mixture is learned once for each C' and A, without labels; the thresholds and splits share it. It learns from all
    rows but a tenth of the unlabeled ones, on which its likelihood is measured.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        All rows, labeled or not.
    y : array-like of shape (n_samples,)
        Labels, at least two for some class; other rows have the marker `unlabeled`.
    truncations, row_sums, thresholds : sequences
        Values to compare. By default, row sums are that of "auto", and half and twice its excess over 1 per feature.
    n_splits : int
        Number of random splits over which the validation error is averaged.
    n_mixtures : int
        Number of mixtures of the classifier.
    unlabeled : object
        The marker of unlabeled rows.
    random_state : int
        Seeds the mixtures and splits.
    progress : Progress, optional
        Receives progress messages.
    **parameters : dict
        Other parameters of the mixture, such as `n_components`.

    Returns
    -------
    found : Tuned

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> y[100:] = -1
    >>> found = tune(X, y, truncations=[5, 15], row_sums=[220], thresholds=[0.6], n_splits=2, n_components=100)
    >>> len(found.trials)
    2
    """
    check_integer("n_splits", n_splits, 1)
    for name, given in (("truncations", truncations), ("row_sums", row_sums), ("thresholds", thresholds)):
        if given is not None and len(given) == 0:
            raise InvalidParameterError(f"{name} is empty", advice="pass at least one value")
    progress = progress or Progress()
    codes, _ = encode_labels(y, unlabeled)
    if np.bincount(codes[codes >= 0]).max() < 2:
        raise InvalidParameterError(
            "tuning needs two labels of at least one class", advice="pass more labels", parameter="y"
        )
    learned, held_out = _hold_out(codes, np.random.default_rng(random_state))
    X = canonical(X) if issparse(X) else np.asarray(X)
    X, unseen, codes = X[learned], X[held_out], codes[learned]
    splits = [split_half(codes, np.random.default_rng((random_state, i))) for i in range(n_splits)]
    if row_sums is None:
        progress.tell("choosing row sums from the data")
        row_sums = _row_sums_around_auto(X, random_state, parameters)
    progress.begin(len(row_sums) * len(truncations) * len(thresholds))
    trials: list[Trial] = []
    likelihoods: dict[tuple[float, int], float] = {}
    for row_sum, truncation in product(row_sums, truncations):
        name = f"A = {row_sum:.4g}, C' = {truncation}"
        run = Local(callback=tell_iterations(progress, name))
        mixture = PoissonMixture(truncation=truncation, row_sum=row_sum, execution=run, **parameters)
        classifier = SimpletronClassifier(mixture, n_mixtures=n_mixtures, random_state=random_state)
        with raise_interrupts():
            classifier.fit(X, np.full(codes.size, -1))
        likelihoods[row_sum, truncation] = float(
            np.mean([_likelihood(mixture, unseen) for mixture in classifier.mixtures_])
        )
        for threshold in thresholds:
            progress.tell(f"{name}, threshold {threshold:g}")
            classifier.set_params(labeling=SelfLabeling(threshold=threshold))
            errors = [_validation_error(classifier, codes, *split) for split in splits]
            progress.advance()
            spread = float(np.std(errors, ddof=1)) if n_splits > 1 else float("nan")
            trials.append(
                Trial(truncation, row_sum, threshold, 100 * float(np.mean(errors)), 100 * spread / n_splits**0.5)
            )
    trials.sort(key=lambda trial: trial.error)
    n_train, n_validation = (int(half.size) for half in splits[0])
    return Tuned(trials, likelihoods, n_train, n_validation)


def _row_sums_around_auto(X: Any, random_state: int, parameters: dict[str, Any]) -> list[float]:
    quick = parameters | {"max_iter": 1, "tol": 0.0}
    with raise_interrupts():
        mixture = PoissonMixture(random_state=random_state, **quick).fit(X)
    return [
        mixture.n_features_in_ + factor * (mixture.row_sum_ - mixture.n_features_in_) for factor in _ROW_SUM_FACTORS
    ]


def _validation_error(classifier: SimpletronClassifier, codes: Array, train: Array, validation: Array) -> float:
    some = np.full(codes.shape, -1, np.int64)
    some[train] = codes[train]
    with raise_interrupts():
        classifier.fit_labels(some)
    return float(np.mean(classifier.transduction_[validation] != codes[validation]))


def _hold_out(codes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the rows to learn from and those to measure the likelihood on: unlabeled ones if there are any.

    If all rows are labeled, those that are held out keep a label of each class for either half of the splits.
    """
    candidates = np.flatnonzero(codes < 0)
    if not candidates.size:
        kept = [np.flatnonzero(codes == k)[:2] for k in range(int(codes.max()) + 1)]
        candidates = np.setdiff1d(np.arange(codes.size), np.concatenate(kept))
    n = min(max(round(_HELD_OUT * candidates.size), 1), _MOST_HELD_OUT, candidates.size)
    held_out = np.sort(rng.permutation(candidates)[:n])
    return np.setdiff1d(np.arange(codes.size), held_out), held_out


def _likelihood(mixture: PoissonMixture, X: Matrix) -> float:
    if not X.shape[0]:
        return float("nan")
    n_threads = resolve_threads(mixture.n_jobs)
    rows = normalize(X, mixture.row_sum_)
    energy = FreeEnergy.of(rows, None, -np.log(mixture.n_components_), n_threads)
    with single_threaded_blas():
        return energy.mean(log_likelihood(mixture.model_.fields, rows, n_threads))
