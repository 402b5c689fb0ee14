"""The documentation holds: its examples run, its links lead somewhere, the reference of the commands is complete."""

from __future__ import annotations

import doctest
import gzip
import re
import shlex
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from markdown_it import MarkdownIt
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from tnesi.cli.app import app

Array = np.ndarray[Any, Any]

ROOT = Path(__file__).parents[1]
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "SECURITY")), *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = ("needs a network", "needs a GPU", "installs", "takes hours")
"""The reasons for which an example may be left out."""
OTHERS = ("pip", "make", "cd", "export")
"""Programs besides tnesi that examples may call; they are not run."""


def test_the_reference_has_all_commands() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert not re.search("[\x1b\u2500-\u257f]|\\[/?bold|<span", text), "no colors or boxes of a terminal"
    sections = dict(re.findall(r"(?ms)^#+ `(tnesi .*?)`\n(.*?)(?=^#+ `tnesi|\Z)", text))
    assert sections.keys() == dict(commands(typer.main.get_command(app))).keys(), "run: make docs"
    for name, command in commands(typer.main.get_command(app)):
        for option in (name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)):
            assert not option.startswith("-") or option in sections[name], f"{name} {option}; run: make docs"


def commands(command: Any, name: str = "tnesi") -> Iterator[tuple[str, Any]]:
    for inner, found in getattr(command, "commands", {}).items():
        yield f"{name} {inner}", found
        yield from commands(found, f"{name} {inner}")


# Links


