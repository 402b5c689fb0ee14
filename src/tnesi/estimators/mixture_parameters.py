"""What the parameters of a mixture may be."""

from __future__ import annotations

from typing import Any

from tnesi.estimators.parameters import check_choice, check_integer, check_real

DEFAULT_TRUNCATION = 15
LARGEST_NORM = 1e12
LARGEST_SHRINKAGE = 1e6
MOST_THREADS = 1024
MOST = 2**31 - 1


def check_mixture(settings: Any) -> None:
    """Refuse parameters with which a mixture could not learn; `settings` is the mixture."""
    if settings.n_components != "auto":
        check_integer("n_components", settings.n_components, 1, ", or 'auto'", most=MOST)
    if settings.truncation is not None:
        check_integer("truncation", settings.truncation, 1, ", or None for the non-truncated mixture", most=MOST)
        too_many = settings.n_components != "auto" and settings.truncation > settings.n_components
        if too_many and settings.truncation != DEFAULT_TRUNCATION:
            raise ValueError(
                f"truncation={settings.truncation} is more than the {settings.n_components} fields: pass at most "
                "n_components, or None for the non-truncated mixture"
            )
    if settings.norm != "auto":
        check_real("norm", settings.norm, 0, LARGEST_NORM, open_low=True)
    if settings.n_threads is not None:
        check_integer("n_threads", settings.n_threads, 1, ", or None for all processors", most=MOST_THREADS)
    if settings.callback is not None and not callable(settings.callback):
        raise ValueError(f"callback={settings.callback!r}: pass a function, or None")
    check_choice("engine", settings.engine, ("local", "dask"))
    if settings.engine == "dask" and settings.solver == "hebbian":
        raise ValueError("solver='hebbian' goes through the rows one by one: pass engine='local', or solver='em'")
    if settings.resume and settings.checkpoint is None:
        raise ValueError("resume=True: pass the folder that has the state as checkpoint")
    check_choice("solver", settings.solver, ("em", "hebbian"))
    check_choice("search", settings.search, ("neighbors", "exact"))
    check_choice("zero_rows", settings.zero_rows, ("error", "uniform"))
    check_integer("max_iter", settings.max_iter, 1, most=MOST)
    check_real("tol", settings.tol, 0)
    if settings.half_life is not None:
        check_real("half_life", settings.half_life, 0, open_low=True)
    check_real("shrinkage", settings.shrinkage, 0, LARGEST_SHRINKAGE)
    check_integer("batch_size", settings.batch_size, 1, most=MOST)
    check_real("learning_rate", settings.learning_rate, 0, open_low=True)
