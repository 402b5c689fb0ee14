"""What the parameters of a classifier may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tnesi.estimators.mixture_parameters import MOST, check_mixture
from tnesi.estimators.parameters import check_choice, check_integer, check_real
from tnesi.training.committee import MOST_MIXTURES


def check_classifier(given: Mapping[str, Any]) -> None:
    """Refuse parameters with which a classifier could not learn; `given` has them by their names."""
    if given["keep_rows"] != "auto":
        check_integer("keep_rows", given["keep_rows"], 2, ", or 'auto'", most=MOST)
    _check_second_layer(given)
    check_mixture(given)
    _check_committee(given)


def _check_second_layer(given: Mapping[str, Any]) -> None:
    for name in ("self_labeling", "recurrent"):
        if not isinstance(given[name], (bool, np.bool_)):
            raise ValueError(f"{name}={given[name]!r}: pass True or False")
    check_real("threshold", given["threshold"], 0, 1)
    check_real("label_learning_rate", given["label_learning_rate"], 0, open_low=True)
    check_integer("label_max_iter", given["label_max_iter"], 1, most=MOST)
    method = given["label_method"]
    check_choice("label_method", method, ("auto", "hebbian", "cluster", "soft"))
    check_integer("unknown_classes", given["unknown_classes"], 0, most=MOST)
    published = given["solver"] == "hebbian" or given["recurrent"] or not given["self_labeling"]
    if published and method in ("cluster", "soft"):
        raise ValueError(
            f"label_method={method!r} needs solver='em', recurrent=False and self_labeling=True: pass these, or "
            "label_method='hebbian'"
        )
    if given["unknown_classes"] and (published or method not in ("auto", "cluster")):
        raise ValueError(
            f"unknown_classes={given['unknown_classes']}: classes without a label are found as clusters, which needs "
            "label_method='auto' or 'cluster', solver='em', recurrent=False and self_labeling=True"
        )


def _check_committee(given: Mapping[str, Any]) -> None:
    check_integer("n_mixtures", given["n_mixtures"], 1, most=MOST_MIXTURES)
    if given["engine"] == "dask" and given["recurrent"]:
        raise ValueError("recurrent=True needs all rows in one process: pass engine='local', or recurrent=False")
    if given["n_mixtures"] > 1 and (given["solver"] != "em" or given["recurrent"]):
        raise ValueError(
            f"n_mixtures={given['n_mixtures']}: committees need solver='em' and recurrent=False; pass these, or "
            "n_mixtures=1"
        )
    if given["checkpoint"] is not None and given["recurrent"]:
        raise ValueError("checkpoint: a recurrent network cannot keep its state; pass recurrent=False, or None")
