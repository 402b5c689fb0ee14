"""Files appear whole or not at all: written under a temporary name beside the place, then renamed into it."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class InUseError(BlockingIOError):
    """Another process works in a folder."""


@contextmanager
def replacing(path: str | Path, *, sync: bool = True) -> Iterator[Path]:
    """Give a temporary path to write to; it takes the place of `path` when the block ends without an error.

    After a failure (a full disk, Ctrl-C) the temporary file is gone and `path` is as it was. With `sync` the new file
    survives a power failure too; without it, only what can happen to a process.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "note.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [p.name for p in folder.iterdir()]
    ['note.txt']
    """
    path = Path(path).resolve()  # where a link leads to
    temporary = _temporary(path)
    try:
        yield temporary
        if sync:
            with temporary.open("rb") as file:
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
    """Create a folder if need be and let one process at a time work in it; others wait, or get InUseError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise InUseError(error.errno, error.strerror, str(folder)) from error
        yield


def check_place(path: str | Path) -> None:
    """Raise the error that `replacing` would, before a long computation and not after it."""
    _temporary(Path(path).resolve()).unlink()


def _temporary(path: Path) -> Path:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a device or a pipe: give the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into: create it first")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}.", suffix=".part")
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
    os.close(handle)
    return Path(name)


def _umask() -> int:
    """Return the umask, which the system tells only to those who set it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
