"""``tnesi label`` as a process: messages, errors, other kinds of data, and kill -9 between answers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import sparse
from sklearn.datasets import load_digits
from typer.testing import CliRunner

import tnesi
from tnesi.cli.app import app
from tnesi.cli.label import _project_of
from tnesi.data import load_named
from tnesi.studio.address_book import remember, remembered

Waiting = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return the error message of the command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def call(*words: Any) -> str:
        result = CliRunner().invoke(app, ["label", *map(str, words), "--no-browser"])
        assert result.exit_code == 1, result.output
        return result.output

    return call


def test_every_acknowledged_answer_survives_kill_9(run: Callable[..., Any], waiting: Waiting) -> None:
    studio = run("digits", "--fields", 60)
    truth, taken, lock = load_named("digits").y, {}, threading.Lock()

    def label(client: int) -> None:
        for i in range(10_000):
            row = (client * 100 + i) % 1397
            try:
                studio.ask(
                    "POST", "/api/answers", {"client": f"c{client}", "row": row, "label": f"{truth[row]} {client}"}
                )
            except (OSError, ValueError, HTTPException):
                return  # the server is gone
            with lock:
                taken[client, row] = f"{truth[row]} {client}"

    threads = [threading.Thread(target=label, args=(client,)) for client in range(4)]
    for thread in threads:
        thread.start()
    waiting(lambda: len(taken) > 60)
    studio.end(signal.SIGKILL)
    for thread in threads:
        thread.join()
    again = run("digits")
    assert again.token == studio.token  # an open page continues
    assert again.origin == studio.origin
    for (client, row), label_given in taken.items():
        history = again.ask("GET", f"/api/rows/{row}")["history"]
        assert label_given in [one["label"] for one in history if one["client"] == f"c{client}"]


def test_it_ends_with_ctrl_c_and_resumes_without_learning_again(run: Callable[..., Any], waiting: Waiting) -> None:
    studio = run("digits", "--fields", 60, "--seed", 3, forked=False)
    question = studio.ready()["question"]
    for _ in range(3):
        question = studio.ask("POST", "/api/answers", {"client": "a", "row": question["row"], "label": "x"})["question"]
    waiting(lambda: studio.ask("GET", "/api/state")["map_version"])
    waiting(lambda: b"sqlite" in studio.log.read_bytes())
    time.sleep(0.5)  # the mixture is kept after the map was made
    studio.end()
    assert "3 labels. All are stored in digits.studio.sqlite. The same command continues" in studio.log.read_text()
    again = run("digits")
    state = again.ready()
    assert state["answers"]["labels"] == 3
    assert again.ask("GET", "/api/map")["cells"][0]["field"] >= 0
    assert len(again.ask("GET", "/api/map")["cells"]) <= 60


@pytest.mark.parametrize(("times", "pause"), [(1000, 0.0), (100, 0.001), (3, 0.05), (3, 0.3)])
def test_ctrl_c_again_and_again_while_it_learns(
    run: Callable[..., Any], tmp_path: Path, times: int, pause: float
) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).poisson(3.0, (30_000, 100)).astype(np.uint8))
    studio = run("rows.npy")
    for row in range(3):
        studio.ask("POST", "/api/answers", {"client": "a", "row": row, "label": "x"})
    for _ in range(times):
        studio.process.send_signal(signal.SIGINT)
        time.sleep(pause)
    assert studio.end() == 0
    said = studio.log.read_text()
    assert "3 labels. All are stored in" in said
    assert "Traceback" not in said
    shutil.copy(tmp_path / "rows.npy.studio.sqlite", tmp_path / "alone.sqlite")  # no other files are left
    with closing(sqlite3.connect(tmp_path / "alone.sqlite")) as project:
        assert project.execute("SELECT count(*) FROM answers WHERE label = 'x'").fetchone() == (3,)


def test_a_table_with_names(run: Callable[..., Any], tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    lines = [",".join([*(f"p{i}" for i in range(64)), "kind"])]
    lines += [",".join([*map(str, X[i].astype(int).tolist()), f"digit {y[i]}"]) for i in range(300)]
    (tmp_path / "counts.csv").write_text("\n".join(lines))
    studio = run("counts.csv", "--label-column", "kind")
    state = studio.ready()
    assert state["data"]["kind"] == "profile"
    assert state["data"]["file"] == "counts.csv.studio.sqlite"
    assert state["answers"]["labels"] == 0  # labels that come with the data are not answers
    question = state["question"]
    assert question["profile"] == X[question["row"]].tolist()
    assert question["profile_names"][:2] == ["p0", "p1"]
    assert studio.ask("GET", "/api/pictures/rows.png?rows=1,2")[:4] == b"\x89PNG"
    studio.end()
    with_labels = run("counts.csv", "--label-column", "kind", "--labels", "own")
    assert "300 labels imported" in with_labels.log.read_text()
    assert with_labels.ask("GET", "/api/state")["answers"]["labels"] == 300


def test_sparse_words(run: Callable[..., Any], tmp_path: Path, waiting: Waiting) -> None:
    rng = np.random.default_rng(0)
    words = rng.poisson(np.where(np.arange(240)[:, None] % 2 == np.arange(500) % 2, 0.3, 0.02))
    sparse.save_npz(tmp_path / "texts.npz", sparse.csr_array(words))
    studio = run("texts.npz", "--fields", 20)
    question = studio.ready()["question"]
    assert len(question["profile"]) == 256
    for _ in range(8):
        label = "odd" if question["row"] % 2 else "even"
        question = studio.ask("POST", "/api/answers", {"client": "a", "row": question["row"], "label": label})[
            "question"
        ]
    state = waiting(lambda: not (found := studio.ask("GET", "/api/state"))["busy"] and found)
    assert state["decided"] > 0.9
    lines = studio.ask("GET", "/api/export/predictions.csv").decode().splitlines()[1:]
    right = [line.split(",")[1] == ("odd" if i % 2 else "even") for i, line in enumerate(lines)]
    assert np.mean(right) > 0.95


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_all_is_in_one_file_however_it_ends(run: Callable[..., Any], tmp_path: Path, how: int) -> None:
    """The terminal may be closed, too."""
    studio = run("digits", "--fields", 20)
    studio.ready()
    for row in (3, 4):
        studio.ask("POST", "/api/answers", {"client": "a", "row": row, "label": "x"})
    studio.process.send_signal(how)
    time.sleep(0.1)
    studio.end(how)  # the shell and the kernel may both report that a terminal is closed
    said = " ".join(studio.log.read_text().split())
    assert "2 labels. All are stored in" in said
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.glob("*.sqlite*")] == ["digits.studio.sqlite"]


def test_a_name_that_is_no_text(run: Callable[..., Any], tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.npy")
    np.save(tmp_path / name, np.random.default_rng(0).poisson(5, (100, 16)))
    studio = run(name, "--fields", 10, "--project", "p.sqlite")
    assert studio.ready()["data"]["name"] == "caf\\udce9.npy"
    assert studio.ask("GET", "/api/export/labels.csv") == b"row,label\n"


def test_it_serves_and_ends_while_the_browser_is_open(tmp_path: Path, waiting: Waiting) -> None:
    """A browser in the terminal blocks until it is closed."""
    log = tmp_path / "log.txt"
    words = ["label", "digits", "--fields", "20", "--project", str(tmp_path / "p.sqlite")]
    command = [sys.executable, "-c", "from tnesi.cli import main; main()", *words]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "BROWSER": "sh -c 'exec sleep 600' %s"}
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)
    try:
        port = int(waiting(lambda: re.search(r":(\d+)/\?token", log.read_text()))[1])
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().status == 401
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=90) == 0
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    assert "0 labels. All are stored in" in " ".join(log.read_text().split())


def test_open_requests_are_aborted_silently_at_the_end(run: Callable[..., Any], tmp_path: Path) -> None:
    """A request without its body, and a download that waits for learning."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).poisson(3.0, (30_000, 100)).astype(np.uint8))
    studio = run("rows.npy")
    for row in range(3):
        studio.ask("POST", "/api/answers", {"client": "a", "row": row, "label": f"x{row}"})
    head = f"Host: {studio.origin.removeprefix('http://')}\r\nAuthorization: Bearer {studio.token}\r\n"
    open_ones = [
        f"GET /api/export/predictions.csv HTTP/1.1\r\n{head}\r\n",
        f"POST /api/answers HTTP/1.1\r\n{head}Origin: {studio.origin}\r\nContent-Length: 20\r\n"
        "Content-Type: application/json\r\n\r\n{",
    ]
    port = int(studio.origin.rpartition(":")[2])
    sockets = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in open_ones]
    for one, text in zip(sockets, open_ones, strict=True):
        one.sendall(text.encode())
    studio.ask("GET", "/api/state")  # the others were accepted before
    assert studio.end() == 0
    assert sockets[0].recv(100).startswith((b"HTTP/1.1 503", b"HTTP/1.1 200"))  # it may have learned meanwhile
    for one in sockets:
        one.close()
    said = studio.log.read_text()
    assert "3 labels. All are stored in" in said
    assert "Traceback" not in said
    assert "Cancel" not in said


