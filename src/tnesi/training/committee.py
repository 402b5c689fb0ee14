"""Committees: a classifier's first layer is one mixture, or several whose activities stand side by side.

The M mixtures of a committee differ in their random starts only. With s^(m) for the activities of mixture m, the second
layer sees the C_1 + ... + C_M activities (s^(1), ..., s^(M)) / M of a row, which sum to 1 like those of one mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from tnesi.execution.given_rows import GivenRows
from tnesi.execution.settings import Listener, Record
from tnesi.model.classifier_model import side_by_side
from tnesi.training.mixture import LearnedMixture, MixtureParameters, learn_mixture
from tnesi.training.monitor import InterruptedWarning, Monitor
from tnesi.training.self_labeling import TopLayer

MOST_MIXTURES = 1000


class Committee(NamedTuple):
    """Mixtures that have learned from the same rows.

    Attributes
    ----------
    mixtures : list of LearnedMixture
    activities : csr_array of shape (n_samples, n_fields)
        Of these rows, side by side.
    trouble : ConvergenceWarning or None
        What to warn about.
    """

    mixtures: list[LearnedMixture]
    activities: sparse.csr_array
    trouble: ConvergenceWarning | None


def learn_committee(
    given: GivenRows,
    parameters: MixtureParameters,
    seeds: Sequence[int],
    listener: Listener | None,
    top: TopLayer | None = None,
) -> Committee:
    """Learn a mixture for each seed, one after the other; `top` is a second layer that learns along with a single one.

    Ctrl-C ends learning of the current mixture, and no other one is begun. If it was the first, or has made a complete
    iteration, it is kept.
    """
    mixtures: list[LearnedMixture] = []
    activities, troubles = [], []
    interrupted = False
    for m, seed in enumerate(seeds, 1):
        monitor = Monitor(float(parameters.tol), listener, place_of(m, len(seeds)))
        try:
            fit = learn_mixture(given, parameters, seed, monitor, top)
            own = fit.activities.to_csr(fit.learned.model.n_fields)
        except KeyboardInterrupt:
            if not mixtures:
                raise
            interrupted = True
            break
        interrupted = monitor.interrupted
        if interrupted and mixtures and len(monitor.history) < 2:  # the first record is of the start
            break
        mixtures.append(fit.learned)
        activities.append(own)
        troubles.append(fit.trouble(parameters))
        parameters = replace(parameters, row_sum=fit.learned.model.row_sum)  # a property of the data: chosen once
        if interrupted:
            break
        del fit  # its activities are large, and those of the next mixture come beside them
    trouble = troubles[0]
    if len(seeds) > 1:
        trouble = _trouble(parameters, len(mixtures), troubles, len(seeds), interrupted=interrupted)
    return Committee(mixtures, side_by_side(activities), trouble)


def place_of(m: int, n_mixtures: int) -> Record:
    """Return what the records of mixture m of a committee, counted from 1, say of it; nothing for a single one."""
    return {"mixture": m, "mixtures": n_mixtures} if n_mixtures > 1 else {}


def mean_lower_bound(mixtures: Sequence[LearnedMixture]) -> float:
    """Return the free energy of the training rows, nats per row, averaged over the mixtures."""
    return float(np.mean([mixture.lower_bound for mixture in mixtures]))


def _trouble(
    parameters: MixtureParameters,
    n_learned: int,
    troubles: list[ConvergenceWarning | None],
    wanted: int,
    *,
    interrupted: bool,
) -> ConvergenceWarning | None:
    if interrupted:
        return InterruptedWarning(
            f"learning was interrupted: the committee has {n_learned} of {wanted} mixtures, each as its last "
            "complete iteration left it"
        )
    unfinished = sum(trouble is not None for trouble in troubles)
    if not unfinished:
        return None
    return ConvergenceWarning(
        f"{parameters.max_iter} iterations did not reach tol={parameters.tol:g} in {unfinished} of {wanted} mixtures: "
        "the model can be used, but more iterations (max_iter) may improve it"
    )
