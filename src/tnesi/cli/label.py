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
from tnesi.cli.encoding import (
    Embed,
    EncoderName,
    choose_encoder,
    encode_data,
    fit_and_encode,
    report_skipped,
)
from tnesi.cli.options import AnyData, warn_about_scales
from tnesi.errors import InvalidDataError, InvalidParameterError
from tnesi.system.files import replacing
from tnesi.system.progress import Progress, tell_parts

if TYPE_CHECKING:
    from tnesi.data import Data
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.image_files import Problem
    from tnesi.studio.first_layer import Settings
    from tnesi.studio.security import AccessPolicy
    from tnesi.studio.session import Session
    from tnesi.studio.store import Store

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_OWN = "own"
_SWITCH = 5e-4
"""Seconds after which a learning thread yields to one that answers."""


@report_errors
def label(
    data: AnyData,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Use the fields and the encoder of this model file (.tnesi)."),
    ] = None,
    project: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the answers; DATA.studio.sqlite by default.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Labels to start with: row,label on each line; own: those in DATA."),
    ] = None,
    label_column: LabelColumn = None,
    encoder: EncoderName = "auto",
    embed: Embed = None,
    fields: Annotated[
        str | None,
        typer.Option(metavar="C", help="Number of fields; auto: a sixth of the rows, fewer for very wide rows."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of the random numbers.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on. By default, only this machine can connect.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int | None, typer.Option(min=0, max=2**16 - 1, help="Port; by default that of the last run, or any free one.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
    quiet: Quiet = False,
) -> None:
    """Label DATA in the browser.

    Opens a page on this machine that shows examples and asks what they are. After each answer all rows are classified
    again. Ten answers are often enough. Labels, predictions and the model can be downloaded from the page.

    DATA can be a folder of images or text files, a table, an array, or the name of a data set. All answers are stored
    in one file, next to DATA or at --project. Stop with Ctrl-C; the same command continues. Labels that come with DATA
    are only used with --labels own.

    [bold]Examples[/bold]

      tnesi label mnist

      tnesi label photos/

      tnesi label articles/

      tnesi label customers.csv --labels labels.csv
    """
    try:
        for needed in ("msgspec", "starlette", "uvicorn"):
            import_module(needed)
    except ModuleNotFoundError as error:
        raise ImportError(f"the labeling studio needs {error.name}: pip install 'tnesi[studio]'") from error
    from tnesi.studio.address_book import remember, remembered, token_from_environment
    from tnesi.studio.first_layer import Settings
    from tnesi.studio.learner import Learner
    from tnesi.studio.originals import fingerprint
    from tnesi.studio.security import AccessPolicy
    from tnesi.studio.server import Server, bind, new_token
    from tnesi.studio.session import Session
    from tnesi.studio.store import Store

    sys.setswitchinterval(_SWITCH)
    out = Output(quiet=quiet)
    settings = Settings(_n_fields(fields), seed, model)
    given_token = token_from_environment()
    if model is not None and not model.is_file():
        raise InvalidParameterError(
            "there is no {model} file {path}", advice="`tnesi fit` writes them", parameter="model", path=model
        )
    with out.progress(f"reading {data}") as progress:
        found = _open(data, labels, label_column, model, progress)
        own = found.labels is not None and labels is None
        found, used, skipped = _encoded(out, found, model, encoder, embed, progress)
        name = "none" if used is None else f"{type(used).__name__} {getattr(used, 'model', None) or ''}".strip()
        settings = replace(settings, encoder=name)
        _check(found, data, settings)
        path = project or _project_of(data)
        if project is not None and Path(data).is_dir() and Path(data).resolve() in path.resolve().parents:
            raise InvalidParameterError(
                "{project} {path} is inside of {data}",
                advice="choose a file outside of it",
                parameter="project",
                path=path,
                data=data,
            )
        store = Store(path, fingerprint(found), found.name, found.rows.n_rows)
    report_skipped(out, skipped)
    known = remembered(store.project)
    listening = bind(host, port, known.port)
    policy = AccessPolicy(given_token or known.token or new_token(), host, listening.getsockname()[1])
    remember(store.project, policy.token, policy.port)
    notes = [_own_labels(found)] if own else []
    for note in notes:
        out.say(note)
    notes += getattr(used, "messages_", [])
    if labels is not None:
        out.say(_import(store, found))
    session = Session(found, store, error_text, encoder=used, skipped=skipped, notes=notes)
    server = Server(session, policy)
    signal.signal(signal.SIGINT, server.handle_exit)  # Ctrl-C quits
    when_ending(server.handle_exit)
    try:
        session.start(Learner(session, settings))
        _announce(out, policy, store.path, browser=browser)
        server.run(sockets=[listening])
    finally:
        end_undisturbed()
        in_place, ended = store.in_place(), session.close()
        with suppress(OSError, SystemExit):  # the terminal may be closed
            out.say(_farewell(store) if in_place else _rescued(session))
            sys.stdout.flush()
        if not ended:  # Python must not exit while a thread is learning
            os._exit(not in_place)
    if not in_place:
        raise typer.Exit(1)


def _open(data: str, labels: str | None, label_column: str | None, model: Path | None, progress: Progress) -> Data:
    from tnesi.data import open_data
    from tnesi.model_file import read_header

    given = None if labels == _OWN else labels
    shape = None if model is None else read_header(model).image_shape
    return _held(
        open_data(data, labels=given, label_column=label_column, progress=tell_parts(progress), image_shape=shape)
    )


def _encoded(
    out: Output, found: Data, model: Path | None, name: str, embed: str | None, progress: Progress
) -> tuple[Data, Encoder | None, list[Problem]]:
    """Return the data as they are learned from, their encoder, and the files that were left out."""
    from tnesi.model_file import load, split_pipeline
    from tnesi.studio.first_layer import check_features

    if model is None:
        encoder = choose_encoder(name, embed, found)
        if encoder is None:
            warn_about_scales(found)
            return found, None, []
        encoder, encoded_data, skipped = fit_and_encode(out, encoder, found, progress, strict=False)
        return encoded_data, encoder, skipped
    if name != "auto" or embed is not None:
        raise InvalidParameterError(
            "{model} has its own encoder", advice="omit {encoder} and {embed}", parameter="model"
        )
    encoder, learned = split_pipeline(load(model))
    encoded = _with(encoder, (found, []) if encoder is None else encode_data(encoder, found, progress, strict=False))
    check_features(model, learned.n_features_in_, encoded[0])
    return encoded


def _with(encoder: Encoder | None, encoded: tuple[Data, list[Problem]]) -> tuple[Data, Encoder | None, list[Problem]]:
    return encoded[0], encoder, encoded[1]


def _check(found: Data, data: str, settings: Settings) -> None:
    """Refuse data that cannot be learned from, before the page is open."""
    from tnesi.estimators.parameters import check_rows
    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.model.rows import check_sums, row_sums

    n_rows, n_features = found.rows.n_rows, found.rows.n_features
    if n_rows < 2 or n_features < 2:
        raise InvalidDataError(
            "{data} has only {n_rows} rows of {n_features} values",
            advice="use at least two of each",
            data=data,
            n_rows=n_rows,
            n_features=n_features,
        )
    if isinstance(settings.fields, int) and settings.fields > n_rows:
        raise InvalidParameterError(
            "{fields} {n} exceeds the {n_rows} rows",
            advice="pass fewer, or {fields:auto}",
            parameter="fields",
            n=settings.fields,
            n_rows=n_rows,
        )
    sums = row_sums(check_rows(SimpletronClassifier(), found.X, reset=True))
    check_sums(sums)
    if n_zero := int((sums == 0).sum()):
        warnings.warn(f"{n_zero:,} of {sums.size:,} rows are all zero and shown as blank", stacklevel=1)


def _own_labels(found: Data) -> str:
    """Mention labels that come with the data."""
    labels = {str(name) for name in found.y.tolist() if name is not None} - {"-1"}
    n = sum(name is not None and str(name) != "-1" for name in found.y.tolist())
    classes = "1 class" if len(labels) == 1 else f"{len(labels):,} classes"
    return f"{found.name} comes with {_counted(n)} of {classes}, which are not used. To start with them: --labels own."


def _farewell(store: Store) -> str:
    log = Path(f"{store.path}-wal")
    where = f"{store.path} and {log.name} beside it (no room to merge them)" if log.exists() else store.path
    return f"{_counted(len(store.view.labels))}. All are stored in {where}. The same command continues."


def _counted(n_labels: int) -> str:
    return f"{n_labels:,} label{'s'[: n_labels != 1]}"


def _rescued(session: Session) -> str:
    """Write the labels to another file, because theirs is gone."""
    from tnesi.studio.export import write_labels

    view = session.store.view
    gone = f"{session.store.path} was removed or replaced while the studio was running"
    if not view.labels:
        return f"{gone}. It had no labels."
    kept, trouble = _counted(len(view.labels)), ""
    for find in (lambda: session.store.path.parent, Path.cwd, gettempdir):  # any of them may be missing
        path = Path(f"{session.store.path.stem}.labels.csv")
        try:
            names = (f"{session.store.path.stem}.labels{number}.csv" for number in ("", *range(2, 10_000)))
            path = next(path for name in names if not os.path.lexists(path := Path(find()) / name))
            with replacing(path) as file:
                write_labels(session, view, file)
        except OSError as error:
            trouble = f"{trouble}; {path}: {error}"
        else:
            return f"{gone}. {kept} saved to {path}: continue with --labels {path}"
    return f"{gone}. Its {kept} could not be written{trouble}"


def _announce(out: Output, policy: AccessPolicy, path: Path, *, browser: bool) -> None:
    out.say(f"Answers are stored in {path}.")
    if policy.host not in _LOOPBACK:
        out.say(
            f"Listening on {policy.host}: anyone who can reach this machine and has the address with its token can see "
            "the data and answer. The connection is not encrypted: use it only in networks that you trust."
        )
    out.say("The studio is running. Stop it with Ctrl-C.")
    out.say(policy.address)
    if browser:
        # a browser in the terminal returns only when it is closed
        threading.Thread(target=webbrowser.open, args=(policy.address,), daemon=True).start()


def _held(data: Data) -> Data:
    """Return data in memory if there is room: mapped files may change while the studio is running."""
    import numpy as np

    from tnesi.data.source import ArraySource
    from tnesi.system.memory import free_memory

    rows = data.rows
    if not isinstance(rows, ArraySource) or not isinstance(rows.array, np.memmap):
        return data
    if 4 * rows.array.nbytes > free_memory():
        return data
    return replace(data, rows=ArraySource(np.array(rows.array), rows.image_shape, rows.feature_names))


def _n_fields(text: str | None) -> Any:
    if text is None or text == "auto":
        return text
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise InvalidParameterError("{fields} {text} is not a positive integer or auto", parameter="fields", text=text)
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
    rows = "1 row has" if known == 1 else f"{known:,} rows have"
    return f"{_counted(taken)} imported." + (f" {rows} an answer already." if known else "")
