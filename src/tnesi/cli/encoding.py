"""How commands encode data: by the encoder of their choice, or that of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tnesi.cli.console import Output
from tnesi.system.progress import Progress, tell_parts

if TYPE_CHECKING:
    from tnesi.data import Data
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.image_files import Problem

SKIPPED = 3
"""Exit code where files were left out."""
_LISTED = 20

EncoderName = Annotated[
    str,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="How data become features. image, text, table, vector; none: as they are, for counts, histograms and "
        "spectra; auto: by what the data are.",
    ),
]
Embed = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Encode documents by the embeddings of this sentence-transformers model."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first file that cannot be read.")]


def choose_encoder(name: str, embed: str | None, data: Data) -> Encoder | None:
    """Return the encoder to use, not fitted yet."""
    from tnesi.encoders.choice import ENCODERS, encoder_name_for, new_encoder

    if name not in ("auto", "none", *ENCODERS):
        raise ValueError(f"--encoder {name}: give auto, none, {', '.join(ENCODERS)}")
    if embed is not None and name not in ("auto", "text"):
        raise ValueError("--embed is for documents: leave out --encoder, or give --encoder text")
    if name == "none":
        return None
    chosen: Any = encoder_name_for(data) if name == "auto" else name
    if chosen is None and embed is None:
        return None
    return new_encoder("text" if embed is not None else chosen, embed)


def fit_and_encode(
    out: Output, encoder: Encoder, data: Data, progress: Progress, *, strict: bool
) -> tuple[Data, list[Problem]]:
    """Let an encoder learn from data, say what it does, and return the encoded data and the files left out."""
    from tnesi.encoders.encoding import fit_encoder

    messages = fit_encoder(encoder, data, tell_parts(progress))
    encoded, problems = encode_data(encoder, data, progress, strict=strict)
    out.say(_described(encoder, encoded))
    for message in messages:
        out.say(message)
    return encoded, problems


def encode_data(encoder: Encoder, data: Data, progress: Progress, *, strict: bool) -> tuple[Data, list[Problem]]:
    """Return data with encoded rows, and the files left out."""
    from tnesi.data import DataError
    from tnesi.encoders.encoding import encode

    found = encode(encoder, data, tell_parts(progress))
    if found.problems and strict:
        first, *others = found.problems
        more = f" (and {len(others)} more files cannot be read)" if others else ""
        raise DataError(f"{first}{more}: remove it, or leave out --strict")
    return found.data, found.problems


def report_skipped(out: Output, problems: list[Problem]) -> None:
    """List files that were left out."""
    if not problems:
        return
    out.say(f"{len(problems):,} files were skipped because they cannot be read:")
    for problem in problems[:_LISTED]:
        out.say(f"  {problem}")
    if len(problems) > _LISTED:
        out.say(f"  and {len(problems) - _LISTED:,} more")


def exit_if_skipped(problems: list[Problem]) -> None:
    """End with an exit code of its own where files were left out."""
    if problems:
        raise typer.Exit(SKIPPED)


def _described(encoder: Encoder, data: Data) -> str:
    n, features = f"{data.rows.n_rows:,}", f"{data.rows.n_features:,}"
    match type(encoder).__name__:
        case "ImageEncoder":
            what = "gradients and colors" if getattr(encoder, "colored_", False) else "gradients"
            return f"Encoded {n} images as {features} features (histograms of {what})."
        case "TextEncoder":
            model = getattr(encoder, "model", None)
            return (
                f"Encoded {n} documents by {features} words."
                if model is None
                else f"Embedded {n} documents with {model}."
            )
        case "TableEncoder":
            return f"Encoded a table of {n} rows as {features} features (soft bins and categories)."
    return f"Encoded {n} vectors as {features} features (positive and negative parts)."
