"""How much memory there is, and what fits into it."""

from __future__ import annotations

from pathlib import Path

_PER_WEIGHT = 24
"""Bytes that learning takes for each weight: W and log W in float32 of two iterations, and those of the start or, where
the rows are many, sums in float64."""
_PER_WEIGHT_LEARNED = 8
"""Bytes that a mixture takes afterwards."""


def free_memory() -> int:
    """Return the memory that can be had on this machine, in bytes; 8 GB where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    free = (int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return next(free, 8 * 2**30)


def check_fields_fit(n_fields: int, n_features: int, n_more: int = 0) -> None:
    """Refuse fields that cannot fit into memory, where `n_more` other mixtures are still to be learned beside them."""
    per_field = n_features * (_PER_WEIGHT + n_more * _PER_WEIGHT_LEARNED)
    room = free_memory()
    if n_fields * per_field <= room:
        return
    raise ValueError(
        f"{n_fields} fields of {n_features} features take {n_fields * per_field / 1e9:.1f} GB of memory to learn, "
        f"{room / 1e9:.1f} GB are free: {_what_fits(room // per_field, n_more)}"
    )


def _what_fits(n_fields: int, n_more: int) -> str:
    fewer = "use fewer features (drop the rarest ones, or choose with sklearn.feature_selection)"
    if n_fields < 1:
        return f"not even one field fits; {fewer}"
    mixtures = ", or fewer mixtures" if n_more else ""
    return f"pass n_components={n_fields} or fewer{mixtures}, or {fewer}"
