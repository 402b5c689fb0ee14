"""Download files from several mirrors, with resumption and checksums."""

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

from tnesi.errors import TnesiError
from tnesi.system.files import replacing

Progress = Callable[[str, int, int | None], None]
"""Called with the current task, the amount done and the total (None if unknown), in bytes or images."""

_TIMEOUT_SECONDS = 30
_CHUNK = 2**18
_MOST_ATTEMPTS = 50
_MOST_UNPACKED = 2**30
_REFUSED_RANGE = 416


class DownloadError(TnesiError, OSError):
    """A file could not be downloaded."""


class _WrongContentError(Exception):
    """A mirror sends a different file."""


@dataclass(frozen=True)
class Remote:
    """A file on the network.

    Attributes
    ----------
    name : str
        File name on disk.
    urls : tuple of str
        Tried in order.
    digest : str
        For example "sha256:..." or "md5:...".
    at_most : int
        Largest number of bytes to write.
    size : int or None
        Size in bytes, if known.
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
    """Download a file into `folder` unless it exists, and return its path.

    Partial downloads are kept in ``NAME.part``, where the next call resumes.
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
    raise DownloadError(f"{remote.name} could not be downloaded ({'; '.join(failures)})")


def unpack(archive: Path, names: Iterable[str], folder: Path) -> None:
    """Extract files by name, from any folder of a zip archive, into `folder`."""
    wanted = set(names)
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            name = PurePosixPath(member.filename).name
            if name not in wanted:
                continue
            if member.file_size > _MOST_UNPACKED:
                raise DownloadError(f"{name} in {archive} is too large ({member.file_size} bytes)")
            with file.open(member) as packed, replacing(folder / name) as temporary, temporary.open("wb") as out:
                shutil.copyfileobj(packed, out)
            wanted.discard(name)
    if wanted:
        raise DownloadError(
            f"{archive} does not contain {', '.join(sorted(wanted))}", advice="remove it and download it again"
        )


def _try_mirror(url: str, remote: Remote, part: Path, progress: Progress | None) -> str | None:
    """Return None if `part` is complete, else what went wrong."""
    failure = "the connection failed too often"
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
                    "the disk is full",
                    advice=f"free some space in {part.parent} and try again; {_size(part)} bytes of {remote.name} "
                    "are kept",
                ) from error
            failure = str(getattr(error, "reason", error)) or type(error).__name__
            if _size(part) <= had:
                return failure
            continue
        if remote.is_whole(part):
            return None
        part.unlink(missing_ok=True)
        failure = "the checksum does not match"
        if not had:  # otherwise the earlier part may be wrong
            return failure
    return failure


def _receive(url: str, remote: Remote, part: Path, progress: Progress | None) -> None:
    """Append the missing bytes to `part`, or restart it if the server does not support ranges."""
    done = _size(part)
    headers = {"User-Agent": "tnesi", "Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    with _opener().open(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_SECONDS) as response:
        if response.status != 206:
            done = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            raise _WrongContentError("it sends a different range")
        total = None if response.length is None else done + response.length
        if total is not None and (total > remote.at_most or (remote.size and total != remote.size)):
            raise _WrongContentError(f"it offers {total} bytes instead of {remote.size or 'fewer'}")
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
        raise _WrongContentError(f"it sends more than {remote.at_most} bytes")
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
            f"{remote.name} needs {needed / 1e6:.0f} MB in {folder}, where {free / 1e6:.0f} MB are free",
            advice="free some space or set XDG_CACHE_HOME to a folder on another disk",
        )
