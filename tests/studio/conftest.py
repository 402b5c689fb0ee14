"""A studio in this process: small data, a first layer that is learned once, and a client with the token."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tnesi.data import Data, load_named
from tnesi.studio import first_layer
from tnesi.studio.first_layer import Settings
from tnesi.studio.learner import Learner
from tnesi.studio.security import AccessPolicy
from tnesi.studio.server import Server, bind
from tnesi.studio.session import Session
from tnesi.studio.store import Store

Sessions = Callable[..., Session]
Stores = Callable[..., Store]
TNESI = [sys.executable, "-c", "from tnesi.cli import main; main()", "label"]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """A page, as seen by the server."""

    def __init__(self, session: Session, policy: AccessPolicy) -> None:
        self.session, self.policy = session, policy
        self.origin = f"http://127.0.0.1:{policy.port}"

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        """Send a request with the given parts only."""
        connection = HTTPConnection("127.0.0.1", self.policy.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a request as the page does; return the JSON of the response, or the response if it is not JSON."""
        headers = {"Authorization": f"Bearer {self.policy.token}", "Origin": self.origin}
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer = self.send(method, path, None if body is None else json.dumps(body).encode(), headers)
        assert answer.status == status, answer.content
        return answer.json if answer.headers["content-type"] == "application/json" else answer

    def get(self, path: str, status: int = 200) -> Any:
        return self.ask("GET", path, status=status)

    def answer(self, row: int, label: str, client: str = "a", **more: Any) -> Any:
        return self.ask("POST", "/api/answers", {"client": client, "row": row, "label": label, **more})

    def learned(self) -> Any:
        """Return the state once all answers are learned."""
        return wait_for(lambda: (state := self.get("/api/state?client=a")) and not state["busy"] and state)


def wait_for(find: Callable[[], Any], seconds: float = 90) -> Any:
    """Return the result as soon as it is true."""
    until = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)
    return found


@pytest.fixture(scope="session")
def waiting() -> Callable[..., Any]:
    return wait_for


@pytest.fixture(scope="session")
def digits() -> Data:
    return load_named("digits")


@pytest.fixture(scope="session")
def learned_bytes(digits: Data) -> bytes:
    return first_layer.to_bytes(first_layer.learn(digits, Settings(fields=100), lambda *_: False))


@contextmanager
def opening(folder: Path, digits: Data, learned_bytes: bytes) -> Iterator[Sessions]:
    opened: list[Session] = []

    def open_session(name: str = "digits.sqlite") -> Session:
        store = Store(folder / name, digits.fingerprint, digits.name, digits.rows.n_rows)
        if store.kept_model() is None:
            store.keep_model(learned_bytes, Settings(fields=100).text())
        session = Session(digits, store)
        opened.append(session)
        session.start(Learner(session, Settings()))
        wait_for(lambda: session.questions.open_for("", ()) and session.map_version)
        return session

    yield open_session
    for session in opened:
        session.close()


@pytest.fixture
def sessions(tmp_path: Path, digits: Data, learned_bytes: bytes) -> Iterator[Sessions]:
    """Open a session on digits; the same file again is a restart."""
    with opening(tmp_path, digits, learned_bytes) as open_session:
        yield open_session


@contextmanager
def served(session: Session) -> Iterator[Client]:
    """Serve a session on a free port of this machine."""
    listening = bind("127.0.0.1", 0)
    policy = AccessPolicy("t" * 43, "127.0.0.1", listening.getsockname()[1])
    server = Server(session, policy)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield Client(session, policy)
    finally:
        server.handle_exit(signal.SIGINT, None)
        thread.join()
        listening.close()


@pytest.fixture(scope="session")
def serving() -> Callable[[Session], Any]:
    return served


@pytest.fixture
def page(sessions: Sessions) -> Iterator[Client]:
    with served(sessions()) as client:
        yield client


@pytest.fixture(scope="module")
def shared_page(tmp_path_factory: pytest.TempPathFactory, digits: Data, learned_bytes: bytes) -> Iterator[Client]:
    """One server for all tests of a file."""
    with opening(tmp_path_factory.mktemp("shared"), digits, learned_bytes) as sessions, served(sessions()) as client:
        yield client


class Process:
    """A studio in a separate process."""

    def __init__(self, zygotes: Any, folder: Path, *words: Any, **environment: str) -> None:
        """Without zygotes, the command is started as a user would."""
        self.log = folder / f"log-{time.monotonic_ns()}.txt"
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1", **environment}
        given = [*map(str, words), "--no-browser"]
        with self.log.open("wb") as log:
            self.process = (
                zygotes.start(["label", *given], cwd=folder, env=environment, stdout=log)
                if zygotes
                else subprocess.Popen([*TNESI, *given], cwd=folder, env=environment, stdout=log, stderr=log)
            )
        self.address = wait_for(self._address)
        self.origin, self.token = self.address.split("/?token=")

    def _address(self) -> str | None:
        assert self.process.poll() is None, self.log.read_text()
        found = re.search(r"^http://\S+/\?token=\S+$", self.log.read_text(), re.MULTILINE)
        return found[0] if found else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = HTTPConnection(self.origin.removeprefix("http://"), timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Origin": self.origin, "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, content
        return json.loads(content) if answer.headers["content-type"] == "application/json" else content

    def ready(self) -> Any:
        return wait_for(lambda: (state := self.ask("GET", "/api/state?client=a"))["question"] and state)

    def end(self, how: int = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=90)


@pytest.fixture
def run(tmp_path: Path, zygotes: Any) -> Iterator[Callable[..., Process]]:
    running: list[Process] = []

    def start(*words: Any, folder: Path = tmp_path, forked: bool = True, **environment: str) -> Process:
        running.append(Process(zygotes if forked else None, folder, *words, **environment))
        return running[-1]

    yield start
    for one in running:
        one.end(signal.SIGKILL)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened: list[Store] = []

    def open_store(name: str = "p.sqlite", fingerprint: str = "f", n_rows: int = 100) -> Store:
        opened.append(Store(tmp_path / name, fingerprint, "counts.csv", n_rows))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()
