"""The web server: routes, the files of the page, start and shutdown."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.resources import files
from itertools import count
from types import FrameType
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from tnesi.studio.api import ENDPOINTS, respond, with_etag
from tnesi.studio.events import ChangeNotifier
from tnesi.studio.security import AUTHORIZED, AccessPolicy, Guard
from tnesi.studio.session import Session

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}
_MOST_CONNECTIONS = 200
"""Simultaneous connections; some systems allow 256 open files per process. Event streams use at most half."""
_PATIENCE = 10.0
"""Seconds after which a connection without a request is closed."""
_STRANGER = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>tnesi label</title></head><body><main>
<h1>tnesi label</h1>
<p>Please open the complete address that was printed in the terminal.</p>
</main></body></html>
"""


def create_app(session: Session, policy: AccessPolicy) -> Guard:
    """Return the application behind the access policy."""
    page = {file.name: file for file in files("tnesi.studio").joinpath("page").iterdir() if file.is_file()}

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in page or name.rpartition(".")[2] not in _TYPES:
            raise HTTPException(404)
        return _page_file(name, request)

    def _page_file(name: str, request: Request) -> Response:
        return with_etag(request, page[name].read_bytes(), _TYPES[name.rpartition(".")[2]], "no-cache")

    async def index(request: Request) -> Response:
        if not guard.lets_in(request.url.query.encode(), request.headers.get("cookie", "")):
            return HTMLResponse(_STRANGER, 401)
        if "token" not in request.query_params:  # a new tab, or a bookmark: the page needs it
            return RedirectResponse(f"/?token={policy.token}", 303)
        response = _page_file("index.html", request)
        response.set_cookie(policy.cookie, policy.token, httponly=True, samesite="strict", path="/")
        return response

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        app.state.notifier = ChangeNotifier(session)
        yield

    routes = [Route("/", index), Route("/page/{name}", static)]
    for endpoint in ENDPOINTS:
        answer = partial(respond, endpoint, session)
        routes.append(Route(endpoint.address, answer, methods=[endpoint.method]))
    app = Starlette(routes=routes, lifespan=life, exception_handlers={HTTPException: _http_error, Exception: _error})
    guard = Guard(app, policy)
    return guard


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = {404: "Not found", 405: "Method not allowed"}.get(error.status_code, str(error.detail))
    return JSONResponse({"error": text}, error.status_code, headers=error.headers)


def _error(request: Request, error: Exception) -> Response:
    traceback.print_exception(error, file=sys.stderr)
    return JSONResponse({"error": "Internal error: see the terminal"}, 500)


class _Connection(H11Protocol):
    """Limits the number of connections and closes idle ones.

    At the limit a new connection replaces the oldest one that has not sent a request with the token, or else the oldest
    idle one. It is closed itself only if all others are serving requests with the token.
    """

    _last: RequestResponseCycle | None = None
    _numbers = count()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.number = next(self._numbers)
        self._make_room()
        self.loop.call_later(_PATIENCE, self._look)

    def _make_room(self) -> None:
        connections = cast("set[_Connection]", self.connections)
        others = [one for one in connections if one is not self and not one.transport.is_closing()]
        if len(others) < _MOST_CONNECTIONS:
            return
        expendable = [one for one in others if not one.authorized] or [one for one in others if one.idle]
        min(expendable, key=lambda one: one.number, default=self).transport.abort()

    @property
    def authorized(self) -> bool:
        """Whether the newest request had the token."""
        return self.cycle is not None and bool(self.cycle.scope["state"].get(AUTHORIZED))

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        if self.idle and self.cycle is self._last:  # no request since the last check
            self.transport.abort()
        else:
            self._last = self.cycle
            self.loop.call_later(_PATIENCE, self._look)


class Server(uvicorn.Server):
    """Serves a session; at shutdown it ends open streams, for which it would wait."""

    def __init__(self, session: Session, policy: AccessPolicy) -> None:
        self._session = session
        config = uvicorn.Config(
            create_app(session, policy), log_config=None, log_level="error", access_log=False, lifespan="on", ws="none",
            http=_Connection, loop="asyncio", server_header=False, timeout_graceful_shutdown=3,
            timeout_keep_alive=int(_PATIENCE),
        )  # fmt: skip
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # the command handles them; uvicorn would send them again at the end, with tracebacks

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down within three seconds, however often it is called; open requests are aborted silently."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._session.end()
        self.should_exit = True


def bind(host: str, port: int | None, likely: int | None = None) -> socket.socket:
    """Return a listening socket; without a port, on the likely one if it is free, or else on any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in [port] if port is not None else [likely or 0, 0]:
        try:
            return socket.create_server((host, wanted), family=family, backlog=128)
        except OSError as error:
            if wanted == 0 or port is not None:
                raise OSError(error.errno, f"cannot listen on {host}, port {wanted}: {error.strerror}") from error
    raise AssertionError


def new_token() -> str:
    return secrets.token_urlsafe(32)
