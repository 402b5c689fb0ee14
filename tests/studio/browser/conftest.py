"""The studio as a user sees it: ``tnesi label`` as a separate process, and Debian's Chromium on its page.

The pages are checked in all sizes and colors; screenshots are taken if TNESI_SCREENSHOTS names a folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tnesi.data import load_named

HERE = Path(__file__).resolve()
SCREENSHOTS = os.environ.get("TNESI_SCREENSHOTS")
SIZES = {400: 860, 1280: 800, 1920: 1080}
TNESI = [sys.executable, "-c", "from tnesi.cli import main; main()"]
_CHECKS = HERE.with_name("checks.js").read_text()
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is the same browser without windows: it takes half the time."""


class Studio:
    """``tnesi label``, running."""

    def __init__(self, zygotes: Any, data: str | Path, folder: Path, *options: str) -> None:
        """Without zygotes, the command is started as a user would."""
        self.folder, self._words = folder, ["label", str(data), "--no-browser", *options]
        self._log = folder / "studio.log"
        self._zygotes, self._process = zygotes, None
        self.address = self.start("--port", "0")

    def start(self, *options: str) -> str:
        """Start it (again: with the same port and token); return the address of the page."""
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        if self._zygotes:
            environment["OMP_NUM_THREADS"] = "1"  # as in the tests of the command: one zygote serves all
        words = [*self._words, *options]
        with self._log.open("wb") as log:
            self._process = (
                self._zygotes.start(words, cwd=self.folder, env=environment, stdout=log)
                if self._zygotes
                else subprocess.Popen([*TNESI, *words], cwd=self.folder, env=environment, stdout=log, stderr=log)
            )
        for _ in range(1800):
            said = self._log.read_text()
            if found := re.search(r"http://\S+/\?token=\S+", said):
                return found[0]
            assert self._process.poll() is None, said
            time.sleep(0.05)
        raise AssertionError(f"no address within 90 s: {said}")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the server without the page."""
        base, token = self.address.split("/?token=")
        headers = {"Authorization": f"Bearer {token}", "Origin": base, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(base + path, method=method, headers=headers, data=data), timeout=120) as answer:
            return json.load(answer)

    def wait_until_ready(self) -> None:
        for _ in range(12_000):
            if self.ask("GET", "/api/state")["phase"] == "ready":
                return
            time.sleep(0.05)
        raise AssertionError("not ready within ten minutes")

    def wait_until_silent(self) -> None:
        """Wait until all answers are learned from, questions are ready, and no event follows."""
        before = None
        for _ in range(600):
            now = self.ask("GET", "/api/state")
            done = now["phase"] == "ready" and not now["busy"]
            if done and now["version"] == before and self.ask("GET", "/api/question?client=tests")["question"]:
                return
            before = now["version"]
            time.sleep(1)
        raise AssertionError("not silent within ten minutes")

    def forget_all(self) -> None:
        """Undo everything."""
        while self.ask("GET", "/api/state")["answers"]["can_undo"]:
            self.ask("POST", "/api/undo", {"client": "tests"})

    def kill(self) -> None:
        """``kill -9``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def studio(tmp_path: Path, zygotes: Any) -> Iterator[Callable[..., Studio]]:
    """Start a studio in the test's own folder."""
    running: list[Studio] = []

    def start(data: str | Path, *options: str, forked: bool = True) -> Studio:
        running.append(Studio(zygotes if forked else None, data, tmp_path, *options))
        return running[-1]

    yield start
    for one in running:
        one.kill()


@pytest.fixture(scope="session")
def truth() -> list[str]:
    """Return the true digit of each row."""
    return [str(label) for label in load_named("digits").y]


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory, zygotes: Any) -> Path:
    """Return a project of the digits without answers, in which the fields are learned."""
    folder = tmp_path_factory.mktemp("learned")
    one = Studio(zygotes, "digits", folder)
    one.wait_until_ready()
    one.kill()
    return folder


