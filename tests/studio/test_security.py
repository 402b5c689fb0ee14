"""Access: the token, the host name, the origin; and the headers of responses."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from typing import Any

import pytest

from tnesi.studio import events, server
from tnesi.studio.requests import MOST_BYTES
from tnesi.studio.security import POLICY, AccessPolicy


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


BODY = json.dumps({"client": "a", "row": 1, "label": "x"}).encode()


def bearer(page: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {page.policy.token}"}


def posting(page: Any, **changes: str) -> dict[str, str]:
    return {**bearer(page), "Origin": page.origin, "Content-Type": "application/json", **changes}


def test_requests_need_the_token(page: Any) -> None:
    schema = page.get("/api/schema")
    for path, operations in schema["paths"].items():
        for method in operations:
            address = path.replace("{row}", "1").replace("{field}", "1")
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"{page.policy.cookie}=wrong"}):
                answer = page.send(method.upper(), address, headers={"Origin": page.origin, **headers})
                assert answer.status == 401, (method, path)
                assert "error" in answer.json
    assert page.session.store.view.last == 0


def test_the_page_needs_the_token_and_stores_it_in_a_cookie(page: Any) -> None:
    for path in ("/", "/?token=wrong", f"/?token={page.policy.token[:-1]}"):
        stranger = page.send("GET", path)
        assert (stranger.status, "set-cookie" in stranger.headers) == (401, False)
        assert b"terminal" in stranger.content
    answer = page.send("GET", f"/?token={page.policy.token}")
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    given = {"Cookie": cookie.partition(";")[0]}
    again = page.send("GET", "/", headers=given)  # a new tab
    assert (again.status, again.headers["location"]) == (303, f"/?token={page.policy.token}")
    assert page.send("GET", "/api/state", headers=given).status == 200
    assert page.send("GET", "/api/pictures/row/1.png", headers=given).status == 200


@pytest.mark.parametrize("other", ['prefs={"theme":"dark"}', "foo", "a b=1", "expires=1", "=", "x=\\"])
def test_cookies_of_other_servers_do_no_harm(page: Any, other: str) -> None:
    own = f"{page.policy.cookie}={page.policy.token}"
    for cookies in (f"{other}; {own}", f"{own}; {other}", f"{other};{own}"):
        assert page.send("GET", "/api/rows/0", headers={"Cookie": cookies}).status == 200
    assert page.send("GET", "/api/rows/0", headers={"Cookie": f"{other}; x{own}"}).status == 401


def test_a_cookie_alone_changes_nothing(page: Any) -> None:
    headers = posting(page, Cookie=f"{page.policy.cookie}={page.policy.token}")
    del headers["Authorization"]
    assert page.send("POST", "/api/answers", BODY, headers).status == 401
    assert page.session.store.view.last == 0


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "127.0.0.1.evil:{port}"]
)
def test_other_names_of_the_machine_are_refused(page: Any, host: str) -> None:
    headers = {**bearer(page), "Host": host.format(port=page.policy.port)}
    for path in ("/api/state", "/page/index.html", f"/?token={page.policy.token}"):
        assert page.send("GET", path, headers=headers).status == 403


def test_localhost_is_this_machine(page: Any) -> None:
    headers = {**bearer(page), "Host": f"localhost:{page.policy.port}"}
    assert page.send("GET", "/api/state", headers=headers).status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", None]
)
def test_other_pages_change_nothing(page: Any, origin: str | None) -> None:
    headers = posting(page)
    del headers["Origin"]
    if origin is not None:
        headers["Origin"] = origin.format(port=page.policy.port)
    assert page.send("POST", "/api/answers", BODY, headers).status == 403
    assert page.session.store.view.last == 0


def test_other_pages_read_nothing(page: Any) -> None:
    cookie = {"Cookie": f"{page.policy.cookie}={page.policy.token}"}
    assert page.send("GET", "/api/state", headers={**cookie, "Origin": "http://evil.example"}).status == 403
    for site in ("cross-site", "same-site"):
        assert page.send("GET", "/api/state", headers={**cookie, "Sec-Fetch-Site": site}).status == 403


def test_headers(page: Any) -> None:
    answers = [
        page.send("GET", "/api/state", headers=bearer(page)),
        page.send("GET", "/api/state"),
        page.send("GET", f"/?token={page.policy.token}"),
        page.send("GET", "/page/style.css"),
        page.send("GET", "/page/nothing"),
        page.send("GET", "/api/pictures/row/1.png", headers=bearer(page)),
    ]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers
    assert answers[0].headers["cache-control"] == "no-store"
    assert "unsafe" not in POLICY


def test_the_files_of_the_page(page: Any) -> None:
    style = page.send("GET", "/page/style.css")
    assert style.headers["content-type"].startswith("text/css")
    assert page.send("GET", "/page/main.js").headers["content-type"].startswith("text/javascript")
    again = page.send("GET", "/page/style.css", headers={"If-None-Match": style.headers["etag"]})
    assert (again.status, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/page/../api.py",
        "/page/..%2fapi.py",
        "/page/%2e%2e/api.py",
        "/page/..%5capi.py",
        "/page//etc/passwd",
        "/page/%00",
        "/page/../../../pyproject.toml",
        "/etc/passwd",
        "//etc/passwd",
        "/page/index.html/..",
        "/page/",
        "/page/api.py",
        "/api/export/../labels.csv",
        "/api/export/..%2f..%2fetc%2fpasswd",
        "/api/pictures/row/..%2f1.png",
        "/api/rows/../state",
    ],
)
def test_no_path_is_a_file(page: Any, path: str) -> None:
    answer = page.send("GET", path, headers=bearer(page))
    assert answer.status == 404
    assert set(answer.json) == {"error"}


def insist(send: Callable[[], Any], times: int = 50) -> Any:
    """Return the response to a request that the server does not read to its end.

    It closes the connection then, and if unread data are left, TCP may reset the connection before the answer is read.
    """
    for _ in range(times):
        with suppress(ConnectionError):
            return send()
    raise AssertionError(f"no answer in {times} attempts")


def test_sizes_are_limited(page: Any) -> None:
    def chunked() -> bytes:
        """Send a request without its length."""
        with socket.create_connection(("127.0.0.1", page.policy.port), timeout=60) as raw:
            head = "".join(f"{name}: {value}\r\n" for name, value in posting(page).items())
            start = f"POST /api/answers HTTP/1.1\r\nHost: 127.0.0.1:{page.policy.port}\r\n{head}"
            raw.sendall(f"{start}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode())
            raw.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n" + b"4000\r\n" + b" " * 0x4000 + b"\r\n0\r\n\r\n")
            return raw.recv(100)

    large = b" " * (MOST_BYTES + 1)
    assert insist(lambda: page.send("POST", "/api/answers", large, posting(page))).status == 413
    assert insist(chunked).startswith(b"HTTP/1.1 413")
    negative = posting(page, **{"Content-Length": "-5"})
    assert insist(lambda: page.send("POST", "/api/answers", b"", negative)).status in (400, 413)
    long = "/api/gallery?class=" + "x" * 100_000
    assert insist(lambda: page.send("GET", long, headers=bearer(page))).status == 414
    assert page.get("/api/state")["answers"]["last"] == 0


def test_only_what_there_is_can_be_done(page: Any) -> None:
    assert page.send("PUT", "/api/answers", BODY, posting(page)).status == 405
    assert page.send("POST", "/", BODY, posting(page)).status == 405
    assert page.send("POST", "/page/style.css", BODY, posting(page)).status == 405
    assert page.send("OPTIONS", "/api/answers", headers=posting(page)).status == 405


def test_tokens_of_all_kinds_are_compared(page: Any) -> None:
    for token in ("", "é" * 43, "t" * 10_000, page.policy.token + " x"):
        headers = {"Authorization": "Bearer " + token.encode().decode("latin-1")}
        assert page.send("GET", "/api/state", headers=headers).status == 401
    for cookie in ("=", ";;;", "a b c", f'{page.policy.cookie}="', "\x01"):
        assert page.send("GET", "/api/state", headers={"Cookie": cookie}).status in (400, 401)


def test_other_interfaces() -> None:
    policy = AccessPolicy("t" * 43, "0.0.0.0", 80)
    assert policy.address.startswith("http://127.0.0.1:80/?token=")
    assert policy.is_host("192.168.1.7:80")
    assert policy.is_host("[fe80::1]:80")
    assert policy.is_host("192.168.1.7")  # browsers leave out port 80
    assert not policy.is_host("evil.example:80")
    assert not policy.is_host("[127.0.0.1:80")
    assert policy.is_host(f"{socket.gethostname()}:80")
    named = AccessPolicy("t" * 43, "10.0.0.1", 8000)
    assert named.is_host("10.0.0.1:8000")
    assert not named.is_host("10.0.0.2:8000")
    assert AccessPolicy("t", "::1", 8000).address.startswith("http://[::1]:8000/")
    assert AccessPolicy("t", "::", 8000).address.startswith("http://[::1]:8000/")


@pytest.mark.parametrize("part", ["bytes=abc", "bytes=5-1", "lines=0-1", "bytes=999999999-"])
def test_files_are_given_whole(page: Any, part: str) -> None:
    assert page.send("GET", "/api/export/labels.csv", headers={**bearer(page), "Range": part}).status == 200


def test_the_head_of_the_events_ends(page: Any) -> None:
    assert page.send("HEAD", "/api/events", headers=bearer(page)).status == 200


def test_too_large_a_body_after_the_answer_has_begun(page: Any, capfd: pytest.CaptureFixture[str]) -> None:
    head = f"Host: 127.0.0.1:{page.policy.port}\r\nAuthorization: Bearer {page.policy.token}\r\n"
    with socket.create_connection(("127.0.0.1", page.policy.port), timeout=30) as connection:
        connection.sendall(f"GET /api/events HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        with suppress(OSError):  # it may close the connection at any time
            for _ in range(3):
                connection.sendall(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
            while connection.recv(65536):
                pass
    assert page.get("/api/state")["version"] > 0
    assert "Traceback" not in capfd.readouterr().err


FOREVER = 10.0**6
"""Seconds: what takes that long does not happen in a test."""


@pytest.fixture
def crowded(sessions: Any, serving: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A page that allows 20 connections and never closes an idle one."""
    monkeypatch.setattr(server, "_PATIENCE", FOREVER)
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 20)
    monkeypatch.setattr(events, "_MOST_STREAMS", 10)
    with serving(sessions()) as page:
        yield page


