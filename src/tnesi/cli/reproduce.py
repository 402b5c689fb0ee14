"""``tnesi reproduce`` and ``tnesi report``: the paper's tables and figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tnesi.cli.console import Json, Output, Quiet, report_errors
from tnesi.errors import InvalidParameterError

if TYPE_CHECKING:
    from tnesi.paper import RunFolder


@report_errors
def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TABLE_OR_FIGURE",
            help="mnist-table, mnist-likelihood, mnist-weights, mnist-comparison, nist-table, nist-weights, "
            "digits-table, label-methods, one-label, or all (those of the paper).",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Parent of the run folders.")] = Path(
        "runs"
    ),
    runs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs per setting; default: from the protocol.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="LIST", help="Seeds of the mixtures, such as 0-4 or 3,7.")
    ] = None,
    methods: Annotated[str | None, typer.Option(metavar="LIST", help="Networks, such as t-NeSi; default: all.")] = None,
    tasks: Annotated[
        str | None, typer.Option(metavar="LIST", help="Tasks, such as mnist,digits; default: all.")
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="em, hebbian for the published rule (hours), or hebbian-partial for the same with partial E-steps.",
        ),
    ] = "em",
    label_sets: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Label sets that share a mixture; default: from the protocol."),
    ] = None,
    passes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most this many passes of the online rule.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer rows, fields and runs, as a test.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Reproduce a table or figure of the paper and compare it with the published values.

    Finished runs are saved immediately; after an interruption, the same command resumes. report.html shows the results.

    [bold]Examples[/bold]

      tnesi reproduce digits-table

      tnesi reproduce mnist-table --methods t-NeSi
    """
    from tnesi.paper import TARGETS, read_protocol
    from tnesi.paper import reproduce as run
    from tnesi.paper.protocol import SOLVERS
    from tnesi.paper.summary import summarize
    from tnesi.report.page import write_report
    from tnesi.report.text import text_tables
    from tnesi.report.words import measured

    if solver not in SOLVERS:
        raise InvalidParameterError(
            "{solver} {text} is not one of {known}", parameter="solver", text=solver, known=", ".join(SOLVERS)
        )
    left_out = {name for name, what in TARGETS.items() if what.startswith("not in the paper")}
    left_out |= {"mnist-likelihood"} if solver == "hebbian-partial" else set()
    names = [t for t in TARGETS if t not in left_out] if target == "all" else [target]
    changes: dict[str, Any] = {
        "runs": runs, "seeds": _seeds(seeds), "solver": solver, "quick": quick,
        "label_sets": label_sets, "passes": passes,
        "methods": _names(methods), "tasks": _names(tasks),
    }  # fmt: skip
    protocols = [read_protocol(name, **changes) for name in names]
    out = Output(as_json, quiet)
    results = {}
    for protocol in protocols:
        place = output / protocol.folder_name()
        with out.progress(protocol.title) as progress:
            try:
                folder = run(protocol, place, progress)
            except KeyboardInterrupt:
                raise KeyboardInterrupt("finished runs are saved, repeat the command to resume") from None
            progress.tell("writing the report")
            page = write_report(folder)
        for title, columns, rows in text_tables(folder):
            out.table(title, columns, rows)
        _notes(out, folder)
        out.say(f"{measured(folder.configuration)}.")
        out.say(f"Report: {page}")
        results[protocol.name] = {"folder": place, "report": page, "summary": summarize(folder)}
    out.finish(results=results)


@report_errors
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="Output folder of `tnesi reproduce`.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="HTML", help="Page to write; default: report.html in the folder."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a run folder as a self-contained HTML file."""
    from tnesi.data import DataError
    from tnesi.paper import RunFolder
    from tnesi.report.page import write_report

    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder", advice="pass an output of `tnesi reproduce`")
    out = Output(as_json)
    with out.progress("writing the report"):
        try:
            page = write_report(RunFolder(folder), output)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{folder}: the records are damaged ({error})") from error
    out.say(f"Report: {page}")
    out.finish(report=page)


def _notes(out: Output, folder: RunFolder) -> None:
    from tnesi.report.words import left_out

    configuration = folder.configuration
    for note in configuration.get("notes", ()):
        out.say(f"{note}.")
    for line in left_out(configuration):
        out.say(line)
    if configuration.get("quick"):
        out.say("A quick test with fewer rows, fields and runs, not comparable with the paper.")


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _seeds(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if not 0 <= high - low < 10_000:
            raise InvalidParameterError(
                "{seeds} {text} is not a list of numbers and ranges such as 0-4 or 3,7", parameter="seeds", text=text
            )
        seeds += range(low, high + 1)
    return tuple(seeds)
