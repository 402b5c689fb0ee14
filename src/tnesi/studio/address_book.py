"""Token and port of a project, stored for its owner, so that an open page survives a restart of the server."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tnesi.system.files import cache_folder

_SHORTEST_TOKEN = 32


class Known(NamedTuple):
    token: str | None
    port: int | None


def remembered(project: str) -> Known:
    """Return token and port of the last server of a project, unless they cannot be read or others could read them."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        path = _path(project)
        if _is_private(path):
            found = json.loads(path.read_text())
            token, port = found["token"], found["port"]
            if isinstance(token, str) and _is_token(token) and type(port) is int and 0 < port < 2**16:
                return Known(token, port)
    return Known(None, None)


def remember(project: str, token: str, port: int) -> None:
    """Store token and port where only their owner can read them; failure is harmless."""
    with suppress(OSError):
        path = _path(project)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.unlink()
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"token": token, "port": port}, file)


def token_from_environment() -> str | None:
    """Return the token in ``TNESI_STUDIO_TOKEN``; short ones could be guessed and are refused."""
    token = os.environ.get("TNESI_STUDIO_TOKEN")
    if token is None:
        return None
    if not _is_token(token):
        raise ValueError(
            f"TNESI_STUDIO_TOKEN needs at least {_SHORTEST_TOKEN} letters and digits: unset it to use a random token"
        )
    return token


def _is_private(path: Path) -> bool:
    """Return whether only this user can read a file. On Windows the folder of the user ensures that."""
    about = path.stat()
    return not hasattr(os, "getuid") or (about.st_mode & 0o077 == 0 and about.st_uid == os.getuid())


def _is_token(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "")
    return len(text) >= _SHORTEST_TOKEN and plain.isascii() and plain.isalnum()


def _path(project: str) -> Path:
    return cache_folder() / "studio" / f"{project}.json"
