"""Appearance and use of the page: narrow and wide, light and dark, by touch, with a screen reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SIZES = {400: 860, 1280: 800, 1920: 1080}


def test_pictures_of_all_states(digits_studio: Any, visit: Callable[..., Any], truth: list[str]) -> None:
    person = visit(digits_studio.address)
    page = person.page
    person.wait_for_question()
    page.wait_for_function("() => document.querySelector('#map-said').textContent.startsWith('Each tile')")
    person.shoot("first-question")
    person.answer(truth, 10)
    person.wait_for_answers(10)
    person.shoot("ten-answers")
    person.shoot("map", [400], at=".explore")
    person.shoot("classes", [400, 1280], at=".classes")
    page.focus(".map-scroll")
    page.keyboard.press("Enter")
    page.wait_for_selector("#field-panel[open] .tile")
    person.shoot("field")
    page.locator("#field-panel .tile").first.click()
    page.wait_for_selector("#row-panel[open]")
    person.shoot("row", [400, 1280])
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.click("#tab-gallery")
    page.select_option("#gallery-order", "uncertain")
    page.wait_for_selector("#panel-gallery .tile")
    person.shoot("gallery", at=".explore")
    page.click("#help-button")
    person.shoot("help")
    page.keyboard.press("Escape")
    page.click("#export-button")
    person.shoot("export", [400])


def test_many_classes_and_long_names(digits_studio: Any, visit: Callable[..., Any]) -> None:
    names = [f"kind {i}" for i in range(28)] + [
        "a name that is longer than any button is wide, and goes on",
        "x" * 100,
    ]
    for row, name in enumerate(names):
        digits_studio.ask("POST", "/api/answers", {"client": "tests", "row": row, "label": name})
    person = visit(digits_studio.address)
    person.wait_for_question()
    person.wait_for_answers(30)
    assert person.page.locator("#question .choice").count() == 30
    assert person.page.locator("#question .choice kbd:visible").all_inner_texts() == [str(i) for i in range(1, 10)]
    person.shoot("many-classes")


def test_a_phone(digits_studio: Any, visit: Callable[..., Any], truth: list[str]) -> None:
    phone = {"viewport": {"width": 400, "height": 860}, "has_touch": True, "is_mobile": True}
    person = visit(digits_studio.address, **phone)
    page = person.page
    person.answer(truth, 2)
    row = person.wait_for_question()
    page.locator("#question .choice").first.tap()
    person.wait_for_question(row)
    person.wait_for_answers(3)
    page.tap("text=Undo")
    person.wait_for_answers(2)
    assert person.wait_for_question() == row
    assert person.found("small", 30) == []
    canvas = page.locator(".map-sheet canvas")
    canvas.scroll_into_view_if_needed()
    canvas.tap(position={"x": 40, "y": 40})
    page.wait_for_selector("#field-panel[open] .tile")
    page.locator("#field-panel .tile").nth(3).tap()
    page.wait_for_selector("#row-panel[open]")
    page.locator("#row-panel .choice").first.tap()
    page.wait_for_selector("#row-panel", state="hidden")
    person.wait_for_answers(3)
    page.set_viewport_size({"width": 320, "height": 640})
    page.keyboard.press("Escape")
    person.check()
    page.reload()
    page.wait_for_selector("#map-said:has-text('Scroll to see the rest of the map')")


@pytest.mark.parametrize("width", SIZES)
def test_the_layout_does_not_shift(digits_studio: Any, visit: Callable[..., Any], truth: list[str], width: int) -> None:
    person = visit(digits_studio.address, viewport={"width": width, "height": SIZES[width]})
    person.wait_for_question()
    before = person.found("places")
    person.answer(truth, 8)
    person.wait_for_answers(8)
    assert person.found("places") == before


def test_themes_are_kept(digits_studio: Any, visit: Callable[..., Any]) -> None:
    person = visit(digits_studio.address, color_scheme="light")
    person.wait_for_question()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = person.page.evaluate(ground)
    person.page.click("#theme")
    dark = person.page.evaluate(ground)
    assert dark != light
    assert person.page.get_attribute("#theme", "aria-pressed") == "true"
    person.page.reload()
    person.wait_for_question()
    assert person.page.evaluate(ground) == dark
    person.page.click("#invert")
    assert person.page.evaluate("document.documentElement.dataset.negative") == "0"
