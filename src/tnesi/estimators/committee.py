"""Committees: a classifier's first layer is one mixture, or several whose activities stand side by side.

The M mixtures of a committee differ in their random starts only. With s^(m) for the activities of mixture m, the second
layer sees the C_1 + ... + C_M activities (s^(1), ..., s^(M)) / M of a row, which sum to 1 like those of one mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tnesi.estimators.parameters import check_integer
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.training_rows import TrainingRows
from tnesi.model.fields import Prior
from tnesi.model.rows import Matrix
from tnesi.training.monitor import Monitor, Record
from tnesi.training.self_labeling import TopLayer

Array = npt.NDArray[Any]

MOST_MIXTURES = 1000
_PARAMETERS = (
    "n_components",
    "truncation",
    "norm",
    "solver",
    "search",
    "max_iter",
    "tol",
    "shrinkage",
    "batch_size",
    "learning_rate",
    "zero_rows",
    "half_life",
    "n_threads",
    "verbose",
    "callback",
    "engine",
    "scheduler",
    "checkpoint",
    "resume",
)


class Committee(NamedTuple):
    """Mixtures that have learned from the same rows.

    Attributes
    ----------
    mixtures : list of PoissonMixture
    activities : csr_array of shape (n_samples, n_fields)
        Of these rows, side by side.
    trouble : str or None
        What to warn of.
    """

    mixtures: list[PoissonMixture]
    activities: sparse.csr_array
    trouble: str | None


def new_mixture(settings: Any, **changes: Any) -> PoissonMixture:
    """Return a mixture, not fitted yet, with the parameters of a classifier."""
    return PoissonMixture(**{name: getattr(settings, name) for name in _PARAMETERS} | changes)


def check_committee(settings: Any) -> None:
    """Refuse parameters with which a classifier could not learn its first layer."""
    new_mixture(settings)._check_parameters()
    check_integer("n_mixtures", settings.n_mixtures, 1, most=MOST_MIXTURES)
    if settings.engine == "dask" and settings.recurrent:
        raise ValueError("recurrent=True needs all rows in one process: pass engine='local', or recurrent=False")
    if settings.n_mixtures > 1 and (settings.solver != "em" or settings.recurrent):
        raise ValueError(
            f"n_mixtures={settings.n_mixtures}: committees need solver='em' and recurrent=False; pass these, or "
            "n_mixtures=1"
        )
    if settings.checkpoint is not None and settings.recurrent:
        raise ValueError("checkpoint: a recurrent network cannot keep its state; pass recurrent=False, or None")


def learn_committee(settings: Any, seeds: Sequence[int], rows: TrainingRows, top: TopLayer | None = None) -> Committee:
    """Learn a mixture for each seed, one after the other; `top` is a second layer that learns along with a single one.

    Ctrl-C ends learning of the mixture at hand, and no other one is begun. If it was the first, or has made a complete
    iteration, it is kept.
    """
    mixtures: list[PoissonMixture] = []
    activities, troubles = [], []
    norm, interrupted = settings.norm, False
    for m, seed in enumerate(seeds, 1):
        mixture = new_mixture(settings, norm=norm, random_state=seed)
        place = {"mixture": m, "mixtures": len(seeds)} if len(seeds) > 1 else None
        try:
            own, monitor = _learn(mixture, settings, rows, top, place)
        except KeyboardInterrupt:
            if not mixtures:
                raise
            interrupted = True
            break
        interrupted = monitor.interrupted
        if interrupted and mixtures and len(monitor.history) < 2:  # the first record is of the start
            break
        mixtures.append(mixture)
        activities.append(own)
        troubles.append(mixture._trouble(monitor))
        norm = mixture.norm_  # a property of the data: "auto" is chosen once
        if interrupted:
            break
    trouble = troubles[0] if len(seeds) == 1 else _trouble(mixtures, troubles, len(seeds), interrupted=interrupted)
    return Committee(mixtures, side_by_side(activities), trouble)


def _learn(
    mixture: PoissonMixture, settings: Any, rows: TrainingRows, top: TopLayer | None, place: Record | None
) -> tuple[sparse.csr_array, Monitor]:
    mixture.n_features_in_ = settings.n_features_in_
    if hasattr(settings, "feature_names_in_"):
        mixture.feature_names_in_ = settings.feature_names_in_
    activities, monitor = mixture._learn(rows.given, top, place)
    return activities.to_csr(mixture.n_components_), monitor


def activate(mixtures: Sequence[PoissonMixture], X: Matrix, prior: Prior | None, settings: Any) -> sparse.csr_array:
    """Return the activities of checked rows; `settings` is the estimator whose n_threads and zero_rows count."""
    return side_by_side([m._activate(X, prior, settings)[1].to_csr(m.n_components_) for m in mixtures])


def mean_lower_bound(mixtures: Sequence[PoissonMixture]) -> float:
    """Return the free energy of the training rows, nats per row, averaged over the mixtures."""
    return float(np.mean([mixture.lower_bound_ for mixture in mixtures]))


def side_by_side(activities: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """Return the activities of all mixtures; rows sum to 1."""
    if len(activities) == 1:
        return activities[0]
    joined: sparse.csr_array = sparse.hstack(activities, format="csr")
    joined.data /= len(activities)
    return joined


def _trouble(
    mixtures: list[PoissonMixture], troubles: list[str | None], wanted: int, *, interrupted: bool
) -> str | None:
    if interrupted:
        return (
            f"learning was interrupted: the committee has {len(mixtures)} of {wanted} mixtures, each as its last "
            "complete iteration left it"
        )
    unfinished = sum(trouble is not None for trouble in troubles)
    if not unfinished:
        return None
    first = mixtures[0]
    return (
        f"{first.max_iter} iterations did not reach tol={first.tol:g} in {unfinished} of {wanted} mixtures: the model "
        "can be used, but more iterations (max_iter) may improve it"
    )
