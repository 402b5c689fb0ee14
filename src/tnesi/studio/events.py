"""Server-sent events: the state after each change, to everybody who listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tnesi.studio.requests import RequestError
from tnesi.studio.session import Session

_MOST_STREAMS = 100
_HEARTBEAT = 10.0
_CALM = 0.1
"""Seconds between two states, at least (longer where many listen): what comes in between is in the later one."""


class Bell:
    """Rings in the loop of the server whenever a session has changed, whichever thread has changed it."""

    def __init__(self, session: Session) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.n_streams = 0
        session.listen(self.ring)

    def ring(self) -> None:
        """Wake everybody who waits; may be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Wait for a change; return whether there was one in so many seconds."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        return True


def event_stream(session: Session, client: str, request: Request) -> Response:
    """Return the stream of states for a client."""
    bell: Bell = request.app.state.bell
    if bell.n_streams >= _MOST_STREAMS:
        raise RequestError(429, "too many pages are open: close some")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=headers)
    return StreamingResponse(_events(session, client, bell), media_type="text/event-stream", headers=headers)


async def _events(session: Session, client: str, bell: Bell) -> AsyncIterator[str]:
    bell.n_streams += 1
    try:
        sent = 0
        while not session.ending:
            version = session.version
            if version != sent:
                sent, text = session.state_text(client)
                yield f"event: state\nid: {sent}\ndata: {text}\n\n"
                await asyncio.sleep(_CALM * max(1.0, bell.n_streams / 5))
            elif not await bell.wait(_HEARTBEAT):
                yield ": still here\n\n"
    finally:
        bell.n_streams -= 1
        session.questions.give_back(client)
