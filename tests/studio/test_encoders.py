"""Photographs, documents and tables: encoded for learning, shown as they are, exported with their encoder."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import Pipeline
from typer.testing import CliRunner

import tnesi
from tnesi.cli.app import app

Run = Callable[..., Any]
Label = Callable[[Any], str]
COLORS = {"red": (200, 40, 40), "green": (40, 160, 60), "blue": (50, 80, 200)}
TOPICS = {
    "space": "orbit moon rocket launch nasa satellite shuttle earth planet astronaut",
    "cars": "engine wheel brake tire dealer mileage clutch sedan gear exhaust",
}
COMMON = ("the", "a", "of", "to", "in", "it")


def photographs(folder: Path, n: int = 60) -> Path:
    """Write photographs of two sizes, with a disk of the color that their name has, and two broken files."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for i in range(n):
        shape = (90, 120) if i % 2 else (120, 90)
        pixels = rng.integers(180, 256, (*shape, 3)).astype(np.uint8)
        y, x = np.ogrid[: shape[0], : shape[1]]
        name = list(COLORS)[i % 3]
        pixels[(y - rng.integers(30, 60)) ** 2 + (x - rng.integers(30, 60)) ** 2 < 400] = COLORS[name]
        Image.fromarray(pixels).save(folder / f"{i:03}-{name}.jpg", quality=95)
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    (folder / "notes.txt").write_text("no picture")
    return folder


def documents(folder: Path, n: int = 80) -> Path:
    rng = np.random.default_rng(0)
    for i in range(n):
        topic = list(TOPICS)[i % 2]
        (folder / topic).mkdir(parents=True, exist_ok=True)
        words = [*rng.choice(TOPICS[topic].split(), 800 if i < 2 else 20), *rng.choice(list(COMMON), 20)]
        (folder / topic / f"{i:03}.txt").write_text(" ".join(rng.permutation(words)) + ".\n")
    return folder


def customers(path: Path, n: int = 120) -> Path:
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer_id", "signed_up", "age", "plan", "balance"])
        for i in range(n):
            age, balance = (
                25 + 30 * (i % 2) + int(rng.integers(5)),
                round(float(rng.normal(200 * (i % 2) - 100, 20)), 2),
            )
            plan, balance_or_none = ("basic", "plus")[i % 2], "" if i % 10 == 0 else balance
            writer.writerow([f"C{i:05}", f"2020-0{1 + i % 9}-1{i % 9}", age, plan, balance_or_none])
    return path


def answer_all(studio: Any, label: Label, n: int, waiting: Any) -> Any:
    """Answer questions; return the state when they are learned from and there is a map."""
    question = studio.ready()["question"]
    for _ in range(n):
        body = {"client": "a", "row": question["row"], "label": label(question)}
        question = studio.ask("POST", "/api/answers", body)["question"]
    return waiting(lambda: settled(studio))


def settled(studio: Any) -> Any:
    """Return the state, if all is learned and there is a map."""
    state = studio.ask("GET", "/api/state?client=a")
    return not state["busy"] and state["map_version"] and state


def predicted(model: Path, data: Path, code: int = 0) -> list[dict[str, str]]:
    output = data.parent / "predicted.csv"
    result = CliRunner().invoke(app, ["predict", str(model), str(data), "-o", str(output)])
    assert result.exit_code == code, result.output
    return list(csv.DictReader(output.read_text().splitlines()))


def export(studio: Any, path: Path) -> Path:
    path.write_bytes(studio.ask("GET", "/api/export/model.tnesi"))
    return path


