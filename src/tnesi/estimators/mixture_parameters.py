"""Validation of the parameters of a mixture."""

from __future__ import annotations

import re
from typing import Any

from tnesi.errors import InvalidParameterError
from tnesi.estimators.parameters import check_choice, check_integer, check_real, reject
from tnesi.execution.settings import Local, Torch
from tnesi.training.mixture import DEFAULT_TRUNCATION

LARGEST_ROW_SUM = 1e12
LARGEST_PRIOR_STRENGTH = 1e6
MOST_THREADS = 1024
MOST = 2**31 - 1
_DEVICE = "auto|cpu|mps|cuda(:[0-9]{1,3})?"


def check_fields(n_components: Any, truncation: Any, row_sum: Any) -> None:
    """Raise an error if the number of fields, the truncation or the row sum is invalid."""
    if n_components != "auto":
        check_integer("n_components", n_components, 1, ", or 'auto'", most=MOST)
    if truncation is not None:
        check_integer("truncation", truncation, 1, ", or None for the non-truncated mixture", most=MOST)
        too_many = n_components != "auto" and truncation > n_components
        if too_many and truncation != DEFAULT_TRUNCATION:
            raise InvalidParameterError(
                "{truncation}={given} exceeds the number of fields ({fields})",
                given=truncation,
                fields=n_components,
                parameter="truncation",
                advice="pass at most {n_components}, or None for the non-truncated mixture",
            )
    if row_sum != "auto":
        check_real("row_sum", row_sum, 0, LARGEST_ROW_SUM, open_low=True)


def check_run(execution: object, n_jobs: object) -> None:
    """Raise an error if the execution settings or the number of threads are invalid."""
    if n_jobs is not None and n_jobs != -1:
        check_integer("n_jobs", n_jobs, 1, ", or None or -1 for all processors", most=MOST_THREADS)
    if execution is None:
        return
    if not isinstance(execution, Local):
        raise InvalidParameterError(
            "{execution}={given!r} is not an execution",
            given=execution,
            parameter="execution",
            advice="pass tnesi.execution.Local(...), Dask(...) or Torch(...), or None",
        )
    if isinstance(execution, Torch) and not re.fullmatch(_DEVICE, str(execution.device)):
        reject("device", execution.device, "pass 'auto', 'cuda', 'cuda:1', 'mps' or 'cpu'")
    if execution.callback is not None and not callable(execution.callback):
        raise InvalidParameterError(
            "{callback}={given!r}", given=execution.callback, parameter="callback", advice="pass a function, or None"
        )
    if execution.resume and execution.checkpoint is None:
        raise InvalidParameterError(
            "{resume:True} needs the folder with the state", parameter="resume", advice="pass it as {checkpoint}"
        )


def check_mixture(given: dict[str, Any]) -> None:
    """Raise an error if a parameter is invalid; `given` has the parameters by name."""
    check_fields(given["n_components"], given["truncation"], given["row_sum"])
    check_choice("search", given["search"], ("neighbors", "exact"))
    check_integer("max_iter", given["max_iter"], 1, most=MOST)
    check_real("tol", given["tol"], 0)
    if given["half_life"] is not None:
        check_real("half_life", given["half_life"], 0, open_low=True)
    check_real("prior_strength", given["prior_strength"], 0, LARGEST_PRIOR_STRENGTH)
    check_run(given["execution"], given["n_jobs"])
