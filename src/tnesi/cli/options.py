"""Options of several commands, and their parsing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tnesi.cli.console import INPUT, MODEL, RESOURCES
from tnesi.errors import InvalidParameterError
from tnesi.system.files import check_place

if TYPE_CHECKING:
    from tnesi.data import Data

AnyData = Annotated[str, typer.Argument(metavar="DATA", help="File, folder, or name of a data set.")]
PerClass = Annotated[
    int | None, typer.Option(min=1, metavar="N", rich_help_panel=INPUT, help="Use only N random labels of each class.")
]
Fields = Annotated[str, typer.Option(metavar="N", rich_help_panel=MODEL, help="Number of fields, or auto.")]
Mixtures = Annotated[
    int,
    typer.Option(
        min=1,
        max=1000,
        metavar="N",
        rich_help_panel=MODEL,
        help="Number of mixtures; more are slower and more accurate.",
    ),
]
Truncation = Annotated[
    str, typer.Option(metavar="N", rich_help_panel=MODEL, help="Number of fields that may explain a row, or none.")
]
RowSum = Annotated[
    str, typer.Option(metavar="A", rich_help_panel=MODEL, help="Sum to which each row is normalized, or auto.")
]
Unlabeled = Annotated[
    str, typer.Option(metavar="MARKER", rich_help_panel=INPUT, help="Label that marks unlabeled rows.")
]
DaskCluster = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        rich_help_panel=RESOURCES,
        help="Dask scheduler to encode and learn on, or local.",
    ),
]


def read_fields(text: str) -> int | Literal["auto"]:
    """Return a number of fields."""
    return "auto" if text.lower() == "auto" else _whole("n_components", text, "auto")


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
        raise InvalidParameterError(
            "{row_sum} {text} is not a number or auto", parameter="row_sum", text=text
        ) from None


def _whole(name: str, text: str, other: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidParameterError(
            f"{{{name}}} {{text}} is not an integer or {other}", parameter=name, text=text
        ) from None


def drawn_labels(found: Data, per_class: int | None, seed: int, unlabeled: str) -> Any:
    """Return the labels to learn from, None for unlabeled rows; None if there are no labels at all."""
    import numpy as np

    from tnesi.data import few_labels

    if found.labels is None:
        return None if per_class is None else found.y  # raises an error
    y = np.array(found.labels, dtype=object)
    y[[str(label) == unlabeled for label in y]] = None
    return y if per_class is None else few_labels(y, per_class, np.random.default_rng(seed), unlabeled=None)


def check_output(output: Path, *inputs: Path | str | None) -> None:
    """Raise an error early if an output cannot be written or is one of the inputs."""
    if not str(output) or str(output) == ".":
        raise InvalidParameterError("{output} is empty", advice="pass a file name", parameter="output")
    for given in inputs:
        if given is not None and output.exists() and Path(given).exists() and output.samefile(given):
            raise InvalidParameterError(
                "{path} is an input", advice="choose another {output}", parameter="output", path=output
            )
    check_place(output)


def warn_about_scales(data: Data) -> None:
    """Warn about columns in different units."""
    from tnesi.data.scales import unequal_columns

    if text := unequal_columns(data):
        warnings.warn(text, stacklevel=2)
