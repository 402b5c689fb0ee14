"""The fitted encoder of a run, kept beside its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tnesi.system.digest import content_digest
from tnesi.system.files import replacing

if TYPE_CHECKING:
    from tnesi.data import Data
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.encoding import Tell
    from tnesi.types import Array

_HEADER, _CHECKSUM = "tnesi encoder", "checksum"


def fitted_encoder(
    encoder: Encoder, data: Data, tell: Tell, folder: Path, *, resume: bool
) -> tuple[Encoder, list[str], str]:
    """Fit an encoder, or return that of an earlier run with the same parameters.

    Returns the encoder, its messages, and a digest of what it has learned.
    """
    from safetensors.numpy import save_file

    from tnesi.encoders.encoding import fit_encoder
    from tnesi.model_file.encoder_state import stored_encoder

    path, asked = folder / "encoder.state", repr(encoder)
    if resume and path.exists():
        return _read(path, asked)
    messages = fit_encoder(encoder, data, tell)
    state, arrays = stored_encoder(encoder)
    header = json.dumps({"asked": asked, "messages": messages, "encoder": state})
    digest = content_digest(header, arrays)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        save_file(arrays, temporary, {_HEADER: header, _CHECKSUM: digest})
    return encoder, messages, digest


def _read(path: Path, asked: str) -> tuple[Encoder, list[str], str]:
    from safetensors import SafetensorError, safe_open

    from tnesi.encoders.kept_encoding import KeptEncodingError
    from tnesi.model_file.encoder_state import restored_encoder

    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata()
            header: dict[str, Any] = json.loads(metadata[_HEADER])
            arrays: dict[str, Array] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dict
        if content_digest(metadata[_HEADER], arrays) != metadata[_CHECKSUM]:
            raise ValueError("the checksum does not match")
        before, messages = str(header["asked"]), [str(message) for message in header["messages"]]
        encoder = restored_encoder(header["encoder"], arrays)
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
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
    return encoder, messages, metadata[_CHECKSUM]
