"""Exports load again and agree with the page."""

from __future__ import annotations

import asyncio
import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tnesi import SimpletronClassifier, load
from tnesi.data import read_labels
from tnesi.model_file import read_header
from tnesi.studio.export import download


@pytest.fixture(scope="module")
def labeled(shared_page: Any) -> Any:
    """A page with two labels per class; one class name must be quoted in CSV files.

    The classes of the first questions depend on the fields and on the speed of the answers.
    """
    page = shared_page
    truth = page.session.data.y
    for k in range(10):
        for row in np.flatnonzero(truth == k)[:2].tolist():
            page.answer(row, str(k))
    page.ask("POST", "/api/classes/rename", {"client": "a", "old": "3", "new": 'three, "3" é'})
    return page


def test_the_model_has_the_parameters_it_was_learned_with(labeled: Any, tmp_path: Path) -> None:
    labeled.learned()
    (tmp_path / "model.tnesi").write_bytes(labeled.get("/api/export/model.tnesi").content)
    model = load(tmp_path / "model.tnesi")
    assert model.mixture.n_components == model.mixture_.n_components == 100
    assert model.classes_.tolist() == sorted(labeled.session.learned.names)


def test_labels(labeled: Any, tmp_path: Path) -> None:
    answer = labeled.get("/api/export/labels.csv")
    assert 'filename="digits-labels.csv"' in answer.headers["content-disposition"]
    (tmp_path / "labels.csv").write_bytes(answer.content)
    found = read_labels(tmp_path / "labels.csv", 1397)
    given = labeled.session.store.view.labels
    assert {row: name for row, name in enumerate(found.tolist()) if name is not None} == given
    assert 'three, "3" é' in given.values()


def test_predictions(labeled: Any, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(labeled.get("/api/export/predictions.csv").content)
    names = read_labels(tmp_path / "p.csv", 1397)
    table = pq.read_table(io.BytesIO(labeled.get("/api/export/predictions.parquet").content)).to_pydict()
    assert table["label"] == names.tolist()
    learned = labeled.session.learned
    assert names.tolist() == [learned.names[k] for k in learned.best]
    np.testing.assert_allclose(table["probability"], learned.probability)
    given = labeled.session.store.view.labels
    assert {row: name for row, name in enumerate(table["given"]) if name is not None} == given


def test_formulas_are_escaped_unless_names_have_to_be_exact(page: Any, tmp_path: Path) -> None:
    names = {3: "=1+2", 4: "@x", 5: "-2.5", 6: "'=1+2", 7: "plain"}
    for row, name in names.items():
        page.answer(row, name)
    page.learned()
    for file in ("labels.csv", "predictions.csv"):
        cells = {}
        for exact in ("", "?exact=0", "?exact=1"):
            text = page.get(f"/api/export/{file}{exact}").content.decode()
            found = {int(row["row"]): row["label"] for row in csv.DictReader(text.splitlines())}
            cells[exact] = {row: found[row] for row in names}
            (tmp_path / file).write_text(text)
            assert read_labels(tmp_path / file, 1397)[list(names)].tolist() == list(names.values())
        assert cells["?exact=1"] == names
        assert cells[""] == cells["?exact=0"] == names | {3: "'=1+2", 4: "'@x", 6: "''=1+2"}
    page.get("/api/export/labels.csv?exact=2", 422)


def test_the_model_predicts_what_the_page_shows(labeled: Any, tmp_path: Path) -> None:
    (tmp_path / "m.tnesi").write_bytes(labeled.get("/api/export/model.tnesi").content)
    model = load(tmp_path / "m.tnesi")
    assert isinstance(model, SimpletronClassifier)
    learned = labeled.session.learned
    assert model.classes_.tolist() == learned.names
    assert model.transduction_.tolist() == [learned.names[k] for k in learned.best]
    test = labeled.session.data.test
    truth = ['three, "3" é' if k == 3 else str(k) for k in test.y]
    assert model.score(test.X, truth) > 0.5  # the rows of the questions depend on the speed of the answers
    header = read_header(tmp_path / "m.tnesi")
    assert header.image_shape == (8, 8)
    assert header.provenance["fingerprint"] == labeled.session.data.fingerprint
    assert header.provenance["labels"] == 20


def test_the_report(labeled: Any) -> None:
    page = labeled.get("/api/export/report.html").content.decode()
    assert "three, &#34;3&#34; é" in page
    assert "20 labels of 10 classes for 1,397 rows" in page
    assert "<script" not in page
    assert page.count("data:image/png") == 3


def test_too_early(page: Any) -> None:
    assert page.get("/api/export/labels.csv").content == b"row,label\n"
    for name in ("predictions.csv", "predictions.parquet", "model.tnesi", "report.html"):
        assert "two classes" in page.get(f"/api/export/{name}", 409)["error"]
    page.answer(3, "x")
    page.get("/api/export/model.tnesi", 409)


def test_downloads_have_the_newest_answers(page: Any) -> None:
    for row, name in ((3, "x"), (4, "y"), (5, "x")):
        page.answer(row, name)
        if row > 3:
            lines = page.get("/api/export/predictions.csv").content.decode().splitlines()
            assert lines[1 + row].startswith(f"{row},{name},1.0")


@pytest.mark.parametrize("name", ["labels.csv", "predictions.csv", "model.tnesi"])
def test_no_room_for_a_download(labeled: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert "No folder" in labeled.get(f"/api/export/{name}", status=507)["error"]


def test_aborted_downloads_leave_no_files(labeled: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The studio may end during a slow download."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def take() -> None:
        sending = asyncio.Event()

        async def forever(_: Any = None) -> Any:
            sending.set()
            await asyncio.Event().wait()

        response = await download(labeled.session, "model.tnesi", "application/octet-stream")
        scope = {"type": "http", "method": "GET", "headers": [], "extensions": {}}
        task = asyncio.create_task(response(scope, forever, forever))
        await sending.wait()
        assert len(list(tmp_path.iterdir())) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(take())
    assert not list(tmp_path.iterdir())
