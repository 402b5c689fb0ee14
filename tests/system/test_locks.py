"""Locks for one process at a time, on every system."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from tnesi.system.files import InUseError, alone_in
from tnesi.system.locks import lock_file

ASK = """
import sys
from pathlib import Path
from tnesi.system.files import InUseError, alone_in
try:
    with alone_in(Path(sys.argv[1]), wait=False):
        print("free")
except InUseError:
    print("in use")
"""


def seen_elsewhere(folder: Path) -> str:
    words = [sys.executable, "-c", ASK, str(folder)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_another_process_is_kept_out_until_the_end(tmp_path: Path) -> None:
    with alone_in(tmp_path / "runs"):
        assert seen_elsewhere(tmp_path / "runs") == "in use"
    assert seen_elsewhere(tmp_path / "runs") == "free"


def locking(descriptor: int, mode: int, n_bytes: int) -> None:
    """Lock like Windows, which reports a lock held elsewhere as a lack of permission."""
    assert (mode, n_bytes) == (WINDOWS.LK_NBLCK, 1)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(errno.EACCES, "locked") from error


WINDOWS = SimpleNamespace(LK_NBLCK=2, locking=locking)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", WINDOWS)


@pytest.mark.usefixtures("windows")
def test_without_posix(tmp_path: Path) -> None:
    with alone_in(tmp_path):
        with pytest.raises(InUseError), alone_in(tmp_path, wait=False):
            pass
        assert seen_elsewhere(tmp_path) == "in use"
    with alone_in(tmp_path, wait=False):
        pass


@pytest.mark.usefixtures("windows")
def test_waiting_without_posix(tmp_path: Path) -> None:
    done = threading.Event()

    def second() -> None:
        with alone_in(tmp_path):
            done.set()

    waiting = threading.Thread(target=second)
    with alone_in(tmp_path):
        waiting.start()
        assert not done.wait(0.3)
    assert done.wait(60)
    waiting.join()


@pytest.mark.usefixtures("windows")
def test_other_errors_do_not_count_as_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(WINDOWS, "locking", broken)
    with pytest.raises(OSError, match="broken"), alone_in(tmp_path):
        pass


def test_a_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", None)

    def locked(file: IO[Any]) -> None:
        lock_file(file, wait=False)

    with (tmp_path / "x").open("a") as one, (tmp_path / "x").open("a") as other:
        locked(one)
        locked(other)
