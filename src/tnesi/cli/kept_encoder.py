"""The fitted encoder of a run, kept beside its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tnesi.system.tensors import read_state, write_state

if TYPE_CHECKING:
    from tnesi.data import Data
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.encoding import Tell

_ENTRY = "tnesi encoder"


def fitted_encoder(
    encoder: Encoder, data: Data, tell: Tell, folder: Path, *, resume: bool
) -> tuple[Encoder, list[str], str]:
    """Fit an encoder, or return that of an earlier run with the same parameters.

    Returns the encoder, its messages, and a digest of what it has learned.
    """
    from tnesi.encoders.encoding import fit_encoder
    from tnesi.model_file.encoder_state import stored_encoder

    path, asked = folder / "encoder.state", repr(encoder)
    if resume and path.exists():
        return _read(path, asked)
    messages = fit_encoder(encoder, data, tell)
    state, arrays = stored_encoder(encoder)
    header = json.dumps({"asked": asked, "messages": messages, "encoder": state})
    folder.mkdir(parents=True, exist_ok=True)
    return encoder, messages, write_state(path, _ENTRY, header, arrays)


def _read(path: Path, asked: str) -> tuple[Encoder, list[str], str]:
    from tnesi.encoders.kept_encoding import KeptEncodingError
    from tnesi.model_file.encoder_state import restored_encoder

    try:
        state = read_state(path, _ENTRY)
        state.check()
        header = json.loads(state.text)
        before, messages = str(header["asked"]), [str(message) for message in header["messages"]]
        encoder = restored_encoder(header["encoder"], state.arrays)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise KeptEncodingError(
            "{path} is damaged ({reason})", path=path, reason=error, advice="start over without {resume}"
        ) from error
    if before != asked:
        raise KeptEncodingError(
            "{folder} has rows of another encoder",
            folder=path.parent,
            parameter="checkpoint",
            advice="use the same {encoder}, or pass another folder as {checkpoint}",
        )
    return encoder, messages, state.checksum
