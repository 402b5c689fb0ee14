"""Server-sent events: the state after each change."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tnesi.studio.security import AUTHORIZED
from tnesi.studio.session import Session

_MOST_STREAMS = 100
"""Simultaneous streams; other requests need connections, too."""
_RETRY_AFTER = 10
"""Seconds."""
_HEARTBEAT = 10.0
_CALM = 0.1
"""Minimum seconds between two states, longer with many streams; intermediate states are merged."""


@dataclass(eq=False)
class _Stream:
    """An open stream; `over` ends it."""

    client: str
    request: Request
    over: bool = False


class ChangeNotifier:
    """Wakes the event streams, in the server's event loop, when any thread has changed the session."""

    def __init__(self, session: Session) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._streams: list[_Stream] = []
        session.listen(self.notify)

    def notify(self) -> None:
        """Wake all waiting streams; may be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def n_streams(self) -> int:
        return len(self._streams)

    def add(self, stream: _Stream) -> bool:
        """Register a stream; return whether there is room.

        At the limit, a new stream replaces the oldest one of the client with the most streams. If no client has more
        than one, there is no room.
        """
        if len(self._streams) >= _MOST_STREAMS:
            client, n = Counter(one.client for one in self._streams).most_common(1)[0]
            if n == 1:
                return False
            oldest = next(one for one in self._streams if one.client == client)
            oldest.over = True
            setattr(oldest.request.state, AUTHORIZED, False)  # if it does not read to its end, it may be closed
            self._streams.remove(oldest)
            self._wake()
        self._streams.append(stream)
        return True

    def remove(self, stream: _Stream) -> bool:
        """Remove a stream; return whether it was the last one of its client."""
        if stream in self._streams:
            self._streams.remove(stream)
        return all(one.client != stream.client for one in self._streams)

    async def wait(self, seconds: float) -> bool:
        """Wait for a change for at most `seconds`; return whether there was one."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        return True


def event_stream(session: Session, client: str, request: Request) -> Response:
    """Return the stream of states for a client."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=headers)
    notifier: ChangeNotifier = request.app.state.notifier
    stream = _Stream(client, request)
    if not notifier.add(stream):
        wait = {"retry-after": str(_RETRY_AFTER)}
        return JSONResponse({"error": "Too many pages are open: close some"}, 429, wait)
    return _EventResponse(session, notifier, stream, headers)


class _EventResponse(StreamingResponse):
    """Sends the events of a registered stream, and removes it whichever way it ends."""

    def __init__(self, session: Session, notifier: ChangeNotifier, stream: _Stream, headers: dict[str, str]) -> None:
        self._session, self._notifier, self._stream = session, notifier, stream
        super().__init__(_events(session, notifier, stream), media_type="text/event-stream", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._notifier.remove(self._stream):
                self._session.questions.give_back(self._stream.client)


async def _events(session: Session, notifier: ChangeNotifier, stream: _Stream) -> AsyncIterator[str]:
    sent = 0
    while not (session.ending or stream.over):
        version = session.version
        if version != sent:
            sent, text = session.state_text(stream.client)
            yield f"event: state\nid: {sent}\ndata: {text}\n\n"
            await asyncio.sleep(_CALM * max(1.0, notifier.n_streams / 5))
        elif not await notifier.wait(_HEARTBEAT):
            yield ": still here\n\n"
