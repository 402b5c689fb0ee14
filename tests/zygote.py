"""Run ``tnesi`` again and again without importing scikit-learn, SciPy and pandas each time.

A process that has imported everything, and done nothing else, forks a child for each command. Run as a program this
file is that process; loaded by conftest.py it is what the tests use of it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

FREE = {"BROWSER", "COLUMNS", "PYTEST_CURRENT_TEST", "TMPDIR", "TNESI_DATA", "TNESI_STUDIO_TOKEN", "XDG_CACHE_HOME"}
"""Variables that are read when they are needed. All others may have been read by an import."""
_IMPORTED = (
    "tnesi.cli.app", "tnesi.estimators.simpletron_classifier", "tnesi.data", "tnesi.model_file",
    "tnesi.studio.first_layer", "tnesi.studio.server", "anyio._backends._asyncio", "pandas", "PIL.Image",
    "PIL.PngImagePlugin", "typer._adapters", "uvicorn.lifespan.on", "uvicorn.loops.asyncio",
)  # fmt: skip


class Command:
    """A ``tnesi`` that runs; as much of a Popen as tests need."""

    def __init__(self, words: list[str], status: int) -> None:
        self.args, self._status, self._told = words, status, b""
        self.returncode: int | None = None
        self._hear_until(b"\n", None)
        self.pid = int(self._told)
        self._told = b""

    def _hear_until(self, end: bytes, deadline: float | None) -> bool:
        """Return whether it was told before the deadline."""
        while not self._told.endswith(end):
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._status], [], [], left)[0]:
                return False
            heard = os.read(self._status, 1)
            if not heard:
                raise ChildProcessError(f"the process that starts {self.args} is gone")
            self._told += heard
        return True

    def poll(self) -> int | None:
        return self._wait(time.monotonic())

    def _wait(self, deadline: float | None) -> int | None:
        if self.returncode is None and self._hear_until(b"\n", deadline):
            self.returncode = int(self._told)
            os.close(self._status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(None if timeout is None else time.monotonic() + timeout)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Zygotes:
    """Processes that start ``tnesi``: one for each environment that an import may have read."""

    def __init__(self) -> None:
        self._running: dict[frozenset[tuple[str, str]], tuple[socket.socket, subprocess.Popen[bytes]]] = {}

    def start(self, words: list[str], *, cwd: Path, env: dict[str, str], stdout: Any, stderr: Any = None) -> Command:
        """Start ``tnesi`` with these words; what it says goes to open files, or to one."""
        key = frozenset((name, value) for name, value in env.items() if name not in FREE)
        if key not in self._running:
            self._running[key] = self._zygote(env)
        request = json.dumps([words, str(cwd), env]).encode()
        status, told = os.pipe()
        errors = stdout if stderr is None else stderr
        try:
            control = self._running[key][0]
            socket.send_fds(control, [len(request).to_bytes(4, "big")], [stdout.fileno(), errors.fileno(), told])
            control.sendall(request)
        finally:
            os.close(told)
        return Command(words, status)

    @staticmethod
    def _zygote(env: dict[str, str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        with theirs:  # a session of its own: Ctrl-C in a terminal ends the tests, and that ends it
            words = [sys.executable, "-P", __file__]
            process = subprocess.Popen(words, env=env, stdin=theirs, stdout=subprocess.DEVNULL, start_new_session=True)
        return ours, process

    def end(self) -> None:
        for control, process in self._running.values():
            control.close()
            process.wait()


_children: dict[int, int] = {}
"""The pipe on which the exit status of each process is reported."""


def _tell_ended() -> None:
    for pid, told in [*_children.items()]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with suppress(BrokenPipeError):  # nobody wants to know any more
                os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(told)
            del _children[pid]


def _received(control: socket.socket) -> tuple[list[Any], list[int]] | None:
    """Return a request and its files, or None at the end."""
    head, files, _, _ = socket.recv_fds(control, 4, 3)
    if not head:
        return None
    body, length = b"", int.from_bytes(head, "big")
    while len(body) < length:
        if not (part := control.recv(length - len(body))):
            return None
        body += part
    return json.loads(body), files


def _fork() -> int:
    assert threading.active_count() == 1  # OpenBLAS and jemalloc look after threads of theirs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, about those
        return os.fork()


def _become(words: list[str], cwd: str, env: dict[str, str], output: int, errors: int) -> None:
    """Make this child what a new process would be."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    tempfile.tempdir = None
    sys.argv = ["tnesi", *words]


def serve() -> bool:
    """Fork when asked to; return True in each child, which is to run the command, and False at the end."""
    control = socket.socket(fileno=os.dup(0))
    with open(os.devnull) as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    for name in _IMPORTED:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # children need not look through all this again
    wakes, wake = os.pipe()
    for end in (wakes, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([control, wakes], [], [])
        if wakes in ready:
            os.read(wakes, 4096)
            _tell_ended()
        if control not in ready:
            continue
        if (found := _received(control)) is None:
            break
        (words, cwd, env), (output, errors, told) = found
        pid = _fork()
        if pid == 0:
            _become(words, cwd, env, output, errors)
            for one in (control.detach(), wakes, wake, output, errors, told, *_children.values()):
                os.close(one)
            return True
        os.write(told, b"%d\n" % pid)
        _children[pid] = told
        os.close(output)
        os.close(errors)
    for pid in _children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return False


if __name__ == "__main__" and serve():
    from tnesi.cli import main

    main()
