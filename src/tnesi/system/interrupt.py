"""Delayed Ctrl-C: an iteration that has started is completed first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType


@contextmanager
def _delayed() -> Iterator[None]:
    """Delay the first Ctrl-C until the end of the block; a second one takes effect immediately."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # ignored, or not handled by Python
        yield
        return
    received: list[tuple[int, FrameType | None]] = []

    def delay(number: int, frame: FrameType | None) -> None:
        if received:
            handler(number, frame)
        received.append((number, frame))

    signal.signal(signal.SIGINT, delay)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        handler(*received[0])


def delay_interrupt() -> AbstractContextManager[None]:
    """Return a context that delays Ctrl-C; signals are only handled in the main thread."""
    return _delayed() if threading.current_thread() is threading.main_thread() else nullcontext()