def test_half_sent_requests_do_not_block_other_clients(crowded: Any, capfd: pytest.CaptureFixture[str]) -> None:
    port = crowded.policy.port
    with ExitStack() as opened:
        used = HTTPConnection("127.0.0.1", port, timeout=30)
        used.auto_open = False
        used.connect()
        opened.callback(used.close)
        stream = opened.enter_context(_stream(crowded, "mine"))
        _read_until(stream, b"event: state")
        attack = []
        for _ in range(3):
            used.request("GET", "/api/state", headers=bearer(crowded))
            assert used.getresponse().read()  # an open connection stays usable
            for _ in range(30):
                attack.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)))
                with suppress(OSError):  # it may have been closed already
                    attack[-1].sendall(b"GET / HTTP/1.1\r\n")
            assert crowded.get("/api/state")["phase"] == "ready"  # so is a new one
            assert crowded.send("GET", f"/?token={crowded.policy.token}").status == 200
        assert all(_closed(one) for one in attack[:60])  # the oldest went first
        crowded.answer(3, "x")
        _read_until(stream, b'"last": 1')
    assert capfd.readouterr().err == ""


def test_refused_requests_do_not_block_other_clients(crowded: Any) -> None:
    request = f"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:{crowded.policy.port}\r\n\r\n".encode()
    with ExitStack() as opened:
        for _ in range(60):
            one = opened.enter_context(socket.create_connection(("127.0.0.1", crowded.policy.port), timeout=30))
            one.sendall(request)
            _read_until(one, b"401")
        assert crowded.get("/api/state")["phase"] == "ready"


