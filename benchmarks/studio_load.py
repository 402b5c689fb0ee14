"""Many clients at once: time per answer on MNIST while the studio learns, and whether answers are lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data import load_named

_BY_ONE, _PERSON = 30, "person"


class _Client:
    """A client that answers and receives the state after each change, as the page does."""

    def __init__(self, port: int, token: str, name: str) -> None:
        self._port, self._token, self.name = port, token, name
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self.seconds: list[float] = []
        self.given: dict[int, str] = {}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Origin": f"http://127.0.0.1:{self._port}",
            "Content-Type": "application/json",
        }
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status == 200, found
        return found

    def label(self, truth: Any, until: float) -> None:
        question = self.ask("GET", f"/api/state?client={self.name}")["question"]
        while time.monotonic() < until:
            row = question["row"]
            began = time.perf_counter()
            body = {"client": self.name, "row": row, "label": str(truth[row])}
            question = self.ask("POST", "/api/answers", body)["question"]
            self.seconds.append(time.perf_counter() - began)
            self.given[row] = str(truth[row])

    def learned(self, truth: Any, n: int, pause: float = 1.0) -> list[float]:
        """Answer one question at a time like a person; return the time until the classes have learned from each."""
        seconds = []
        question = self.ask("GET", f"/api/state?client={self.name}")["question"]
        for _ in range(n):
            began = time.perf_counter()
            body = {"client": self.name, "row": question["row"], "label": str(truth[question["row"]])}
            answer = self.ask("POST", "/api/answers", body)
            while self.ask("GET", f"/api/state?client={self.name}")["answers"]["learned"] < answer["answer"]:
                time.sleep(0.01)
            seconds.append(time.perf_counter() - began)
            question = answer["question"]
            time.sleep(pause)
        return seconds

    def listen(self, until: float) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Authorization": f"Bearer {self._token}"}
        connection.request("GET", f"/api/events?client={self.name}", headers=headers)
        answer = connection.getresponse()
        while time.monotonic() < until and answer.readline():
            pass
        connection.close()


def measure_load(n_clients: int, seconds: float) -> str:
    """Let clients answer as fast as they can; return what was measured."""
    truth = load_named("mnist").y
    with tempfile.TemporaryDirectory() as folder:
        process, port, token, first = _start(Path(folder))
        try:
            pace = _Client(port, token, _PERSON).learned(truth, _BY_ONE)
            clients = [_Client(port, token, f"c{i}") for i in range(n_clients)]
            until = time.monotonic() + seconds
            threads = [threading.Thread(target=client.label, args=(truth, until)) for client in clients]
            threads += [threading.Thread(target=client.listen, args=(until,)) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            process.kill()
            process.wait()
        process, port, token, _ = _start(Path(folder))  # after a kill -9
        try:
            kept = _labels(port, token)
        finally:
            process.kill()
            process.wait()
    taken = {row: label for client in clients for row, label in client.given.items()}
    lost = sum(kept.get(row) != label for row, label in taken.items())
    times = 1000 * np.array([t for client in clients for t in client.seconds])
    median, p95, p99, most = np.percentile(times, [50, 95, 99, 100])
    return (
        f"first question {first:.1f} s after the start; classes learned {np.median(pace):.2f} s after an answer "
        f"(slowest of {_BY_ONE}: {max(pace):.2f} s, number {1 + int(np.argmax(pace))}); {n_clients} clients, "
        f"{times.size:,} answers in {seconds:.0f} s: median {median:.0f} ms, 95 % within {p95:.0f} ms, "
        f"99 % within {p99:.0f} ms, slowest {most:.0f} ms; "
        f"{lost} of {len(taken):,} lost after kill -9"
    )


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], int, str, float]:
    """Start a studio and wait for its first question; return how long that took too."""
    began = time.monotonic()
    words = [sys.executable, "-c", "from tnesi.cli import main; main()", "label", "mnist", "--no-browser", "-q"]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen([*words, "--port", "0"], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    while not (found := re.search(r"http://127.0.0.1:(\d+)/\?token=(\S+)", (folder / "log.txt").read_text())):
        assert process.poll() is None, (folder / "log.txt").read_text()
        time.sleep(0.02)
    client = _Client(int(found[1]), found[2], _PERSON)
    while True:
        try:
            if client.ask("GET", f"/api/state?client={_PERSON}")["question"] is not None:
                return process, int(found[1]), found[2], time.monotonic() - began
        except ConnectionError:
            client = _Client(int(found[1]), found[2], _PERSON)
        time.sleep(0.05)


def _labels(port: int, token: str) -> dict[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/export/labels.csv", headers={"Authorization": f"Bearer {token}"})
    lines = connection.getresponse().read().decode().splitlines()[1:]
    return {int(row): label for row, label in (line.split(",") for line in lines)}
