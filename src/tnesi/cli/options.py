"""What several commands share: options, and what becomes of their words."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tnesi.system.files import check_place

if TYPE_CHECKING:
    from tnesi.data import Data

AnyData = Annotated[str, typer.Argument(metavar="DATA", help="File, folder of images, or name of a data set.")]
PerClass = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Use only N labels of each class, drawn with --seed.")
]
Fields = Annotated[str, typer.Option(metavar="C", help="Number of fields; auto: a sixth of the rows, at most 10,000.")]
Mixtures = Annotated[
    int,
    typer.Option(
        min=1, max=1000, metavar="M", help="Number of mixtures; a committee is more accurate and M times slower."
    ),
]
Truncation = Annotated[
    str, typer.Option(metavar="C'", help="Number of fields that may explain a row; none: all of them.")
]
RowSum = Annotated[
    str, typer.Option(metavar="A", help="Sum to which each row is normalized; auto: chosen from the data.")
]
Unlabeled = Annotated[
    str, typer.Option(metavar="MARKER", help="Label that marks unlabeled rows, besides empty labels.")
]
DaskCluster = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Learn on the Dask cluster of this scheduler; local starts one on this machine.",
    ),
]


def read_fields(text: str) -> int | Literal["auto"]:
    """Return a number of fields."""
    return "auto" if text.lower() == "auto" else _whole("fields", text, "auto")


def read_truncation(text: str) -> int | None:
    """Return a truncation."""
    return None if text.lower() in ("none", "all") else _whole("truncation", text, "none")


def read_row_sum(text: str) -> float | Literal["auto"]:
    """Return a row sum."""
    if text.lower() == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--row-sum {text}: give a number, or auto") from None


def _whole(option: str, text: str, other: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--{option} {text}: give a whole number, or {other}") from None


def drawn_labels(found: Data, per_class: int | None, seed: int, unlabeled: str) -> Any:
    """Return the labels to learn from, with None for rows without one; None if there are no labels at all."""
    import numpy as np

    from tnesi.data import few_labels

    if found.labels is None:
        return None if per_class is None else found.y  # which says what is missing
    y = np.array(found.labels, dtype=object)
    y[[str(label) == unlabeled for label in y]] = None
    return y if per_class is None else few_labels(y, per_class, np.random.default_rng(seed), unlabeled=None)


def check_output(output: Path, *inputs: Path | str | None) -> None:
    """Refuse, before any work, an output that cannot be written or that is one of the inputs."""
    if not str(output) or str(output) == ".":
        raise ValueError("the name of the output is empty: give a file with -o")
    for given in inputs:
        if given is not None and output.exists() and Path(given).exists() and output.samefile(given):
            raise ValueError(f"{output} is what is read: give another name with -o")
    check_place(output)


def warn_about_scales(data: Data) -> None:
    """Warn of columns that cannot be compared."""
    from tnesi.data.scales import unequal_columns

    if text := unequal_columns(data):
        warnings.warn(text, stacklevel=2)
