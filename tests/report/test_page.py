from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.model_file import save
from tnesi.paper import read_protocol, reproduce
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.table import wanted_runs
from tnesi.report.page import write_report
from tnesi.report.text import text_tables

MakeFolder = Callable[..., RunFolder]
Make = Callable[..., dict[str, Any]]

VOID = {"meta", "img", "br", "hr", "input", "link"}


class Page(HTMLParser):
    """Parses a page; fails if it is not well-formed or refers to anything outside of itself."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        assert tag != "script"
        for name, value in attributes:
            assert not name.startswith("on"), name
            if name in ("src", "href"):
                assert value, tag
                assert value.startswith(("data:image/png;base64,", "#")), value[:80]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(folder: RunFolder) -> Page:
    page = Page(write_report(folder))
    assert not re.search(r"(?:https?:)?//\w", re.sub(r"base64,[^\"]*", "", page.source))
    assert not re.search(r"@import|url\((?!#)", page.source)
    assert all(svg["aria-label"] for svg in page.all("svg"))
    assert all("alt" in img for img in page.all("img"))
    assert all("scope" in th for th in page.all("th"))
    identifiers = [a["id"] for _, a in page.tags if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert max(np.diff(headings), default=0) <= 1
    for table in text_tables(folder):
        for cell in [*table.columns, *(cell for row in table.rows for cell in row)]:
            assert cell in page.text
    for picture in (folder.path / "figures").glob("*"):
        assert picture.read_bytes().startswith(b"\x89PNG")
    return page


@pytest.mark.slow
def test_a_real_run(tmp_path: Path) -> None:
    folder = reproduce(read_protocol("digits-table", runs=1, quick=True), tmp_path)
    page = page_of(folder)
    assert "not comparable with the paper" in page.text
    assert "1,397 training rows" in page.text
    assert len(page.all("svg")) == 4
    assert (tmp_path / "figures" / "error-digits.png").exists()
    elsewhere = write_report(folder, tmp_path / "elsewhere.html")
    assert elsewhere.read_text() == page.source
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_report(folder, tmp_path / "missing" / "page.html")


@pytest.mark.slow
def test_a_table_beside_the_papers(table_folder: MakeFolder) -> None:
    page = page_of(table_folder(notes=["EMNIST byclass, not the paper's split"]))
    assert page.text.count("EMNIST byclass, not the paper's split.") == 2
    assert "90 runs of t-NeSi, t-NeSi+prior and ff+-NeSi." in page.text
    assert "joint standard error" in page.text
    assert "Unfinished" not in page.text
    assert re.search("[▼▲≈] (better|worse|equal)", page.text)


@pytest.mark.slow
def test_mixtures_are_timed_once(table_folder: MakeFolder) -> None:
    page = page_of(table_folder("digits-table", with_examples=0))
    cells = [text.strip() for text in page.text.split("\n") if text.strip()]
    at = cells.index("first layer")
    assert cells[at + 1 : at + 4] == ["2", "10.00", "20.0"]  # not 14: one for each run
    assert cells[cells.index("runs of each setting") + 1] == "2 (4 with one label per class)"


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [1, 2, 10, 52])
def test_few_and_many_classes(table_folder: MakeFolder, n_classes: int) -> None:
    page = page_of(table_folder("digits-table", n_classes=n_classes, shape=(1, 30)))
    assert len(page.all("svg")) == 4
    assert len(page.all("img")) == 45


@pytest.mark.slow
def test_unfinished(new_folder: MakeFolder, table_record: Make) -> None:
    for name in ("mnist-table", "mnist-comparison", "mnist-likelihood", "mnist-weights", "label-methods", "nist-table"):
        folder = new_folder(name)
        page = page_of(folder)
        assert "No run has finished yet." in page.text
        assert "Unfinished: 0 of" in page.text
    folder.append(table_record("digits", "t-NeSi", 10, 3))
    folder.append(table_record("digits", "t-NeSi", "all", 0))
    page = page_of(folder)
    assert "Unfinished: 2 of 240 runs are done" in page.text
    assert "▼ lower" in page.text or "▲ higher" in page.text  # one run has no standard error


@pytest.mark.slow
def test_damaged_examples_are_left_out(table_folder: MakeFolder) -> None:
    folder = table_folder("digits-table")
    (folder.path / "examples-digits-t-NeSi+prior-1-most.npz").write_bytes(b"no zip")
    folder.save_arrays("examples-digits-t-NeSi+prior-1-least", images=np.zeros((2, 5)), shape=np.array([4, 4]))
    assert len(page_of(folder).all("img")) == 35


@pytest.mark.slow
def test_labeling_methods(new_folder: MakeFolder, labels_record: Make) -> None:
    folder = new_folder("label-methods", runs=2)
    assert "No run has finished yet." in page_of(folder).text
    for key in wanted_runs(read_protocol("label-methods", runs=2)):
        folder.append(labels_record(*key))
    page = page_of(folder)
    assert len(page.all("svg")) == 1
    assert "Unfinished" not in page.text
    n_settings = 6 * 7 + 1
    assert f"In {n_settings} settings auto is at most 0.50 points above the best other method" in page.text
    assert page.text.count("+0.50") == n_settings
    assert (folder.path / "figures" / "error-by-method.png").exists()
    without = new_folder(
        "label-methods", place="without", data={"mnist": "mnist"}, methods=[{"name": "spreading", "preset": "t_nesi"}]
    )
    without.append(labels_record("mnist", "spreading", 10, 0, 0))
    page = page_of(without)
    assert page.text.count("its data is not on this machine") == 7
    assert "Methods chosen by auto" not in page.text


@pytest.mark.slow
def test_comparison(table_folder: MakeFolder) -> None:
    page = page_of(table_folder("mnist-comparison", with_examples=1))
    assert [len(page.all("svg")), page.text.count("AtlasRBF")] == [4 + 2 + 1 + 6, 4]
    assert "t-NeSi, ours" in page.text
    assert "ff+-NeSi, paper" in page.text


@pytest.mark.slow
def test_likelihood(new_folder: MakeFolder, likelihood_record: Make) -> None:
    folder = new_folder("mnist-likelihood", runs=2)
    for truncation in folder.configuration["truncations"]:
        for run in range(2):
            folder.append(likelihood_record(truncation, run, 20 if (truncation, run) != (1, 1) else 6))
    page = page_of(folder)
    assert len(page.all("svg")) == 6
    assert "C' = 15 has the highest log-likelihood: -832.900 nats per row." in page.text


def test_likelihood_of_one_point(new_folder: MakeFolder, likelihood_record: Make) -> None:
    folder = new_folder("mnist-likelihood", runs=2)
    folder.append(likelihood_record(1, 0, 0))
    assert "C' = 1 has the highest log-likelihood" in page_of(folder).text


def test_weights(new_folder: MakeFolder, digits: tuple[Any, Any]) -> None:
    folder = new_folder("nist-weights")
    mixture = PoissonMixture(30, row_sum=180, max_iter=2, tol=0)
    clf = SimpletronClassifier(mixture, labeling="supervised", random_state=0).fit(*digits)
    save(clf, folder.path / "digits.tnesi", image_shape=(8, 8), training=False)
    save(clf, folder.path.parent / "outside.tnesi", training=False)
    record = {"task": "digits", "run": 0, "seed": 0, "n_labels": 10, "model": "digits.tnesi"}
    folder.append(record)
    page = page_of(folder)
    assert len(page.all("img")) == 1
    assert "30 of 30 fields" in page.text
    assert "The classes were learned from labeled rows only (supervised)." in page.text
    for model, said in (("../outside.tnesi", "not in the run folder"), ("missing.tnesi", "cannot be shown")):
        folder.append(record | {"model": model})
        page = page_of(folder)
        assert len(page.all("img")) == 1
        assert said in page.text


HOSTILE = "\"'><script>alert(1)</script>{{ 7*7 }}$\\frac{\x00\ud83d ../../x"


def hostile(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: hostile(one) for key, one in value.items()}
    if isinstance(value, list):
        return [hostile(one) for one in value]
    return value + HOSTILE if isinstance(value, str) and value not in KEPT else value


KEPT = ("table", "likelihood", "weights", "mnist-table", "mnist-likelihood", "all", "em")


@pytest.mark.slow
def test_hostile_text_is_only_text(table_folder: MakeFolder, new_folder: MakeFolder, likelihood_record: Make) -> None:
    tables, curves = table_folder(notes=["note"], with_examples=1), new_folder("mnist-likelihood", runs=1)
    for truncation in curves.configuration["truncations"]:
        curves.append(likelihood_record(truncation, 0))
    for folder in (tables, curves):
        configuration = hostile(folder.configuration)
        configuration["paper"] = ""
        (folder.path / "protocol.json").write_text(json.dumps(configuration))
        folder.records[:] = [hostile(record) for record in folder.records]
        page = Page(write_report(folder))
        assert "alert(1)" in page.text
        assert "{{ 7*7 }}" in page.text
        assert not list(folder.path.parent.glob("x*"))


@pytest.mark.slow
def test_examples_come_from_the_folder(table_folder: MakeFolder, save_examples: Callable[..., None]) -> None:
    folder = table_folder("digits-table")
    (folder.path.parent / "outside").mkdir()
    outside = RunFolder(folder.path.parent / "outside")
    save_examples(outside, "x-1-most", (4, 4))
    for record in folder.records:
        record["method"] = "/../../outside/x"
    (folder.path / "examples-digits-").mkdir()
    assert Page(write_report(folder)).all("img") == []


@pytest.mark.slow
def test_nothing_heavy_is_imported() -> None:
    code = "import sys, tnesi.report.page as p; print([m for m in ('matplotlib', 'jinja2', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_jinja(new_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"jinja2: pip install 'tnesi\[plot\]'"):
        write_report(new_folder("mnist-table"))
