"""``tnesi reproduce`` and ``tnesi report``: the paper's tables and figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tnesi.cli.console import Json, Output, Quiet, report_errors

if TYPE_CHECKING:
    from tnesi.paper import RunFolder


@report_errors
def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TABLE_OR_FIGURE",
            help="mnist-table, mnist-likelihood, mnist-weights, mnist-comparison, nist-table, nist-weights, "
            "digits-table, label-methods, one-label, or all (of the paper).",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the run folders go.")] = Path(
        "runs"
    ),
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of each setting; as the protocol says by default.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="LIST", help="Seeds of the mixtures, e.g. 0-4 or 3,7; runs share them.")
    ] = None,
    methods: Annotated[str | None, typer.Option(metavar="LIST", help="Only these networks, e.g. t-NeSi.")] = None,
    tasks: Annotated[str | None, typer.Option(metavar="LIST", help="Only these tasks, e.g. mnist,digits.")] = None,
    solver: Annotated[str, typer.Option(help="em, or hebbian: the published rule, which takes hours.")] = "em",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows, fields and runs: a look, no figures.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Reproduce a table or figure of the paper on this machine, with the paper's values beside ours.

    Every finished run is kept at once: after Ctrl-C (or a power cut) the same command goes on where it stopped. A page,
    report.html, shows the results.

    [bold]Examples[/bold]

      tnesi reproduce digits-table

      tnesi reproduce mnist-table --methods t-NeSi
    """
    from tnesi.paper import TARGETS, read_protocol
    from tnesi.paper import reproduce as run
    from tnesi.paper.summary import summarize
    from tnesi.report.page import write_report
    from tnesi.report.text import text_tables
    from tnesi.report.words import measured

    if solver not in ("em", "hebbian"):
        raise ValueError(f"--solver {solver}: give em or hebbian")
    left_out = {name for name, what in TARGETS.items() if what.startswith("not in the paper")}
    left_out |= {"mnist-likelihood"} if solver == "hebbian" else set()
    names = [t for t in TARGETS if t not in left_out] if target == "all" else [target]
    changes: dict[str, Any] = {
        "runs": runs, "seeds": _seeds(seeds), "solver": solver, "quick": quick,
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
                raise KeyboardInterrupt("the finished runs are kept, and the same command goes on") from None
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
    folder: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="A folder that `tnesi reproduce` made.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; report.html in the folder by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report page of a run folder anew: one self-contained HTML file."""
    from tnesi.data import DataError
    from tnesi.paper import RunFolder
    from tnesi.report.page import write_report

    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: give one that `tnesi reproduce` made")
    out = Output(as_json)
    with out.progress("writing the report"):
        try:
            page = write_report(RunFolder(folder), output)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            if isinstance(error, DataError):
                raise
            raise ValueError(f"{folder}: the records cannot be read, or are damaged ({error})") from error
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
        out.say("A quick look with fewer rows, fields and runs: not comparable with the paper.")


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
            raise ValueError(f"--seeds {text}: give numbers and ranges, such as 0-4 or 3,7")
        seeds += range(low, high + 1)
    return tuple(seeds)
