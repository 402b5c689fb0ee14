"""Locks on files, which end with the process that holds them."""

from __future__ import annotations

import errno
import importlib
import time
from types import ModuleType
from typing import IO, Any

_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
"""What systems report about a lock that another process holds."""
_PAUSE = 0.1
"""Seconds between two attempts where the system cannot wait."""


def lock_file(file: IO[Any], *, wait: bool) -> None:
    """Lock an open file until it is closed; wait until it is free or raise BlockingIOError.

    On a system without locks this does nothing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     lock_file(file, wait=False)
    """
    if posix := _module("fcntl"):
        posix.flock(file, posix.LOCK_EX | (0 if wait else posix.LOCK_NB))
    elif windows := _module("msvcrt"):
        _lock_first_byte(file, windows, wait=wait)


def _lock_first_byte(file: IO[Any], windows: ModuleType, *, wait: bool) -> None:
    while True:
        try:
            file.seek(0)
            windows.locking(file.fileno(), windows.LK_NBLCK, 1)
            return
        except OSError as error:
            if error.errno not in _HELD:
                raise
            if not wait:
                raise BlockingIOError(errno.EAGAIN, "the file is locked") from error
        time.sleep(_PAUSE)


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
