"""``tnesi info``, ``tnesi show`` and ``tnesi sample``: inspect a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tnesi.cli.console import Json, Output, Seed, file_size, report_errors
from tnesi.cli.predict import Model
from tnesi.errors import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_IN_PICTURE = 2000
Shape = Annotated[
    str | None, typer.Option(metavar="HxW", help="Height and width, such as 28x28; default: from the model.")
]


@report_errors
def info(model: Model, as_json: Json = False) -> None:
    """Show the contents and origin of a model file without loading it."""
    from tnesi.model_file import read_header

    header = read_header(model)
    out = Output(as_json)
    members = header.members
    features = header.shapes["weights"][1]
    classes = (header.classes or [])[: -1 if header.unknown else None]
    learned: dict[str, Any] = {
        "mixtures": len(members),
        "fields": sum(member.shapes["weights"][0] for member in members),
        "features": features,
        "row_sum": header.row_sum,
        "truncation": header.truncation,
        "iterations": max(member.n_iter for member in members),
        "converged": all(member.converged for member in members),
        "free energy": sum(member.lower_bound for member in members) / len(members),
        "can learn other labels": "labels" in header.shapes,
        "labeling": header.labeling if header.classes else None,
    }
    sections: dict[str, dict[str, Any]] = {
        "": {"kind": header.kind, "size": file_size(model), "format": header.format},
        "learned": learned,
        "classes": {
            "number": len(classes),
            "names": ", ".join(map(str, classes[:20])) + "..." * (len(classes) > 20),
            "unknown rows get": str(header.classes[-1]) or "empty" if header.classes and header.unknown else None,
        },
        "source": {key: value for key, value in header.provenance.items() if key != "columns"},
        "created with": {**header.versions, "date": header.created},
        "parameters": header.parameters,
        "encoder": {"kind": next(iter(header.encoder))} if header.encoder else {},
    }
    if not classes:
        del sections["classes"]
    if header.image_shape:
        learned["image"] = "x".join(map(str, header.image_shape))
    lines = [
        [f"{section}: {key}" if section else key, f"{value:.6g}" if isinstance(value, float) else str(value)]
        for section, entries in sections.items()
        for key, value in entries.items()
        if value not in ("", None)
    ]
    out.table(str(model), ["", ""], lines, text=(0, 1))
    out.finish(
        file=model,
        kind=header.kind,
        format=header.format,
        classes=header.classes,
        unknown=header.unknown,
        image_shape=header.image_shape,
        learned=learned,
        parameters=header.parameters,
        provenance=header.provenance,
        created=header.created,
        versions=header.versions,
        shapes=header.shapes,
    )


@report_errors
def show(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="Image to write: .png, .svg or .pdf.")],
    fields: Annotated[int, typer.Option(min=1, max=2000, metavar="N", help="Number of fields.")] = 100,
    shape: Shape = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw fields of a model as images, each next to a column with its classes.

    [bold]Example[/bold]

      tnesi show mnist.tnesi -o fields.png
    """
    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.model_file import load, read_header, split_pipeline
    from tnesi.report.fields import plot_fields
    from tnesi.report.labels import METHODS

    out = Output(as_json)
    with out.progress("drawing"):
        _, found = split_pipeline(load(model))
        given = read_header(model).image_shape if shape is None else _parse(shape)
        figure = plot_fields(found, shape=given, n_fields=fields, random_state=seed)
        _save(figure, output)
    n_mixtures = len(found.mixtures_) if isinstance(found, SimpletronClassifier) else 1
    several = f", with fields of all {n_mixtures} mixtures" if n_mixtures > 1 else ""
    out.say(f"Written to {output}{several}.")
    method = found.labeling_ if isinstance(found, SimpletronClassifier) and found.classes_.size else None
    if method is not None:
        out.say(METHODS[method])
    out.finish(output=output, mixtures=n_mixtures, labeling=method)


@report_errors
def sample(
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Image (.png, .svg, .pdf) or data (.npy, .csv) to write.")
    ],
    number: Annotated[
        int, typer.Option("--number", "-n", min=1, max=1_000_000, metavar="N", help="Number of rows.")
    ] = 40,
    shape: Shape = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Sample new rows from the model: Poisson counts around a random field.

    [bold]Example[/bold]

      tnesi sample mnist.tnesi -n 60 -o samples.png
    """
    import numpy as np

    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.model_file import load, read_header, split_pipeline
    from tnesi.report.fields import plot_rows
    from tnesi.system.files import replacing

    out = Output(as_json)
    with out.progress("drawing"):
        _, found = split_pipeline(load(model))
        mixtures = found.mixtures_ if isinstance(found, SimpletronClassifier) else [found]
        rows, _ = mixtures[0].set_params(random_state=seed).sample(number)
        rows = np.maximum(rows - 1, 0)  # undo the 1 that normalization adds to each feature
        if output.suffix == ".npy":
            with replacing(output) as temporary, temporary.open("wb") as file:
                np.save(file, rows, allow_pickle=False)
        elif output.suffix == ".csv":
            with replacing(output) as temporary:
                np.savetxt(temporary, rows, fmt="%d", delimiter=",")
        elif number > _MOST_IN_PICTURE:
            raise InvalidParameterError(
                "{number} exceeds {most} rows, the limit for images",
                advice="reduce it or write .npy",
                parameter="number",
                most=_MOST_IN_PICTURE,
            )
        else:
            given = read_header(model).image_shape if shape is None else _parse(shape)
            _save(plot_rows(rows, shape=given), output, ", or for data in .npy or .csv")
    several = f", drawn from the first of {len(mixtures)} mixtures" if len(mixtures) > 1 else ""
    out.say(f"{number} rows written to {output}{several}.")
    out.finish(output=output, rows=number)


def _parse(shape: str) -> tuple[int, int]:
    height, _, width = shape.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise InvalidParameterError(
            "{shape} {text} is not height and width, such as 28x28", parameter="shape", text=shape
        )
    return int(height), int(width)


def _save(figure: Figure, output: Path, also: str = "") -> None:
    from tnesi.system.files import replacing

    kind = output.suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise InvalidParameterError(
            "{path} has an unsupported suffix",
            advice="use .png, .svg or .pdf{also}",
            parameter="output",
            path=output,
            also=also,
        )
    with replacing(output) as temporary:
        figure.savefig(temporary, format=kind)
