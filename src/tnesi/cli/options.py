"""What several commands share: options, and what becomes of their words."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    int, typer.Option(min=1, max=1000, metavar="M", help="A committee of so many mixtures: better, and M times slower.")
]
Truncation = Annotated[str, typer.Option(metavar="C'", help="Fields that may explain a row; none: all of them.")]
Norm = Annotated[str, typer.Option(metavar="A", help="The sum to which rows are normalized; auto: from the data.")]
Unlabeled = Annotated[
    str, typer.Option(metavar="MARKER", help="The label of rows that have none, besides empty ones. Not a class.")
]
EngineName = Annotated[str, typer.Option("--engine", help="local: in this process. dask: on the workers of a cluster.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Scheduler of the Dask cluster; without one, a cluster is started on this machine."
    ),
]
ZeroRows = Annotated[str, typer.Option(help="How to handle all-zero rows. uniform: as evenly spread. error: refuse.")]


def parameters_of(**given: Any) -> dict[str, Any]:
    """Turn words of the command line into parameters."""
    if given.get("scheduler") is not None and given.get("engine") != "dask":
        raise ValueError("--scheduler is the address of a Dask cluster: give --engine dask too")
    for name, words in (("n_components", {"auto": "auto"}), ("truncation", {"none": None, "all": None})):
        text = given[name].lower()
        try:
            given[name] = words[text] if text in words else int(text)
        except ValueError:
            option = {"n_components": "fields"}.get(name, name)
            raise ValueError(f"--{option} {text}: give a whole number, or {' or '.join(words)}") from None
    if given["row_sum"] != "auto":
        try:
            given["row_sum"] = float(given["row_sum"])
        except ValueError:
            raise ValueError(f"--row_sum {given['row_sum']}: give a number, or auto") from None
    return given


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


def tell_of_scales(data: Data) -> None:
    """Warn of columns that cannot be compared."""
    from tnesi.data.scales import unequal_columns

    if text := unequal_columns(data):
        warnings.warn(text, stacklevel=2)
