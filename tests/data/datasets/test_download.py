"""The downloader against a local server that misbehaves on request."""

from __future__ import annotations

import errno
import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tnesi.data.datasets import download as module
from tnesi.data.datasets.download import DownloadError, Remote, download, unpack

CONTENT = bytes(range(256)) * 4000
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


class Handler(BaseHTTPRequestHandler):
    """``/good`` serves the content and supports ranges; the other paths fail in various ways."""

    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Range")))
        getattr(self, self.path.strip("/").replace("-", "_"))()

    def start(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def first(self) -> int:
        return int(self.headers.get("Range", "bytes=0-")[6:-1])

    def good(self, most: int = len(CONTENT)) -> None:
        first = self.first()
        if first >= len(CONTENT):
            self.send_error(416)
            return
        rest = CONTENT[first:]
        extra = {"Content_Range": f"bytes {first}-{len(CONTENT) - 1}/{len(CONTENT)}"} if first else {}
        self.start(206 if first else 200, Content_Length=len(rest), **extra)
        self.wfile.write(rest[:most])

    def cut(self) -> None:
        self.good(most=300_000)

    def dead(self) -> None:
        self.good(most=0)

    def no_ranges(self) -> None:
        self.start(200, Content_Length=len(CONTENT))
        self.wfile.write(CONTENT)

    def no_length(self) -> None:
        self.start(200)
        self.wfile.write(CONTENT)

    def other_range(self) -> None:
        self.start(206, Content_Length=5, Content_Range="bytes 7-11/12")
        self.wfile.write(CONTENT[7:12])

    def wrong(self) -> None:
        self.start(200, Content_Length=len(CONTENT))
        self.wfile.write(CONTENT[::-1])

    def page(self) -> None:
        self.start(200, Content_Length=6, Content_Type="text/html")
        self.wfile.write(b"<html>")

    def endless(self) -> None:
        self.start(200)
        try:
            while True:
                self.wfile.write(CONTENT)
        except ConnectionError:
            self.server.hung_up.set()

    def silent(self) -> None:
        self.server.closing.wait(10)

    def refusing(self) -> None:
        self.send_error(416)

    def missing(self) -> None:
        self.send_error(404)

    def moved(self) -> None:
        self.start(302, Location="/good")

    def to_a_local_file(self) -> None:
        self.start(302, Location="file:///etc/passwd")

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = False  # closing the server waits for pending responses

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str | None]] = []
        self.hung_up, self.closing = threading.Event(), threading.Event()

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that close the connection."""


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


Offer = Callable[..., Remote]


@pytest.fixture
def offer(server: Server) -> Offer:
    def remote(*paths: str, **changes: Any) -> Remote:
        urls = tuple(f"http://127.0.0.1:{server.server_port}/{path}" for path in paths)
        facts: dict[str, Any] = {"digest": DIGEST, "size": len(CONTENT), "at_most": len(CONTENT)}
        return Remote("file.bin", urls, **(facts | changes))

    return remote


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_whole_file_with_progress(offer: Offer, tmp_path: Path, server: Server) -> None:
    told: list[tuple[str, int, int | None]] = []
    path = download(offer("good"), tmp_path / "new" / "folder", lambda *args: told.append(args))
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["file.bin"]
    done = [d for _, d, _ in told]
    assert done == sorted(done)
    assert told[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    download(offer("good"), path.parent)
    assert len(server.requests) == 1, "a file that is there is not fetched again"


@pytest.mark.parametrize("digest", [f"md5:{hashlib.md5(CONTENT).hexdigest()}", DIGEST])
@pytest.mark.parametrize("path", ["good", "no-ranges", "no-length", "moved"])
@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_well_behaved_servers(offer: Offer, tmp_path: Path, path: str, digest: str, size: int | None) -> None:
    assert download(offer(path, digest=digest, size=size), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["good", "no-ranges", "no-length"])
def test_resumes_where_it_stopped(offer: Offer, tmp_path: Path, server: Server, path: str) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    assert download(offer(path), tmp_path).read_bytes() == CONTENT
    assert server.requests == [(f"/{path}", "bytes=1000-")]
    assert names(tmp_path) == ["file.bin"]


def test_a_finished_part_needs_no_network(offer: Offer, tmp_path: Path, server: Server) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert download(offer("missing"), tmp_path).read_bytes() == CONTENT
    assert not server.requests


@pytest.mark.parametrize("part", [b"x" * 1000, CONTENT + b"more", CONTENT[:-1] + b"x"])
def test_a_damaged_partial_download_is_discarded(offer: Offer, tmp_path: Path, part: bytes) -> None:
    (tmp_path / "file.bin.part").write_bytes(part)
    assert download(offer("good"), tmp_path).read_bytes() == CONTENT


def test_a_cut_connection_is_resumed(offer: Offer, tmp_path: Path, server: Server) -> None:
    assert download(offer("cut"), tmp_path).read_bytes() == CONTENT
    assert [first for _, first in server.requests] == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]


@pytest.mark.parametrize("bad", ["missing", "wrong", "page", "endless", "dead", "to-a-local-file"])
@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_the_next_mirror_is_tried(offer: Offer, tmp_path: Path, bad: str, size: int | None) -> None:
    assert download(offer(bad, "good", size=size), tmp_path).read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("missing", "404"),
        ("refusing", "416"),
        ("wrong", "checksum"),
        ("page", "offers 6 bytes"),
        ("endless", "more than 1024000 bytes"),
        ("dead", "ended after 0 of 1024000 bytes"),
        ("other-range", "a different range"),
        ("to-a-local-file", "not allowed|unknown url type"),
    ],
)
def test_failures_are_reported_and_leave_no_damage(offer: Offer, tmp_path: Path, bad: str, why: str) -> None:
    with pytest.raises(DownloadError, match=why):
        download(offer(bad), tmp_path)
    assert all(path.stat().st_size == 0 for path in tmp_path.iterdir())


def test_only_http(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    with pytest.raises(DownloadError, match="unknown url type"):
        download(Remote("copy", (source.as_uri(),), DIGEST, len(CONTENT)), tmp_path)


def test_an_endless_body_times_out(offer: Offer, tmp_path: Path, server: Server) -> None:
    with pytest.raises(DownloadError):
        download(offer("endless"), tmp_path)
    assert server.hung_up.wait(10)


def test_an_unreachable_server_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:9/x"):
        download(Remote("file.bin", ("http://127.0.0.1:9/x",), DIGEST, 10), tmp_path)


def test_a_silent_server_times_out(offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_SECONDS", 0.1)
    with pytest.raises(DownloadError, match="timed out"):
        download(offer("silent"), tmp_path)


def test_ctrl_c_keeps_what_was_received(offer: Offer, tmp_path: Path, server: Server) -> None:
    def stop(_: str, done: int, __: int | None) -> None:
        if done > 500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(offer("good"), tmp_path, stop)
    had = (tmp_path / "file.bin.part").stat().st_size
    assert 500_000 < had < len(CONTENT)
    assert download(offer("good"), tmp_path).read_bytes() == CONTENT
    assert server.requests[-1] == ("/good", f"bytes={had}-")


def test_too_little_space(offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(DownloadError, match=r"1 MB .*free some space"):
        download(offer("good"), tmp_path)


def test_full_disk(offer: Offer, tmp_path: Path) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DownloadError, match="disk is full: free some space"):
        download(offer("good", "good"), tmp_path, full)


def test_unpack_takes_only_what_is_wanted(tmp_path: Path) -> None:
    archive, folder = tmp_path / "all.zip", tmp_path / "out"
    folder.mkdir()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("gzip/a", "1")
        file.writestr("../../b", "2")
        file.writestr("/c", "3")
        file.writestr("other", "4")
    unpack(archive, ["a", "b"], folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "1", "b": "2"}
    with pytest.raises(DownloadError, match="does not contain z"):
        unpack(archive, ["a", "z"], folder)


def test_unpack_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_UNPACKED", 1000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", bytes(1001))
    with pytest.raises(DownloadError, match="is too large"):
        unpack(tmp_path / "bomb.zip", ["a"], tmp_path)
    assert names(tmp_path) == ["bomb.zip"]
