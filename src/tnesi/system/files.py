"""Atomic file writes: to a temporary file in the same folder, then renamed."""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tnesi.errors import InvalidParameterError, TnesiError
from tnesi.system.locks import lock_file


class InUseError(TnesiError, BlockingIOError):
    """Another process uses a folder."""


class IsFolderError(TnesiError, IsADirectoryError):
    """The path of an output file is a folder."""


class FolderNotFoundError(TnesiError, FileNotFoundError):
    """The folder of an output file does not exist."""


class FileWriteError(TnesiError, OSError):
    """A file that cannot be written."""


class TemporaryPath:
    """An empty file that is deleted with this object; unlike with `tempfile`, it can be opened by name on any system.

    Examples
    --------
    >>> temporary = TemporaryPath("tnesi-")
    >>> path = temporary.path
    >>> path.exists()
    True
    >>> temporary.delete()
    >>> path.exists()
    False
    """

    def __init__(self, prefix: str) -> None:
        handle, name = tempfile.mkstemp(prefix=prefix)
        os.close(handle)
        self.path = Path(name)
        self._deletion = weakref.finalize(self, _delete, self.path)

    def delete(self) -> None:
        """Delete the file now."""
        self._deletion()


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


@contextmanager
def replacing(path: str | Path, *, sync: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` when the block ends without an error.

    After a failure (a full disk, Ctrl-C) the temporary file is deleted and `path` is unchanged. With `sync` the new
    file survives a power failure; without it, only a crash of the process.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "note.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [p.name for p in folder.iterdir()]
    ['note.txt']
    """
    path = Path(path).resolve()  # follows links
    temporary = _temporary(path)
    try:
        yield temporary
        if sync:
            with temporary.open("r+b") as file:  # Windows syncs only what is open for writing
                os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error
        raise


@contextmanager
def alone_in(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock a folder, which is created if needed, for this process; wait for it or raise InUseError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        try:
            lock_file(lock, wait=wait)
        except BlockingIOError as error:
            raise InUseError(f"another process uses {folder}") from error
        yield


def cache_folder() -> Path:
    """Return the folder of downloads and other files that can be made again: ``tnesi`` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tnesi"


def check_place(path: str | Path) -> None:
    """Raise the error that `replacing` would raise, before a long computation instead of after it."""
    _temporary(Path(path).resolve()).unlink()


def _temporary(path: Path) -> Path:
    if path.is_dir():
        raise IsFolderError(f"{path} is a folder", advice="pass the name of a file")
    if path.exists() and not path.is_file():
        raise InvalidParameterError(f"{path} is a device or a pipe", advice="pass the name of a file")
    if not path.parent.is_dir():
        raise FolderNotFoundError(
            f"cannot write {path.name}: there is no folder {path.parent}", advice="create it first"
        )
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}.", suffix=".part")
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
    os.close(handle)
    return Path(name)


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
