"""``tnesi demo``: a comparison with scikit-learn on few labels, in half a minute."""

from __future__ import annotations

import shutil
import sys
import time
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from tnesi.cli.console import Json, Output, Quiet, report_errors


@report_errors
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="PNG", help="Where to write the plot.")] = Path(
        "demo.png"
    ),
    draws: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Number of random draws of labels.")] = 10,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare tnesi with scikit-learn on 8 x 8 digits with 1, 2, 5 and 10 labels per class.

    All classifiers use default settings and the same random labels. The data set comes with scikit-learn.

    [bold]Example[/bold]

      tnesi demo
    """
    from tnesi.data import load_named
    from tnesi.paper.comparison import compare
    from tnesi.report.figures.canvas import to_png
    from tnesi.report.figures.errors import error_by_method
    from tnesi.system.files import replacing

    out = Output(as_json, quiet)
    began = time.perf_counter()
    with out.progress("comparing classifiers") as progress:
        data = load_named("digits")
        rows = compare(data, draws=draws, progress=progress)
        progress.tell("drawing the plot")
        picture = to_png(error_by_method({data.name: "8 x 8 digits"}, rows).figure, dpi=160)
        output.parent.mkdir(parents=True, exist_ok=True)
        with replacing(output) as temporary:
            temporary.write_bytes(picture)
    numbers = list(dict.fromkeys(row["labels_per_class"] for row in rows))
    cells = [
        [method, *(_plus_minus(row["ours"]) for row in own)]
        for method, own in groupby(rows, key=lambda row: row["method"])
    ]
    of_draws = f"mean of {draws} draws of labels ± standard error" if draws > 1 else "one draw of labels"
    out.table(
        f"8 x 8 digits: test error in %, {of_draws}",
        ["labels per class", *map(str, numbers)],
        cells,
    )
    seconds = time.perf_counter() - began
    out.say(f"{len(data.y):,} training rows, all but the labeled ones without labels; {seconds:.0f} s.")
    out.say(f"Plot: {output}")
    out.say(f"Label digits yourself in the browser: {_program()} label digits")
    out.finish(plot=output, rows=rows)


def _plus_minus(error: dict[str, float]) -> str:
    return f"{error['mean']:.1f}" + (f" ± {error['sem']:.1f}" if error["runs"] > 1 else "")


def _program() -> str:
    """Return the command that runs this program: its path unless it is in PATH."""
    if shutil.which("tnesi"):
        return "tnesi"
    path = Path(sys.argv[0]).absolute()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
