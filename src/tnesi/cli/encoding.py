"""Encoding in commands, with a chosen encoder or that of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tnesi.cli.console import ENCODING, INPUT, Output
from tnesi.errors import InvalidParameterError
from tnesi.system.progress import Progress, tell_parts

if TYPE_CHECKING:
    from tnesi.data import Data
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.image_files import Problem
    from tnesi.encoders.kept_encoding import KeptEncoding
    from tnesi.execution.dask.cluster import Cluster
    from tnesi.execution.settings import Local

SKIPPED = 3
"""Exit code if files were skipped."""
_LISTED = 20

EncoderName = Annotated[
    str,
    typer.Option(
        "--encoder",
        metavar="NAME",
        rich_help_panel=ENCODING,
        help="auto, images, text, table, vectors, or none for counts and spectra.",
    ),
]
Embed = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", rich_help_panel=ENCODING, help="sentence-transformers model to embed documents or images."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", rich_help_panel=INPUT, help="Stop at the first unreadable file.")]


def choose_encoder(name: str, embed: str | None, data: Data) -> Encoder | None:
    """Return the encoder to use, not yet fitted."""
    from tnesi.encoders.choice import ENCODERS, encoder_name_for, new_encoder

    if name not in ("auto", "none", *ENCODERS):
        raise InvalidParameterError(
            "unknown {encoder} {name}",
            advice="choose one of auto, none, {names}",
            parameter="encoder",
            name=name,
            names=", ".join(ENCODERS),
        )
    if embed is not None and name not in ("auto", "images", "text"):
        raise InvalidParameterError(
            "{embed} is for documents and images",
            advice="omit {encoder}, or use {encoder:text} or {encoder:images}",
            parameter="embed",
        )
    if name == "none":
        return None
    chosen: Any = encoder_name_for(data) if name == "auto" else name
    if chosen is None and embed is None:
        return None
    return new_encoder(chosen if embed is None or chosen == "images" else "text", embed)


def fit_and_encode(
    out: Output,
    encoder: Encoder,
    data: Data,
    progress: Progress,
    *,
    strict: bool,
    run: Local | None = None,
    cluster: Cluster | None = None,
) -> tuple[Encoder, Data, list[Problem]]:
    """Fit an encoder, report what it does, and return it with the encoded data and the skipped files.

    A run with a checkpoint keeps the encoder and the rows there.
    """
    from tnesi.encoders.choice import describe_encoding
    from tnesi.encoders.encoding import fit_encoder

    tell = tell_parts(progress)
    if run is None or run.checkpoint is None:
        messages = fit_encoder(encoder, data, tell)
        encoded, problems = encode_data(encoder, data, progress, strict=strict, cluster=cluster)
    else:
        from tnesi.cli.kept_encoder import fitted_encoder
        from tnesi.encoders.kept_encoding import encoding_kept_in

        folder = Path(run.checkpoint) / "encoded"
        encoder, messages, key = fitted_encoder(encoder, data, tell, folder, resume=run.resume)
        with encoding_kept_in(folder, key, resume=run.resume) as kept:
            encoded, problems = encode_data(encoder, data, progress, strict=strict, kept=kept, cluster=cluster)
    out.say(describe_encoding(encoder, encoded.rows.n_rows, encoded.rows.n_features))
    for message in messages:
        out.say(message)
    return encoder, encoded, problems


def encode_data(
    encoder: Encoder,
    data: Data,
    progress: Progress,
    *,
    strict: bool,
    kept: KeptEncoding | None = None,
    cluster: Cluster | None = None,
) -> tuple[Data, list[Problem]]:
    """Return data with encoded rows, and the skipped files."""
    from tnesi.data import DataError
    from tnesi.encoders.encoding import encode

    found = encode(encoder, data, tell_parts(progress), kept=kept, cluster=cluster)
    if found.problems and strict:
        first, *others = found.problems
        more = f" (and {len(others)} more unreadable files)" if others else ""
        raise DataError("{first}{more}", advice="remove it or omit {strict}", first=first, more=more)
    return found.data, found.problems


def report_skipped(out: Output, problems: list[Problem]) -> None:
    """List skipped files."""
    if not problems:
        return
    out.say(f"{len(problems):,} unreadable {'file was' if len(problems) == 1 else 'files were'} skipped:")
    for problem in problems[:_LISTED]:
        out.say(f"  {problem}")
    if len(problems) > _LISTED:
        out.say(f"  and {len(problems) - _LISTED:,} more")


def exit_if_skipped(problems: list[Problem]) -> None:
    """Exit with a distinct code if files were skipped."""
    if problems:
        raise typer.Exit(SKIPPED)