def test_photographs(run: Run, tmp_path: Path, waiting: Any) -> None:
    photographs(tmp_path / "photos")
    studio = run("photos")
    said = studio.log.read_text()
    assert "Encoded 60 images as" in said
    assert "2 unreadable files were skipped" in said
    assert "broken.jpg" in said
    state = answer_all(studio, lambda question: question["file"][4:-4], 9, waiting)
    about = state["data"]
    assert (about["kind"], about["rows"], about["photos"], about["skipped"]["total"]) == ("image", 60, True, 2)
    large = Image.open(io.BytesIO(studio.ask("GET", "/api/pictures/row/1.png?size=4096")))
    assert (large.format, large.mode, large.size) == ("JPEG", "RGB", (120, 90))
    cells = studio.ask("GET", "/api/map")["cells"]
    sheet = np.asarray(Image.open(io.BytesIO(studio.ask("GET", "/api/pictures/fields.png"))))
    assert sheet.shape[2] == 4  # photographs, not gradients
    field = studio.ask("GET", f"/api/fields/{cells[0]['field']}")
    assert field["typical"] == field["rows"][0]["row"]
    model = export(studio, tmp_path / "model.tnesi")
    assert isinstance(tnesi.load(model), Pipeline)
    found = predicted(model, tmp_path / "photos", code=3)
    assert len(found) == 60
    assert np.mean([one["label"] == one["file"][-len(one["label"]) - 4 : -4] for one in found]) > 0.9
    before = studio.ask("GET", "/api/map")["cells"]
    page = studio.ask("GET", "/api/export/report.html")
    assert b"data:image/png" in page
    studio.end()
    again = run("photos")  # with the same first layer and encoder
    again.ready()
    waiting(lambda: settled(again))
    assert again.ask("GET", "/api/map")["cells"] == before
    assert export(again, tmp_path / "again.tnesi").stat().st_size > 0
    assert predicted(tmp_path / "again.tnesi", tmp_path / "photos", code=3) == found
    again.end()
    (tmp_path / "photos" / "000-red.jpg").write_bytes((tmp_path / "photos" / "001-green.jpg").read_bytes())
    result = CliRunner().invoke(app, ["label", str(tmp_path / "photos"), "--no-browser"])
    assert "has changed since" in " ".join(result.output.split())


def test_documents(run: Run, tmp_path: Path, waiting: Any) -> None:
    documents(tmp_path / "articles")
    studio = run("articles")
    said = " ".join(studio.log.read_text().split())
    assert "Encoded 80 documents by" in said
    assert "80 labels of 2 classes, which are not used. To start with them: --labels own." in said

    def topic(question: Any) -> str:
        return "space" if any(word in question["text"] for word in TOPICS["space"].split()) else "cars"

    state = answer_all(studio, topic, 6, waiting)
    assert state["data"]["kind"] == "document"
    assert any("80 labels" in note for note in state["data"]["notes"])
    row = studio.ask("GET", "/api/rows/0")
    assert len(row["text"]) == row["text_length"] > 3000  # whole on request
    words = {word for topic in TOPICS.values() for word in topic.split()}
    cells = studio.ask("GET", "/api/map")["cells"]
    assert all(set(cell["text"].split("\n")) <= words for cell in cells)  # informative ones, never "the"
    assert studio.ask("GET", "/api/gallery")["rows"][0]["snippet"]
    found = predicted(export(studio, tmp_path / "model.tnesi"), tmp_path / "articles")
    assert np.mean([Path(one["file"]).parent.name == one["label"] for one in found]) > 0.9
    assert b"What sets the classes apart" in studio.ask("GET", "/api/export/report.html")


def test_a_table(run: Run, tmp_path: Path, waiting: Any) -> None:
    customers(tmp_path / "customers.csv")
    studio = run("customers.csv")
    state = answer_all(studio, lambda question: dict(question["columns"])["plan"], 6, waiting)
    assert state["data"]["kind"] == "table"
    assert any("customer_id" in note for note in state["data"]["notes"])
    row = dict(studio.ask("GET", "/api/rows/10")["columns"])
    assert (row["customer_id"], row["plan"], row["balance"]) == ("C00010", "basic", None)
    cells = studio.ask("GET", "/api/map")["cells"]
    assert all("~" in cell["text"] or "=" in cell["text"] for cell in cells)
    found = predicted(export(studio, tmp_path / "model.tnesi"), tmp_path / "customers.csv")
    assert np.mean([one["label"] == ("basic", "plus")[i % 2] for i, one in enumerate(found)]) > 0.9


@pytest.mark.parametrize("own", [False, True])
def test_the_encoder_may_be_chosen(run: Run, tmp_path: Path, own: bool) -> None:
    """Without an encoder, and with the labels of the data; also for a project that had another encoder."""
    studio = run("digits", "--fields", 20)
    studio.ready()
    studio.ask("POST", "/api/answers", {"client": "a", "row": 3, "label": "x"})
    studio.end()
    again = run("digits", "--fields", 20, "--encoder", "none", *(["--labels", "own"] if own else []))
    state = again.ask("GET", "/api/state")
    assert state["data"]["features"] == 64
    assert state["answers"]["labels"] == (1397 if own else 1)
    assert ("comes with 1,397 labels of 10 classes" in " ".join(again.log.read_text().split())) is not own
