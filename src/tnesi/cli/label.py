"""``tnesi label``: the labeling studio, a page in the browser."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
import webbrowser
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tnesi.cli import end_undisturbed, when_ending
from tnesi.cli.console import LabelColumn, Output, Quiet, error_text, report_errors
from tnesi.cli.options import AnyData, warn_about_scales
from tnesi.system.files import replacing
from tnesi.system.progress import tell_parts

if TYPE_CHECKING:
    from tnesi.data import Data
    from tnesi.studio.security import Door
    from tnesi.studio.session import Session
    from tnesi.studio.store import Store

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_OWN = "own"
_SWITCH = 5e-4
"""Seconds after which a thread that learns lets one that answers go first."""


@report_errors
def label(
    data: AnyData,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="A model file (.tnesi): use its fields instead of learning some."),
    ] = None,
    project: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where answers are kept; DATA.studio.sqlite by default.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Labels to begin with: row,label on each line. own: those that DATA has."),
    ] = None,
    label_column: LabelColumn = None,
    fields: Annotated[
        str | None, typer.Option(metavar="C", help="Number of fields; auto is a sixth of the rows.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same questions.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Others than this machine's own let others in.")
    ] = ("127.0.0.1"),
    port: Annotated[
        int | None, typer.Option(min=0, max=2**16 - 1, help="The port; by default that of last time, or any free one.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Whether to open the page.")] = True,
    quiet: Quiet = False,
) -> None:
    """Label DATA in the browser, and watch the classes fall into place.

    Opens a page on this machine that shows examples and asks what they are. After each answer all of the data is sorted
    anew. Ten answers often do. Labels, predictions and the model are downloaded from the page.

    Everything is kept in one file, next to DATA or where --project says. End it with Ctrl-C, go on with the same
    command. Labels that come with DATA are not looked at, unless --labels says so.

    [bold]Examples[/bold]

      tnesi label mnist

      tnesi label photos/

      tnesi label counts.csv --labels labels.csv
    """
    try:
        for needed in ("msgspec", "starlette", "uvicorn"):
            import_module(needed)
    except ModuleNotFoundError as error:
        raise ImportError(f"the labeling studio needs {error.name}: pip install 'tnesi[studio]'") from error
    from tnesi.estimators.parameters import check_rows
    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.model.rows import check_sums, row_sums
    from tnesi.model_file import load, read_header
    from tnesi.studio.address_book import remember, remembered, token_from_environment
    from tnesi.studio.first_layer import Settings, check_features
    from tnesi.studio.security import Door
    from tnesi.studio.server import Server, bind, new_token
    from tnesi.studio.session import Session
    from tnesi.studio.store import Store

    sys.setswitchinterval(_SWITCH)
    out = Output(quiet=quiet)
    settings = Settings(_n_fields(fields), seed, model)
    given_token = token_from_environment()
    if model is not None and not model.is_file():
        raise ValueError(f"there is no model file {model}: `tnesi fit` makes them")
    with out.progress(f"reading {data}") as progress:
        from tnesi.data import open_data

        own = labels == _OWN
        found = open_data(
            data, labels=None if own else labels, label_column=label_column, progress=tell_parts(progress),
            image_shape=None if model is None else read_header(model).image_shape,
        )  # fmt: skip
        if found.rows.n_rows < 2 or found.rows.n_features < 2:
            raise ValueError(
                f"{data} has {found.rows.n_rows} rows of {found.rows.n_features} values: there is nothing to sort, two "
                "of each are needed"
            )
        found = _held(found)
        if isinstance(settings.fields, int) and settings.fields > found.rows.n_rows:
            raise ValueError(f"--fields {settings.fields}: there are {found.rows.n_rows} rows, give fewer, or auto")
        # here, and not on a page that is open already
        sums = row_sums(check_rows(SimpletronClassifier(), found.X, reset=True))
        check_sums(sums)
        if n_zero := int((sums == 0).sum()):
            warnings.warn(f"{n_zero:,} of {sums.size:,} rows are all zero: the page shows them as blank", stacklevel=1)
        warn_about_scales(found)
        if model is not None:
            check_features(model, load(model).n_features_in_, found)
        path = project or _project_of(data)
        if project is not None and Path(data).is_dir() and Path(data).resolve() in path.resolve().parents:
            raise ValueError(f"--project {path} is among the data in {data}: give a file outside of that folder")
        store = Store(path, found.fingerprint, found.name, found.rows.n_rows)
    known = remembered(store.project)
    listening = bind(host, port, known.port)
    door = Door(given_token or known.token or new_token(), host, listening.getsockname()[1])
    remember(store.project, door.token, door.port)
    if labels is not None:
        out.say(_import(store, found))
    session = Session(found, store, settings, error_text)
    server = Server(session, door)
    signal.signal(signal.SIGINT, server.handle_exit)  # Ctrl-C is the way to end it
    when_ending(server.handle_exit)
    try:
        session.start()
        _announce(out, door, store.path, browser=browser)
        server.run(sockets=[listening])
    finally:
        end_undisturbed()
        in_place, ended = store.in_place(), session.close()
        with suppress(OSError, SystemExit):  # the terminal may be gone
            out.say(_farewell(store) if in_place else _rescued(session))
            sys.stdout.flush()
        if not ended:  # Python must not leave under a thread that learns
            os._exit(not in_place)
    if not in_place:
        raise typer.Exit(1)


def _farewell(store: Store) -> str:
    log = Path(f"{store.path}-wal")
    where = (
        f"{store.path} and {log.name} beside it, as there is no room to put them together"
        if log.exists()
        else store.path
    )
    return f"{_counted(len(store.view.labels))}. Everything is in {where}. Go on with the same command."


def _counted(n_labels: int) -> str:
    return f"{n_labels:,} label{'s'[: n_labels != 1]}"


def _rescued(session: Session) -> str:
    """Write the labels to another file, as the one that had them is gone."""
    from tnesi.studio.export import write_labels

    view = session.store.view
    gone = f"{session.store.path} was removed or replaced while the studio was open"
    if not view.labels:
        return f"{gone}. It had no labels."
    kept, trouble = _counted(len(view.labels)), ""
    for find in (lambda: session.store.path.parent, Path.cwd, gettempdir):  # any of them may be gone
        path = Path(f"{session.store.path.stem}.labels.csv")
        try:
            names = (f"{session.store.path.stem}.labels{number}.csv" for number in ("", *range(2, 10_000)))
            path = next(path for name in names if not os.path.lexists(path := Path(find()) / name))
            with replacing(path) as file:
                write_labels(session, view, file)
        except OSError as error:
            trouble = f"{trouble}; {path}: {error}"
        else:
            return f"{gone}. What it had, {kept}, is in {path} now: go on with --labels {path}"
    return f"{gone}, and what it had, {kept}, could not be written{trouble}"


def _announce(out: Output, door: Door, path: Path, *, browser: bool) -> None:
    out.say(f"Answers are kept in {path}.")
    if door.host not in _LOOPBACK:
        out.say(
            f"Listening on {door.host}: everybody who can reach this machine and knows the address with its token can "
            "see the data and answer. It goes over the network unencrypted: use it in networks that you trust only."
        )
    out.say("The studio is open. End it with Ctrl-C.")
    out.say(door.address)
    if browser:
        # a browser in the terminal comes back only when the page was left
        threading.Thread(target=webbrowser.open, args=(door.address,), daemon=True).start()


def _held(data: Data) -> Data:
    """Return data in memory, if there is room: the file behind mapped ones may change while the studio is open."""
    import numpy as np

    from tnesi.data.source import ArraySource
    from tnesi.system.memory import free_memory

    rows = data.rows
    if not isinstance(data.X, np.memmap) or 4 * data.X.nbytes > free_memory():
        return data
    return replace(data, rows=ArraySource(np.array(data.X), rows.image_shape, rows.feature_names))


def _n_fields(text: str | None) -> Any:
    if text is None or text == "auto":
        return text
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError(f"--fields {text}: give a whole number from 1 on, or auto")
    return int(text)


def _project_of(data: str) -> Path:
    from tnesi.data.datasets.named import NAMES

    if data in NAMES:
        return Path(f"{data}.studio.sqlite")
    path = Path(data).absolute() if Path(data).name not in ("", "..") else Path(data).resolve()
    return path.with_name(f"{path.name}.studio.sqlite")


def _import(store: Any, found: Data) -> str:
    given = [(row, str(name)) for row, name in enumerate(found.y.tolist()) if name is not None and str(name) != "-1"]
    taken = int(store.import_labels(given).result())
    known = len(given) - taken
    rows = "1 row has its" if known == 1 else f"{known:,} rows have their"
    return f"{_counted(taken)} taken over." + (f" {rows} answer already." if known else "")
