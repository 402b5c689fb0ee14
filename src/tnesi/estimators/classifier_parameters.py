"""Validation of the parameters of a classifier."""

from __future__ import annotations

from typing import Any

from tnesi.errors import InvalidParameterError
from tnesi.estimators.mixture_parameters import MOST, check_run
from tnesi.estimators.parameters import check_choice, check_integer, check_real
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.labeling.second_layer import METHODS, SelfLabeling
from tnesi.training.committee import MOST_MIXTURES


def check_classifier(given: dict[str, Any]) -> None:
    """Raise an error if a parameter is invalid; `given` has the parameters by name."""
    mixture = given["mixture"]
    if mixture is not None and not isinstance(mixture, PoissonMixture):
        raise InvalidParameterError(
            "{mixture}={given!r} is not a mixture",
            given=mixture,
            parameter="mixture",
            advice="pass a PoissonMixture, such as PoissonMixture(500), or None",
        )
    if mixture is not None:
        mixture.check_parameters()
    check_labeling(given["labeling"])
    check_integer("n_mixtures", given["n_mixtures"], 1, most=MOST_MIXTURES)
    check_integer("unknown_classes", given["unknown_classes"], 0, most=MOST)
    if given["unknown_classes"] and given["labeling"] not in ("auto", "clusters"):
        raise InvalidParameterError(
            "{unknown_classes}={given} needs clusters, since unknown classes are found as clusters",
            given=given["unknown_classes"],
            parameter="unknown_classes",
            advice="pass {labeling:clusters} or {labeling:auto}",
        )
    if given["keep_rows"] != "auto":
        check_integer("keep_rows", given["keep_rows"], 2, ", or 'auto'", most=MOST)
    check_run(None, given["n_jobs"])


def check_labeling(labeling: object) -> None:
    """Raise an error unless `labeling` is a valid method or `SelfLabeling`."""
    if isinstance(labeling, SelfLabeling):
        check_real("threshold", labeling.threshold, 0, 1)
        check_real("learning_rate", labeling.learning_rate, 0, open_low=True)
        check_integer("max_iter", labeling.max_iter, 1, most=MOST)
        check_integer("batch_size", labeling.batch_size, 1, most=MOST)
    else:
        check_choice("labeling", labeling, METHODS)
