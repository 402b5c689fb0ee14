"""Committees: the first layer of a classifier is one mixture, or several whose activities are concatenated.

The M mixtures of a committee differ only in their random initialization. With the activities s^(m) of mixture m, the
input of the second layer is (s^(1), ..., s^(M)) / M, which has C_1 + ... + C_M entries and sums to 1.
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
from tnesi.training.self_labeling import ClassLearner

MOST_MIXTURES = 1000


class Committee(NamedTuple):
    """Mixtures learned from the same rows.

    Attributes
    ----------
    mixtures : list of LearnedMixture
    activities : csr_array of shape (n_samples, n_fields)
        Activities of these rows, concatenated.
    warning : ConvergenceWarning or None
    """

    mixtures: list[LearnedMixture]
    activities: sparse.csr_array
    warning: ConvergenceWarning | None


def learn_committee(
    given: GivenRows,
    parameters: MixtureParameters,
    seeds: Sequence[int],
    listener: Listener | None,
    learner: ClassLearner | None = None,
) -> Committee:
    """Learn a mixture for each seed, one after the other; `learner` learns classes along with a single mixture.

    Ctrl-C ends learning of the current mixture and skips the remaining ones. The current mixture is kept if it is the
    first or has completed an iteration.
    """
    mixtures: list[LearnedMixture] = []
    activities, warnings = [], []
    interrupted = False
    for m, seed in enumerate(seeds, 1):
        monitor = Monitor(float(parameters.tol), listener, committee_place(m, len(seeds)))
        try:
            fit = learn_mixture(given, parameters, seed, monitor, learner)
            own = fit.activities.to_csr(fit.learned.model.n_fields)
        except KeyboardInterrupt:
            if not mixtures:
                raise
            interrupted = True
            break
        interrupted = monitor.interrupted
        if interrupted and mixtures and len(monitor.history) < 2:  # the first record is the initialization
            break
        mixtures.append(fit.learned)
        activities.append(own)
        warnings.append(fit.warning(parameters))
        parameters = replace(parameters, row_sum=fit.learned.model.row_sum)  # chosen once, since it depends on the data
        if interrupted:
            break
        del fit  # frees its activities, which are large
    warning = warnings[0]
    if len(seeds) > 1:
        warning = _committee_warning(parameters, len(mixtures), warnings, len(seeds), interrupted=interrupted)
    return Committee(mixtures, side_by_side(activities), warning)


def committee_place(m: int, n_mixtures: int) -> Record:
    """Return the entries that identify mixture m of a committee, counted from 1, in records; none for a single one."""
    return {"mixture": m, "mixtures": n_mixtures} if n_mixtures > 1 else {}


def mean_lower_bound(mixtures: Sequence[LearnedMixture]) -> float:
    """Return the free energy of the training rows in nats per row, averaged over the mixtures."""
    return float(np.mean([mixture.lower_bound for mixture in mixtures]))


def _committee_warning(
    parameters: MixtureParameters,
    n_learned: int,
    warnings: list[ConvergenceWarning | None],
    wanted: int,
    *,
    interrupted: bool,
) -> ConvergenceWarning | None:
    if interrupted:
        return InterruptedWarning(
            f"learning was interrupted: the committee has {n_learned} of {wanted} mixtures, each after its last "
            "complete iteration"
        )
    unfinished = sum(warning is not None for warning in warnings)
    if not unfinished:
        return None
    return ConvergenceWarning(
        f"{parameters.max_iter} iterations did not reach tol={parameters.tol:g} in {unfinished} of {wanted} mixtures: "
        "the model can be used, but a larger max_iter may improve it"
    )
