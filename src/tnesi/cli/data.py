"""``tnesi data``: named data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from tnesi.cli.console import Json, Output, Quiet, report_errors
from tnesi.system.progress import tell_parts

app = typer.Typer(help="List, download and describe named data sets.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name from `tnesi data list`.")]

_FACTS = (
    "name", "title", "license", "source", "rows", "classes", "shape", "files", "urls", "download_bytes", "folders",
    "found", "found_files",
)  # fmt: skip


@app.command("list")
@report_errors
def list_(as_json: Json = False) -> None:
    """List the data sets and whether they are on this machine."""
    from tnesi.data.datasets.named import NAMES, describe

    out = Output(as_json)
    all_of_them = [describe(name) for name in NAMES]
    rows = [[d.name, d.title, "yes" if d.found else "no"] for d in all_of_them]
    out.table("", ["name", "description", "on this machine"], rows, text=(0, 1, 2))
    out.say("Download one with: tnesi data fetch NAME")
    out.finish(data=[{"name": d.name, "title": d.title, "found": d.found} for d in all_of_them])


@app.command()
@report_errors
def fetch(name: Name, quiet: Quiet = False, as_json: Json = False) -> None:
    """Download a data set into the cache. Interrupted downloads resume."""
    from tnesi.data.datasets.named import fetch as fetch_data

    out = Output(as_json, quiet)
    with out.progress(f"downloading {name}") as progress:
        folder = fetch_data(name, progress=tell_parts(progress))
    out.say(f"{name} is in {folder}.")
    out.finish(name=name, folder=folder)


@app.command()
@report_errors
def info(name: Name, as_json: Json = False) -> None:
    """Show the description, origin and file locations of a data set."""
    from tnesi.data.datasets.named import describe

    out = Output(as_json)
    entry = describe(name)
    found = {fact: getattr(entry, fact) for fact in _FACTS}
    rows = [[key, "\n".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
            for key, value in found.items() if value not in (None, "")]  # fmt: skip
    out.table("", ["", ""], rows, text=(0, 1))
    out.finish(**found)
