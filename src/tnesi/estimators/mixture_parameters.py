"""What the parameters of a mixture may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tnesi.estimators.parameters import check_choice, check_integer, check_real
from tnesi.system.threads import resolve_threads
from tnesi.training.mixture import DEFAULT_TRUNCATION, MixtureParameters

LARGEST_ROW_SUM = 1e12
LARGEST_PRIOR_STRENGTH = 1e6
MOST_THREADS = 1024
MOST = 2**31 - 1


def check_mixture(given: Mapping[str, Any]) -> None:
    """Refuse parameters with which a mixture could not learn; `given` has them by their names."""
    if given["n_components"] != "auto":
        check_integer("n_components", given["n_components"], 1, ", or 'auto'", most=MOST)
    if given["truncation"] is not None:
        check_integer("truncation", given["truncation"], 1, ", or None for the non-truncated mixture", most=MOST)
        too_many = given["n_components"] != "auto" and given["truncation"] > given["n_components"]
        if too_many and given["truncation"] != DEFAULT_TRUNCATION:
            raise ValueError(
                f"truncation={given['truncation']} is more than the {given['n_components']} fields: pass at most "
                "n_components, or None for the non-truncated mixture"
            )
    if given["row_sum"] != "auto":
        check_real("row_sum", given["row_sum"], 0, LARGEST_ROW_SUM, open_low=True)
    if given["n_threads"] is not None:
        check_integer("n_threads", given["n_threads"], 1, ", or None for all processors", most=MOST_THREADS)
    if given["callback"] is not None and not callable(given["callback"]):
        raise ValueError(f"callback={given['callback']!r}: pass a function, or None")
    check_choice("engine", given["engine"], ("local", "dask"))
    if given["engine"] == "dask" and given["solver"] == "hebbian":
        raise ValueError("solver='hebbian' goes through the rows one by one: pass engine='local', or solver='em'")
    if given["resume"] and given["checkpoint"] is None:
        raise ValueError("resume=True: pass the folder that has the state as checkpoint")
    check_choice("solver", given["solver"], ("em", "hebbian"))
    check_choice("search", given["search"], ("neighbors", "exact"))
    check_choice("zero_rows", given["zero_rows"], ("error", "uniform"))
    check_integer("max_iter", given["max_iter"], 1, most=MOST)
    check_real("tol", given["tol"], 0)
    if given["half_life"] is not None:
        check_real("half_life", given["half_life"], 0, open_low=True)
    check_real("prior_strength", given["prior_strength"], 0, LARGEST_PRIOR_STRENGTH)
    check_integer("batch_size", given["batch_size"], 1, most=MOST)
    check_real("learning_rate", given["learning_rate"], 0, open_low=True)


def parameters_from(given: Mapping[str, Any]) -> MixtureParameters:
    """Return what learning needs to know; `given` has the parameters of an estimator by their names."""
    known = {entry.name: given[entry.name] for entry in fields(MixtureParameters)}
    folder = given["checkpoint"]
    known |= {
        "n_threads": resolve_threads(given["n_threads"]),
        "checkpoint": None if folder is None else Path(folder),
        "resume": bool(given["resume"]),
    }
    return MixtureParameters(**known)
