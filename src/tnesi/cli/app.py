"""The command line application. Imports are light so that help is fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

import tnesi
from tnesi.cli import data, demo, fit, inspect, label, predict, reproduce, tune
from tnesi.cli.console import paragraphs

app = typer.Typer(
    name="tnesi",
    help="Learn classifiers from a few labels and plenty of unlabeled data.\n\n"
    "DATA is a file (.npy, .npz, CSV, JSON lines, Parquet, IDX, Zarr), a folder of images or text files, or the name "
    "of a data set (see [bold]tnesi data list[/bold]). To get started:\n\n"
    "  tnesi demo\n\n"
    "  tnesi fit digits --labels-per-class 10 -o digits.tnesi\n\n"
    "  tnesi show digits.tnesi -o fields.png",
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tnesi {tnesi.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _add(command: Callable[..., Any], panel: str) -> None:
    app.command(rich_help_panel=panel, help=paragraphs(command))(command)


_LEARN, _LOOK, _PAPER = "Learn and predict", "Look at data and models", "The paper"
_add(demo.demo, _LEARN)
_add(fit.fit, _LEARN)
_add(label.label, _LEARN)
_add(predict.predict, _LEARN)
_add(predict.evaluate, _LEARN)
_add(tune.tune, _LEARN)
_add(inspect.info, _LOOK)
_add(inspect.show, _LOOK)
_add(inspect.sample, _LOOK)
app.add_typer(data.app, name="data", rich_help_panel=_LOOK)
_add(reproduce.reproduce, _PAPER)
_add(reproduce.report, _PAPER)