def test_the_folder_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photos" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "photos")
    for data in (".", "sub/.."):
        assert _project_of(data) == tmp_path / "photos.studio.sqlite"


def test_a_folder_of_images(run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path) -> None:
    X = load_digits().data
    for i in range(120):
        (tmp_path / "photos").mkdir(exist_ok=True)
        Image.fromarray((X[i].reshape(8, 8) * 15).astype(np.uint8)).save(tmp_path / "photos" / f"{i:03}.png")
    assert "choose a file outside of it" in refused("photos", "--project", "photos/mine.sqlite")
    studio = run("photos")
    state = studio.ready()
    assert (state["data"]["kind"], state["data"]["photos"]) == ("image", True)
    studio.ask("POST", "/api/answers", {"client": "a", "row": 7, "label": "seven"})
    lines = studio.ask("GET", "/api/export/labels.csv").decode().splitlines()
    assert lines[0] == "row,label,file"
    assert lines[1].startswith("7,seven,photos/007.png")
    assert (tmp_path / "photos.studio.sqlite").exists()


def test_the_fields_of_a_model(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path, waiting: Waiting
) -> None:
    X = load_digits().data
    tnesi.save(tnesi.PoissonMixture(30, random_state=0).fit(X), tmp_path / "mixture.tnesi", image_shape=(8, 8))
    studio = run("digits", "--model", "mixture.tnesi")
    studio.ready()
    waiting(lambda: studio.ask("GET", "/api/state")["map_version"])
    assert len(studio.ask("GET", "/api/map")["cells"]) == 30
    studio.end()
    np.save(tmp_path / "other.npy", np.ones((20, 5)))
    assert "use a model of the same kind of data" in refused("other.npy", "--model", "mixture.tnesi")


