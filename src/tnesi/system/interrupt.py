"""Ctrl-C between iterations, never within one: what has been begun is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType


@contextmanager
def _later() -> Iterator[None]:
    """Put off the first Ctrl-C to the end of the block; a second one does not wait."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # ignored, or not Python's to handle
        yield
        return
    came: list[tuple[int, FrameType | None]] = []

    def answer(number: int, frame: FrameType | None) -> None:
        if came:
            before(number, frame)
        came.append((number, frame))

    signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        before(*came[0])


def completed() -> AbstractContextManager[None]:
    """Return a context in which Ctrl-C is put off; only the main thread ever hears it."""
    return _later() if threading.current_thread() is threading.main_thread() else nullcontext()


def complete_iterations(n: int) -> Iterator[AbstractContextManager[None]]:
    """Yield such a context for each of `n` iterations."""
    for _ in range(n):
        yield completed()