def slug(heading: str) -> str:
    """Return what GitHub calls a heading in links."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def headings(page: Path) -> list[str]:
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [slug(inner.content.replace("`", "")) for token, inner in pairwise(tokens) if token.type == "heading_open"]


def links(page: Path) -> list[str]:
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    children = [child for token in tokens for child in token.children or ()]
    return [str(c.attrs.get("href") or c.attrs.get("src")) for c in children if c.type in ("link_open", "image")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        place, _, heading = link.partition("#")
        target = page.parent / place if place else page
        assert target.exists(), f"{page.name}: {link}"
        assert not heading or heading in headings(target), f"{page.name}: {link}"


# Examples


@dataclass
class Block:
    """A block of code: its language, and what is right above it: a comment, or another block."""

    place: str
    line: int
    language: str
    text: str
    comment: str
    follows: bool


def blocks(page: Path) -> Iterator[Block]:
    comment, above = "", ""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            assert token.map is not None
            yield Block(page.name, token.map[0] + 1, token.info, token.content, comment, above == "fence")
        above = token.type
        found = re.fullmatch(r"<!-- (.*) -->\s*", token.content) if token.type == "html_block" else None
        comment = found[1] if found else ""


@dataclass
class Reader:
    """Does what a page says, block by block, as someone would who follows it."""

    names: dict[str, Any]
    printed: str = ""

    def follow(self, block: Block) -> None:
        where = f"{block.place}, line {block.line}"
        printed, self.printed = self.printed if block.follows else "", ""
        if block.comment.startswith("not run: "):
            assert block.comment.removeprefix("not run: ").startswith(NOT_RUN), f"{where}: {block.comment}"
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, where, "exec"), self.names)
        elif block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.text, self.names, where, block.place, block.line)
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0, where
            self.names.update(test.globs)
        elif block.language == "sh":
            code = int(block.comment.removeprefix("exit code: ")) if block.comment.startswith("exit") else 0
            self.printed = "\n".join(self.call(line, code, where) for line in block.text.splitlines())
        elif block.language == "text" and printed:
            check_output(block.text, printed, where)

    def call(self, line: str, code: int, where: str) -> str:
        program, *words = shlex.split(line, comments=True) or [""]
        if program != "tnesi":
            assert not program or program in OTHERS, f"{where}: {line}"
            assert program != "make" or f"\n{words[0]}:" in (ROOT / "Makefile").read_text(), f"{where}: {line}"
            return ""
        assert not {"|", ">", "&&"} & set(words), f"{where}: this test is no shell"
        if words[0] == "reproduce":
            words += ["--runs", "2"] if "digits-table" in words else ["--runs", "1", "--quick"]
            if words[1] in ("mnist-table", "nist-table") and "--methods" not in words:
                words += ["--methods", "t-NeSi"]  # those of the other methods take as long, for their figures
        if words[0] == "label":
            words = ["label", "--help"]  # it would not end
        if words[0] == "demo":
            words += ["--draws", "1"]
        if words[0] == "tune":
            words += ["--splits", "2"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, f"{where}: {line}\n{result.output}\n{result.exception!r}"
        return result.output


def check_output(shown: str, printed: str, where: str) -> None:
    """Each line shown is one that was printed, in that order; numbers and widths may differ."""
    lines = iter([masked(line) for line in printed.splitlines()])
    for line in shown.splitlines():
        assert masked(line) in ("", "...") or masked(line) in lines, f"{where}: {line!r} is not what is printed"


def masked(line: str) -> str:
    line = " ".join(re.sub(r"\d[\d.,]*|─+", "#", line).split())
    line = re.sub(r"(?<=: )\w+ # %(, \w+ # %)+", "# %", line)  # methods by their share
    return re.sub(r"# \(#\)(, # \(#\))+", "# (#)", line)  # how many classes one is taken for differs, too


def write_idx(path: Path, array: Array) -> None:
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes(), 1))


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small ones that are called and written as MNIST and EMNIST are."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_digits(return_X_y=True)
    images = X.astype(np.uint8).reshape(-1, 8, 8)
    rng = np.random.default_rng(0)
    letters = np.maximum(images[:1300], np.roll(images[rng.permutation(1300)], 1, axis=2))
    (folder / "mnist").mkdir()
    (folder / "emnist").mkdir()
    for name, place in (("mnist/train", slice(1200)), ("mnist/t10k", slice(1200, None))):
        write_idx(folder / f"{name}-images-idx3-ubyte", images[place])
        write_idx(folder / f"{name}-labels-idx1-ubyte", y[place])
    name = "emnist/emnist-byclass-test"
    write_idx(folder / f"{name}-images-idx3-ubyte", np.concatenate([images, letters]).transpose(0, 2, 1))
    write_idx(folder / f"{name}-labels-idx1-ubyte", np.concatenate([y, 10 + np.arange(1300) % 52]))
    return folder


def write_files(folder: Path) -> None:
    """Write the files that the pages speak of, as if they were a reader's own."""
    from PIL import Image

    X, y = (values[:600] for values in load_digits(return_X_y=True))
    kinds = np.array(["cat", "dog", "owl", "fox", "hen", "ant", "bee", "cow", "elk", "rat"])[y]
    header = ",".join(f"count{i}" for i in range(64))
    rows = [",".join(map(str, row)) for row in X.astype(int).tolist()]
    known = [kind if i % 5 == 0 else "" for i, kind in enumerate(kinds)]
    labeled = [f"{row},{kind}" for row, kind in zip(rows, known, strict=True)]
    (folder / "counts.csv").write_text("\n".join([f"{header},kind", *labeled]))
    (folder / "new-counts.csv").write_text("\n".join([header, *rows[:50]]))
    np.save(folder / "spectra.npy", X)
    np.save(folder / "unlabeled.npy", X)
    (folder / "labels.csv").write_text("\n".join(["row,label", *(f"{i},{kinds[i]}" for i in range(100))]))
    for i in range(300):
        places = (
            [f"photos/{kinds[i]}"] if i < 100 else ["photos"] if i < 200 else ["new-photos", f"more-photos/{kinds[i]}"]
        )
        for place in places:
            (folder / place).mkdir(parents=True, exist_ok=True)
            Image.fromarray((X[i].reshape(8, 8) * 15).astype(np.uint8)).save(folder / place / f"{i:03}.png")
    words = {"sport": ["match", "goal", "player"], "money": ["bank", "market", "price"]}
    for i in range(60):
        topic = list(words)[i % 2]
        place = folder / "articles" / (topic if i < 20 else "")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i:03}.txt").write_text(" ".join([*words[topic], f"day{i % 7}", words[topic][i % 3]]))
    rng, leaves = np.random.default_rng(0), np.arange(200) % 2
    plans = np.array(["basic", "plus"])[np.where(rng.random(200) < 0.8, leaves, 1 - leaves)]
    balances = rng.normal(np.array([-300, 300])[leaves], 200).round(2)
    lines = [f"2021-{1 + i % 12:02}-{1 + i % 28:02},{plans[i]},{balances[i] if i % 9 else ''}" for i in range(200)]
    labels = [["stays", "leaves"][k] if i < 20 else "" for i, k in enumerate(leaves)]
    known = [f"{line},{label}" for line, label in zip(lines, labels, strict=True)]
    (folder / "customers.csv").write_text("\n".join(["joined,plan,balance,label", *known]))
    (folder / "new-customers.csv").write_text("\n".join(["joined,plan,balance", *lines[:50]]))


def known_names(page: Path) -> dict[str, Any]:
    """Return the names that a page takes for granted: the data at the top of the README."""
    if page.name != "README.md":
        return {}
    X, y = load_digits(return_X_y=True)
    return {"X": X, "y": y.copy(), "unknown": np.arange(len(y)) >= 100, "X_new": X[:5]}


@pytest.fixture
def folder(data_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which someone follows a page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TNESI_DATA", str(data_sets))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    write_files(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    """In the order of the page."""
    reader = Reader(known_names(page))
    for block in blocks(page):
        if block.comment != "slow":
            reader.follow(block)


@pytest.mark.slow(first=True)
@pytest.mark.usefixtures("folder")
def test_slow_examples_run() -> None:
    slow = [block for page in PAGES for block in blocks(page) if block.comment == "slow"]
    assert slow
    for block in slow:
        Reader({}).follow(block)