def test_other_interfaces_are_warned_of(run: Callable[..., Any]) -> None:
    studio = run("digits", "--host", "0.0.0.0", "--fields", 20)
    said = " ".join(studio.log.read_text().split())
    assert "anyone who can reach this machine and has the address with its token" in said
    assert studio.ask("GET", "/api/state")["data"]["name"] == "digits"


def test_the_token_may_be_given(
    run: Callable[..., Any], refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "abcdefghijklmnopqrstuvwxyz0123456789"
    assert run("digits", "--fields", 20, TNESI_STUDIO_TOKEN=token).token == token
    monkeypatch.setenv("TNESI_STUDIO_TOKEN", "short")
    assert "32 letters and digits" in refused("digits", "--project", "b.sqlite")


def test_refusals(run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path) -> None:
    assert "there is no file, folder or data set nothing.csv" in refused("nothing.csv")
    for wrong_number in ("many", "0", "-3"):
        assert "is not a positive integer or auto" in refused("digits", f"--fields={wrong_number}")
    assert "exceeds the 1397 rows" in " ".join(refused("digits", "--fields", 1398).split())
    assert "auto, none, images, text, table, vectors" in " ".join(refused("digits", "--encoder", "x").split())
    assert "there is no --model file nothing.tnesi" in refused("digits", "--model", "nothing.tnesi")
    values = {
        -1.0: "Negative values in data",
        np.nan: "contains NaN",
        np.inf: "contains infinity",
        1.7e308: "overflows",
    }
    for wrong, text in values.items():
        np.save(tmp_path / "wrong.npy", np.append(np.ones((20, 4)), np.full((20, 2), wrong), axis=1))
        assert text in refused("wrong.npy", "--encoder", "none")
    assert not (tmp_path / "wrong.npy.studio.sqlite").exists()
    np.save(tmp_path / "rows.npy", np.ones((20, 5)))
    studio = run("rows.npy")
    assert "in use by another studio" in refused("rows.npy")
    port = studio.origin.rpartition(":")[2]
    assert f"cannot listen on 127.0.0.1, port {port}" in refused("digits", "--port", port)
    studio.end(signal.SIGKILL)
    assert "belongs to other data (rows.npy, 20 rows)" in refused("digits", "--project", "rows.npy.studio.sqlite")


def test_addresses_are_kept_for_their_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remember("p", "t" * 40, 1234)
    assert remembered("p") == ("t" * 40, 1234)
    (file,) = (tmp_path / "tnesi" / "studio").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    for damaged in (
        "[" * 100_000,
        '{"token": "\\ud800' + "t" * 40 + '", "port": 1}',
        f'{{"token": "{"t" * 40} &", "port": 1}}',
    ):
        file.write_text(damaged)
        assert remembered("p") == (None, None)
    file.chmod(0o644)
    assert remembered("p") == (None, None)
    assert remembered("other") == (None, None)