def _copied(learned: Path, folder: Path) -> Path:
    for file in learned.glob("digits.studio.sqlite*"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture
def own_studio(learned: Path, studio: Callable[..., Studio], tmp_path: Path) -> Studio:
    """Return a studio of the digits that may be killed; its fields need not be learned again."""
    _copied(learned, tmp_path)
    return studio("digits")


@pytest.fixture(scope="module")
def shared_studio(learned: Path, tmp_path_factory: pytest.TempPathFactory, zygotes: Any) -> Iterator[Studio]:
    running = Studio(zygotes, "digits", _copied(learned, tmp_path_factory.mktemp("shared")))
    running.wait_until_ready()
    yield running
    running.kill()


@pytest.fixture
def digits_studio(shared_studio: Studio) -> Studio:
    """Return a studio of the digits without answers; it may not be killed."""
    shared_studio.forget_all()
    return shared_studio


def _found_browser() -> str:
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        text = "there is no Chromium: apt-get install chromium-headless-shell"
        if os.environ.get("CI"):
            pytest.fail(text)  # CI has it: there, a missing browser is a failure
        pytest.skip(text)
    return path


@pytest.fixture(scope="module")  # its event loop must not leak into tests of other modules
def browser() -> Iterator[Any]:
    path = _found_browser()
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=options)
        yield running
        running.close()


class Person:
    """A user on the page of a studio."""

    def __init__(self, context: Any, address: str) -> None:
        self.context, self.page = context, context.new_page()
        self.errors: list[str] = []
        self.offline = False
        """Whether the server is meant to be away: the browser tells that as errors."""
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address)

    def _hear(self, message: Any) -> None:
        away = "Failed to load resource" in message.text or "net::ERR" in message.text
        if message.type in ("error", "warning") and not (self.offline and away):
            self.errors.append(message.text)

    def wait_for_question(self, other_than: int | None = None) -> int:
        """Return the row of the question once it can be answered."""
        self.page.wait_for_function(
            "other => document.querySelector('.question.asking:not(.pending)')"
            " && document.getElementById('question-row').textContent.split(' ').at(-1) !== other",
            arg=str(other_than),
            timeout=600_000,
        )
        return self.row

    @property
    def row(self) -> int:
        return int(re.search(r"row (\d+)", self.page.inner_text("#question-row"))[1])

    def name(self, label: str) -> None:
        """Type the name of a class, as for a new one."""
        self.page.fill("#question input", label)
        self.page.press("#question input", "Enter")

    def answer(self, truth: list[str], times: int = 1) -> list[int]:
        """Answer with the buttons, or type names of new classes; return the rows."""
        rows = []
        for _ in range(times):
            row = self.wait_for_question()
            button = self.page.locator(f"#question .choice[data-key='{truth[row]}']")
            if button.count():
                button.click()
            else:
                self.name(truth[row])
            self.wait_for_question(row)
            rows.append(row)
        return rows

    def number(self, figure: str) -> float:
        return float(self.page.inner_text(f"#{figure} .number").removesuffix(" %"))

    def wait_for_answers(self, number: int) -> None:
        """Wait until there are this many labels and all are learned."""
        self.page.wait_for_function(
            "n => document.querySelector('#count .number').textContent === n"
            " && document.querySelector('#status').textContent.match(/All answers saved|Ready/)",
            arg=str(number),
            timeout=600_000,
        )

    def export(self, file: str, folder: Path) -> Path:
        """Download an export from the menu into a folder."""
        self.page.click("#export-button")
        with self.page.expect_download(timeout=600_000) as coming:
            self.page.click(f"#export-menu a[href='/api/export/{file}']")
        coming.value.save_as(folder / file)
        return folder / file

    def found(self, check: str, *given: int) -> Any:
        """Return the findings of a check in checks.js."""
        return self.page.evaluate(f"({_CHECKS}).{check}({', '.join(map(str, given))})")

    def check(self) -> None:
        """Check that nothing overflows, every control has a name, and all text is readable."""
        for name in ("wide", "nameless", "faint"):
            assert self.found(name) == [], name

    def shoot(self, name: str, sizes: Iterable[int] = SIZES, at: str = "body") -> None:
        """Check the page from `at` on, narrow and wide, light and dark; take screenshots on request."""
        for width in sizes:
            self.page.set_viewport_size({"width": width, "height": SIZES[width]})
            self.page.locator(at).evaluate("node => node.scrollIntoView()")
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                self.check()
                if SCREENSHOTS:
                    self.page.screenshot(path=Path(SCREENSHOTS) / f"{name}-{width}-{scheme}.png")


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Person]]:
    """Open the page as the only user or a second one; at the end, check that no error occurred."""
    met: list[Person] = []

    def open_page(address: str, beside: Person | None = None, **options: Any) -> Person:
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
        context = beside.context if beside else browser.new_context(**options)
        context.set_default_timeout(120_000)
        met.append(Person(context, address))
        return met[-1]

    yield open_page
    for person in met:
        person.context.close()
    for person in met:
        assert person.errors == []
