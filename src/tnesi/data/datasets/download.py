"""Fetching files: from several mirrors, resumed where it stopped, checked against a known digest, then renamed."""

from __future__ import annotations

import errno
import hashlib
import shutil
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError

from tnesi.system.files import replacing

Progress = Callable[[str, int, int | None], None]
"""Told what is worked on, how much of it is done, and the whole (None where it is not known).

Downloads count bytes, the preparation of images counts images.
"""

_TIMEOUT_SECONDS = 30
_CHUNK = 2**18
_MOST_ATTEMPTS = 50
_MOST_UNPACKED = 2**30
_REFUSED_RANGE = 416


class DownloadError(OSError):
    """A file could not be fetched; the message says why, mirror by mirror."""


class _WrongContentError(Exception):
    """What a mirror sends cannot be the file."""


@dataclass(frozen=True)
class Remote:
    """A file on the network.

    Attributes
    ----------
    name : str
        Its name on disk.
    urls : tuple of str
        Tried in order.
    digest : str
        As in "sha256:..." or "md5:...".
    at_most : int
        No more bytes than that are ever written.
    size : int or None
        In bytes, where it is known.
    """

    name: str
    urls: tuple[str, ...]
    digest: str
    at_most: int
    size: int | None = None

    def is_whole(self, path: Path) -> bool:
        """Whether the file at `path` is this one."""
        if not path.is_file():
            return False
        algorithm, _, expected = self.digest.partition(":")
        with path.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
        return found.hexdigest() == expected


def download(remote: Remote, folder: Path, progress: Progress | None = None) -> Path:
    """Fetch a file into `folder` unless it is there already, and return its path.

    What has come so far is in a file ``NAME.part``: after Ctrl-C or a broken connection the next call goes on there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / remote.name, folder / f"{remote.name}.part"
    for path in (target, part):
        if remote.is_whole(path):
            return path.replace(target)
    _check_space(remote, folder, _size(part))
    failures = []
    for url in remote.urls:
        failure = _try_mirror(url, remote, part, progress)
        if failure is None:
            return part.replace(target)
        failures.append(f"{url}: {failure}")
    raise DownloadError(f"{remote.name} could not be fetched ({'; '.join(failures)})")


def unpack(archive: Path, names: Iterable[str], folder: Path) -> None:
    """Take the files of these names, in whatever folder they are, out of a zip archive into `folder`."""
    wanted = set(names)
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            name = PurePosixPath(member.filename).name
            if name not in wanted:
                continue
            if member.file_size > _MOST_UNPACKED:
                raise DownloadError(f"{name} in {archive} has {member.file_size} bytes, more than can be meant")
            with file.open(member) as packed, replacing(folder / name) as temporary, temporary.open("wb") as out:
                shutil.copyfileobj(packed, out)
            wanted.discard(name)
    if wanted:
        raise DownloadError(f"{archive} does not have {', '.join(sorted(wanted))}: remove it and fetch it again")


def _try_mirror(url: str, remote: Remote, part: Path, progress: Progress | None) -> str | None:
    """Return None if `part` is the whole file now, otherwise what went wrong."""
    failure = "the connection broke too often"
    for _ in range(_MOST_ATTEMPTS):
        had = _size(part)
        try:
            _receive(url, remote, part, progress)
        except _WrongContentError as error:
            return str(error)
        except HTTPError as error:
            error.close()
            failure = str(error)
            if error.code != _REFUSED_RANGE or not had:
                return failure
            part.unlink(missing_ok=True)
            continue
        except (OSError, HTTPException) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DownloadError(
                    f"the disk is full: make room in {part.parent} and try again, {_size(part)} bytes of "
                    f"{remote.name} are kept"
                ) from error
            failure = str(getattr(error, "reason", error)) or type(error).__name__
            if _size(part) <= had:
                return failure
            continue
        if remote.is_whole(part):
            return None
        part.unlink(missing_ok=True)
        failure = "its checksum is not the known one"
        if not had:  # otherwise the part it was joined to may be what was wrong
            return failure
    return failure


def _receive(url: str, remote: Remote, part: Path, progress: Progress | None) -> None:
    """Append to `part` what is missing, or write it anew where the server does not know of ranges."""
    done = _size(part)
    headers = {"User-Agent": "tnesi", "Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    with _opener().open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_SECONDS) as response:
        if response.status != 206:
            done = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            raise _WrongContentError("it sends another part than was asked for")
        total = None if response.length is None else done + response.length
        if total is not None and (total > remote.at_most or (remote.size and total != remote.size)):
            raise _WrongContentError(f"it offers {total} bytes, but the file has {remote.size or 'fewer'}")
        with part.open("ab" if done else "wb") as file:
            while chunk := response.read(_CHUNK):
                done += len(chunk)
                if done > remote.at_most:
                    break
                file.write(chunk)
                if progress:
                    progress(remote.name, done, total or remote.size)
    if done > remote.at_most:
        part.unlink()
        raise _WrongContentError(f"it sends more than the {remote.at_most} bytes that the file can have")
    if done < (total or remote.size or 0):
        raise ConnectionError(f"the connection ended after {done} of {total or remote.size} bytes")


def _opener() -> urllib.request.OpenerDirector:
    """Open http and https only: a redirection to a local file or to FTP is an error."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _check_space(remote: Remote, folder: Path, had: int) -> None:
    needed, free = (remote.size or remote.at_most) - had, shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"{remote.name} needs {needed / 1e6:.0f} MB in {folder}, where {free / 1e6:.0f} MB are free: make room, or "
            "let XDG_CACHE_HOME name a folder on another disk"
        )
