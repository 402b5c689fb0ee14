"""Access control: requests need the token, the origin of the page, and a host name of this machine."""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from tnesi.studio.requests import MOST_BYTES, RequestError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""Defaults for all responses."""
AUTHORIZED = "authorized"
"""Key in the state of a request: whether it had the token. The server closes connections without it first."""
_LONGEST_QUERY = 8192
_READS = ("GET", "HEAD")
_TOO_LARGE = f"The request has more than {MOST_BYTES} bytes"


@dataclass(frozen=True)
class AccessPolicy:
    """Which requests are allowed.

    Attributes
    ----------
    token : str
    host : str
        The address on which the server listens.
    port : int
    """

    token: str
    host: str
    port: int

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies ignore ports, so each studio on a machine needs its own name."""
        return f"tnesi_token_{self.port}"

    @property
    def address(self) -> str:
        """The address to open in a browser on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/?token={self.token}"

    def knows(self, token: str | None) -> bool:
        """Compare a token in constant time."""
        return token is not None and hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def is_host(self, host: str) -> bool:
        """Whether a Host header names this server; other names (DNS rebinding) are refused."""
        name, _, port = host.lower().rpartition(":")
        if port != str(self.port):
            name, port = host.lower(), "80"
        if port != str(self.port) or not name:
            return False
        plain = name[1:-1] if name.startswith("[") and name.endswith("]") else name
        if plain in ("localhost", "127.0.0.1", "::1", self.host.lower()):
            return True
        if self.host not in ("0.0.0.0", "::"):
            return False
        try:
            ipaddress.ip_address(plain)
        except ValueError:
            return plain in _own_names()
        return True

    def is_origin(self, origin: str) -> bool:
        """Whether a request comes from a page of this server."""
        return origin.startswith("http://") and self.is_host(origin.removeprefix("http://"))


@cache
def _own_names() -> tuple[str, str]:
    """The names of this machine; looking them up may be slow."""
    return socket.gethostname().lower(), socket.getfqdn().lower()


class Guard:
    """Rejects requests that are not allowed, limits bodies, and adds security headers."""

    def __init__(self, app: Starlette, policy: AccessPolicy) -> None:
        self.app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        started = False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # parts of a file are not given: all of it, or nothing
        scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0].lower() != b"range"]}
        refusal = self._refusal(scope)
        if refusal is not None:
            status, text = refusal
            # where a request of status 400 ends is ambiguous, so nothing after it can be trusted
            last = {"connection": "close"} if status == 400 else None
            await JSONResponse({"error": text}, status, last)(scope, receive, with_headers)
            return
        scope.setdefault("state", {})[AUTHORIZED] = self._has_token(scope)
        await self.app(scope, _limited(receive, lambda: started), with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return status and reason if a request is refused."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if "content-length" in headers and "transfer-encoding" in headers:
            return 400, "The request has both Content-Length and Transfer-Encoding: send only one of them"
        if len(hosts) != 1 or not self._policy.is_host(hosts[0]):
            return 403, "Invalid host name: use the address from the terminal"
        if len(origins) > 1 or not all(map(self._policy.is_origin, origins)):
            return 403, "Cross-site request"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and scope["path"] != "/":
            return 403, "Cross-site request"
        if len(scope["query_string"]) > _LONGEST_QUERY:
            return 414, "The address is too long"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > MOST_BYTES:
            return 413, _TOO_LARGE
        if not scope["path"].startswith("/api/"):
            return None if scope["method"] in _READS else (405, "Method not allowed")
        by_header = self._policy.knows(_bearer(headers.get("authorization", "")))
        if scope["method"] in _READS:
            if by_header or self._policy.knows(self._in_cookie(headers.get("cookie", ""))):
                return None
        elif by_header:
            return None if origins else (403, "The request has no Origin header")
        return 401, "Invalid token: open the address that was printed in the terminal"

    def _has_token(self, scope: Scope) -> bool:
        """Whether a request has the token anywhere: in its address, in a header or in a cookie."""
        headers = Headers(scope=scope)
        by_header = self._policy.knows(_bearer(headers.get("authorization", "")))
        return by_header or self.lets_in(scope["query_string"], headers.get("cookie", ""))

    def lets_in(self, query: bytes, cookie: str) -> bool:
        """Whether the page itself may be served."""
        given = parse_qs(query.decode("latin-1")).get("token", [])
        return any(self._policy.knows(token) for token in given) or self._policy.knows(self._in_cookie(cookie))

    def _in_cookie(self, header: str) -> str | None:
        """Return the token in the cookies, which may include cookies of other servers on this machine."""
        pairs = (one.strip().partition("=") for one in header.split(";"))
        return next((value for name, _, value in pairs if name == self._policy.cookie), None)


def _limited(receive: Receive, started: Callable[[], bool]) -> Receive:
    """Reject bodies that are too large, or disconnect if the response has begun."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_BYTES:
            if started():
                return {"type": "http.disconnect"}
            raise RequestError(413, _TOO_LARGE)
        return message

    return limited


def _bearer(header: str) -> str | None:
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
