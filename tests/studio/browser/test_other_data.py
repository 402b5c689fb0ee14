"""Other data: measurements from a CSV file as bars with names, word counts as top words, image files as they are."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits, load_iris, load_wine

TOPICS = {
    "space": "orbit moon rocket launch nasa satellite shuttle earth planet astronaut",
    "cars": "engine wheel brake tire dealer mileage clutch sedan gear exhaust",
    "hockey": "goal puck team season player coach ice league playoff referee",
}


def flowers(folder: Path) -> tuple[Path, list[str]]:
    found = load_iris()
    place = folder / "flowers.csv"
    lines = [",".join(found.feature_names), *(",".join(map(str, row)) for row in found.data.tolist())]
    place.write_text("\n".join(lines) + "\n")
    return place, [str(found.target_names[label]) for label in found.target]


def texts(folder: Path) -> tuple[Path, list[str]]:
    """Word counts: each text is about one of three topics, with some uninformative words."""
    rng = np.random.default_rng(0)
    topical = [word for words in TOPICS.values() for word in words.split()]
    words = topical + [f"filler{i:02}" for i in range(80)]
    names = [str(name) for name in rng.choice(list(TOPICS), 300)]
    counts = np.zeros((300, len(words)), int)
    for row, name in enumerate(names):
        own = [words.index(word) for word in TOPICS[name].split()]
        np.add.at(counts[row], rng.choice(own, 20), 1)
        np.add.at(counts[row], rng.integers(len(topical), len(words), 12), 1)
    place = folder / "texts.csv"
    place.write_text("\n".join([",".join(words), *(",".join(map(str, row)) for row in counts.tolist())]) + "\n")
    return place, names


def test_measurements_are_bars_with_names(
    studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    data, truth = flowers(tmp_path)
    person = visit(studio(data, "--encoder", "none").address)
    row = person.wait_for_question()
    bars = person.page.locator("#question .named-bars li")
    assert bars.locator(".bar-name").all_inner_texts() == load_iris().feature_names
    shown = [float(text) for text in bars.locator(".bar-value").all_inner_texts()]
    np.testing.assert_allclose(shown, load_iris().data[row], rtol=0.01)
    person.answer(truth, 5)
    person.wait_for_answers(5)
    assert person.number("decided") > 0
    person.shoot("measurements", [400, 1280])
    person.page.click("#tab-gallery")
    person.page.wait_for_selector("#panel-gallery .tile canvas")
    person.shoot("measurements-gallery", [1280])
    assert (tmp_path / "flowers.csv.studio.sqlite").exists()


def test_all_measurements_can_be_seen(studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path) -> None:
    rng, names = np.random.default_rng(0), [f"measure {i}" for i in range(24)]
    lines = [",".join(names), *(",".join(map(str, row)) for row in rng.poisson(20, (200, 24)).tolist())]
    (tmp_path / "birds.csv").write_text("\n".join(lines) + "\n")
    person = visit(studio(tmp_path / "birds.csv", "--encoder", "none").address)
    person.wait_for_question()
    bars = "#question .named-bars"
    person.shoot("many-measurements", [400, 1280])
    for width in (400, 1280):
        person.page.set_viewport_size({"width": width, "height": 800})
        assert person.page.locator(f"{bars} li").count() == 24
        assert person.page.locator(bars).evaluate("node => node.scrollHeight <= node.clientHeight")
    person.page.click(".map-sheet canvas", position={"x": 10, "y": 10})
    person.page.wait_for_selector("#field-panel[open] .tile")
    assert person.page.locator("#field-panel .bar-name").all_inner_texts() == names
    assert person.page.locator("#field-panel .bar-value").count() == 0  # fields are not in the units of the columns


def test_columns_in_different_units_are_reported(
    studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    found = load_wine()
    lines = [",".join(found.feature_names), *(",".join(map(str, row)) for row in found.data.tolist())]
    (tmp_path / "wine.csv").write_text("\n".join(lines) + "\n")
    person = visit(studio(tmp_path / "wine.csv", "--encoder", "none").address)
    person.wait_for_question()
    assert "'proline' dominates" in person.page.inner_text("#advice .said")
    person.shoot("units", [400, 1280])


def test_many_measurements_without_names_are_a_profile(
    studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    np.save(tmp_path / "wine.npy", load_wine().data)
    person = visit(studio(tmp_path / "wine.npy").address)
    person.wait_for_question()
    person.shoot("profile", [1280])
    profile = person.page.locator("#question svg.profile")
    assert profile.locator("rect").count() == load_wine().data.shape[1]
    assert "profile of 13 bars" in profile.get_attribute("aria-label")


def test_texts_are_their_top_words(studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path) -> None:
    data, truth = texts(tmp_path)
    person = visit(studio(data).address)
    row = person.wait_for_question()
    words = person.page.locator("#question .named-bars .bar-name").all_inner_texts()
    own = TOPICS[truth[row]].split()
    assert words[0] in own
    assert not set(words) & {word for other in TOPICS.values() if other.split() != own for word in other.split()}
    rows = person.answer(truth, 6)
    assert person.page.locator("#question .choice").count() == len({truth[row] for row in rows})
    person.wait_for_answers(6)
    person.shoot("texts", [400, 1280])
    person.page.focus(".map-scroll")
    assert "(" in person.page.inner_text("#map-said")  # a field is shown by its top word
    person.page.keyboard.press("Enter")
    person.page.wait_for_selector("#field-panel[open] .tile-words")
    person.shoot("texts-field", [1280])
    person.page.keyboard.press("Escape")
    person.page.click("#tab-gallery")
    person.page.wait_for_selector("#panel-gallery .tile-words")
    assert person.page.locator("#panel-gallery .tile").count() == 60


def test_words_are_shown_beside_many_bars(
    studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    path, truth = texts(tmp_path)
    narrow = [",".join(line.split(",")[:40]) for line in path.read_text().splitlines()]
    (tmp_path / "counts.csv").write_text("\n".join(narrow))
    person = visit(studio(tmp_path / "counts.csv", "--encoder", "none").address)
    row = person.wait_for_question()
    assert person.page.locator("#question svg.profile rect").count() == 40
    assert person.page.locator("#question .named-bars .bar-name").first.inner_text() in TOPICS[truth[row]].split()
    person.shoot("counts", [400, 1280])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_image_files_look_as_they_are(
    studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path, scheme: str
) -> None:
    """Digits in black on white paper; their file names are shown."""
    (tmp_path / "photos").mkdir()
    digits = load_digits()
    for i, image in enumerate(digits.images[:120]):
        name = f"{i:03}-of-a-rather-long-name-{digits.target[i]}.png"
        Image.fromarray((255 - 15 * image).astype(np.uint8)).resize((32, 32)).save(tmp_path / "photos" / name)
    person = visit(studio(tmp_path / "photos").address, color_scheme=scheme)
    row = person.wait_for_question()
    page = person.page
    name = f"{row:03}-of-a-rather-long-name-{digits.target[row]}.png"
    assert page.inner_text("#question-row").endswith(f"row {row} · {name}")
    person.answer([str(name) for name in digits.target], 6)
    person.wait_for_answers(6)
    page.wait_for_selector("#question .picture")
    with BytesIO(page.locator("#question .picture").screenshot()) as file:
        seen = np.asarray(Image.open(file).convert("L"))
    assert seen[8:20, 8:20].min() > 200  # paper is white
    assert seen.min() < 60
    person.shoot("photos", [400, 1280])
    assert page.locator("#invert").is_hidden()  # they have colors of their own


def test_data_that_cannot_be_learned(studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path) -> None:
    np.save(tmp_path / "small.npy", np.random.default_rng(0).integers(1, 9, (10, 20)).repeat(30, axis=0))
    person = visit(studio(tmp_path / "small.npy", "--fields", "200").address)
    person.page.wait_for_selector("#banner:has-text('--fields=200 exceeds')")
    assert person.page.inner_text("#status") == "Stopped"
    person.shoot("failed", [400, 1280])


def test_after_the_last_row(studio: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", np.random.default_rng(0).integers(1, 9, (4, 20)))
    person = visit(studio(tmp_path / "few.npy").address)
    person.answer(["a", "b", "a", "b"], 3)
    person.page.click("button:has-text('Skip')")
    person.page.wait_for_selector("#question .placeholder:has-text('No more questions')")
    person.page.click("button:has-text('Undo')")
    person.wait_for_question()
    person.wait_for_answers(3)
