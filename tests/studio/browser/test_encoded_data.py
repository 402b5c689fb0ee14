"""Photographs, documents and tables on the page, in their original form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

TOPICS = {"space": "orbit moon rocket launch", "cars": "engine wheel brake tire"}
COMMON = ("the", "a", "of", "to", "in", "it")

Studios = Callable[..., Any]


def test_photographs(studio: Studios, visit: Studios, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    truth = []
    for i in range(60):
        pixels = rng.integers(180, 256, (90, 120, 3)).astype(np.uint8)
        top, left = rng.integers(10, 50, 2)
        pixels[top : top + 30, left : left + 30] = ((200, 40, 40), (50, 80, 200))[i % 2]
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i:03}.jpg", quality=95)
        truth.append(("red", "blue")[i % 2])
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"nothing")
    person = visit(studio(tmp_path / "photos").address)
    person.answer(truth, 6)
    person.wait_for_answers(6)
    page, row = person.page, person.row
    page.wait_for_selector("#question .picture")
    shown = page.evaluate(
        """() => {
            const image = document.querySelector('#question .picture');
            const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight).getContext('2d');
            canvas.drawImage(image, 0, 0);
            return [image.naturalWidth, image.naturalHeight,
                    [...canvas.getImageData(0, 0, image.naturalWidth, image.naturalHeight).data]];
        }"""
    )
    pixels = np.array(shown[2]).reshape(shown[1], shown[0], 4)
    original = np.asarray(Image.open(tmp_path / "photos" / f"{row:03}.jpg")).astype(int)
    assert np.abs(pixels[:, :, :3] - original).mean() < 8  # in color, upright, at its own size
    assert "broken.jpg" in page.inner_text("#notes")
    assert page.get_attribute("#question a.photo", "href") == f"/api/pictures/row/{row}.png?size=4096"
    person.shoot("photographs", [400, 1280])
    page.click("#tab-gallery")
    page.wait_for_selector("#panel-gallery .tile canvas")
    person.shoot("photographs-gallery", [1280])


def test_documents(studio: Studios, visit: Studios, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "articles").mkdir()
    truth = []
    for i in range(60):
        topic = list(TOPICS)[i % 2]
        words = [*rng.choice(TOPICS[topic].split(), 400), *rng.choice(list(COMMON), 100)]
        (tmp_path / "articles" / f"{i:03}.txt").write_text(" ".join(rng.permutation(words)))
        truth.append(topic)
    person = visit(studio(tmp_path / "articles").address)
    page, row = person.page, person.wait_for_question()
    text = (tmp_path / "articles" / f"{row:03}.txt").read_text()
    folded = page.inner_text("#question .document p")
    assert folded.removesuffix(" …").strip() == text[:1500].strip()
    page.click("#question .document button")
    page.wait_for_function(
        "n => document.querySelector('#question .document p').textContent.length >= n", arg=len(text)
    )
    assert page.locator("#question .document button").count() == 0
    person.answer(truth, 4)
    person.wait_for_answers(4)
    page.focus(".map-scroll")
    assert any(word in page.inner_text("#map-said") for words in TOPICS.values() for word in words.split())
    page.keyboard.press("Enter")
    page.wait_for_selector("#field-panel[open] .named-bars.words")
    page.keyboard.press("Escape")
    person.shoot("documents", [400, 1280])


def test_a_table(studio: Studios, visit: Studios, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines, truth = ["customer_id,age,plan,balance"], []
    for i in range(80):
        balance = "" if i % 3 == 0 else f"{rng.normal(200 * (i % 2) - 100, 20):.2f}"
        lines.append(f"C{i:03},{25 + 30 * (i % 2) + rng.integers(5)},{('basic', 'plus')[i % 2]},{balance}")
        truth.append(("young", "old")[i % 2])
    (tmp_path / "customers.csv").write_text("\n".join(lines) + "\n")
    person = visit(studio(tmp_path / "customers.csv").address)
    page, row = person.page, person.wait_for_question()
    assert page.locator("#question .table-row dt").all_inner_texts() == lines[0].split(",")
    shown = page.locator("#question .table-row dd").all_inner_texts()
    given = lines[1 + row].split(",")
    assert shown[:3] == given[:3]
    assert float(shown[3]) == float(given[3]) if given[3] else shown[3] == "missing"
    person.answer(truth, 4)
    person.wait_for_answers(4)
    assert "customer_id" in page.inner_text("#notes")  # left out, which is mentioned
    page.focus(".map-scroll")
    assert "plan=" in page.inner_text("#map-said") or "age~" in page.inner_text("#map-said")
    person.shoot("table", [400, 1280])
    page.click("#tab-gallery")
    page.wait_for_selector("#panel-gallery .tile-words")
    assert "C0" in page.locator("#panel-gallery .tile-words").first.inner_text()