def test_event_streams_do_not_block_other_clients(crowded: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as opened:
        mine = opened.enter_context(_stream(crowded, "mine"))
        _read_until(mine, b"event: state")
        hoard = []
        for _ in range(60):
            hoard.append(opened.enter_context(_stream(crowded, "hoard")))
            _read_until(hoard[-1], b"event: state")
        assert crowded.get("/api/state")["phase"] == "ready"
        for one in hoard[:40]:
            while not _closed(one):  # the oldest of the same client have ended
                pass
        other = opened.enter_context(_stream(crowded, "other"))
        _read_until(other, b"event: state")
        crowded.answer(3, "x")
        for one in (mine, other, hoard[-1]):
            _read_until(one, b'"last": 1')
    assert capfd.readouterr().err == ""


def test_more_clients_than_event_streams(crowded: Any) -> None:
    with ExitStack() as opened:
        for number in range(10):
            _read_until(opened.enter_context(_stream(crowded, f"c{number}")), b"event: state")
        answer = crowded.send("GET", "/api/events?client=more", headers=bearer(crowded))
        assert (answer.status, int(answer.headers["retry-after"]) > 0) == (429, True)
        assert "close" in answer.json["error"]
        assert crowded.get("/api/state")["phase"] == "ready"


def test_busy_connections_are_not_closed_for_new_ones(crowded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MOST_STREAMS", 20)
    with ExitStack() as opened:
        streams = [opened.enter_context(_stream(crowded, f"c{number}")) for number in range(20)]
        for one in streams:
            _read_until(one, b"event: state")
        assert _closed(opened.enter_context(socket.create_connection(("127.0.0.1", crowded.policy.port), timeout=30)))
        crowded.session.store.label(3, "x").result()
        crowded.session.answered()
        for one in streams:
            _read_until(one, b'"last": 1')


def test_silent_connections_are_closed(crowded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check closes connections without requests since the last check."""
    made: list[Any] = []
    before = server._Connection.connection_made

    def connection_made(self: Any, transport: Any) -> None:
        before(self, transport)
        made.append(self)

    def look() -> None:
        for one in made:
            looked = threading.Event()
            one.loop.call_soon_threadsafe(lambda one=one, looked=looked: (one._look(), looked.set()))
            assert looked.wait(30)

    monkeypatch.setattr(server._Connection, "connection_made", connection_made)
    with ExitStack() as opened:
        stream = opened.enter_context(_stream(crowded, "mine"))
        _read_until(stream, b"event: state")
        used = HTTPConnection("127.0.0.1", crowded.policy.port, timeout=30)
        opened.callback(used.close)
        used.connect()
        used.auto_open = False
        for _ in range(3):
            used.request("GET", "/api/state", headers=bearer(crowded))
            assert used.getresponse().read()
            look()
        silent = opened.enter_context(socket.create_connection(("127.0.0.1", crowded.policy.port), timeout=30))
        silent.sendall(b"GET / HTTP/1.1\r\n")
        crowded.get("/api/state")  # the other one was accepted before
        look()
        assert _closed(silent)
        crowded.answer(3, "x")
        _read_until(stream, b'"last": 1')  # a stream is not idle


@pytest.mark.parametrize("path", ["/api/answers", "/page/style.css", "/"])
def test_ambiguous_lengths_are_refused(page: Any, path: str) -> None:
    """A proxy might use the other length and take the rest for another request."""
    head = "".join(f"{name}: {value}\r\n" for name, value in posting(page).items())
    smuggled = f"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:{page.policy.port}\r\n{head}\r\n"
    for lengths in (
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
    ):
        with socket.create_connection(("127.0.0.1", page.policy.port), timeout=30) as raw:
            start = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{page.policy.port}\r\n{head}{lengths}\r\n\r\n"
            raw.sendall((start + "0\r\n\r\n" + smuggled).encode())
            found = b""
            with suppress(ConnectionResetError):
                while more := raw.recv(2**16):
                    found += more
        assert found.startswith(b"HTTP/1.1 400")
        assert found.count(b"HTTP/1.1") == 1  # the connection ends there
    assert page.get("/api/state")["answers"]["last"] == 0


def _stream(page: Any, client: str) -> socket.socket:
    """Open a stream of events."""
    connection = socket.create_connection(("127.0.0.1", page.policy.port), timeout=30)
    head = f"Host: 127.0.0.1:{page.policy.port}\r\nAuthorization: Bearer {page.policy.token}\r\n"
    connection.sendall(f"GET /api/events?client={client} HTTP/1.1\r\n{head}\r\n".encode())
    return connection


def _read_until(connection: socket.socket, wanted: bytes) -> None:
    found = b""
    while wanted not in found:
        more = connection.recv(2**16)
        assert more, found
        found += more


def _closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
