"""What the page looks like and how it can be used: narrow and wide, light and dark, by touch, by ear.

The screenshots go to build/screenshots, or where TNESI_SCREENSHOTS says.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve()
SCREENSHOTS = Path(os.environ.get("TNESI_SCREENSHOTS") or HERE.parents[3] / "build" / "screenshots")
SIZES = {400: 860, 1280: 800, 1920: 1080}

NAMELESS = """() => [...document.querySelectorAll('button, a, input, select, [role=application], [tabindex="0"]')]
    .filter(node => node.checkVisibility({visibilityProperty: true}))
    .filter(node => !(node.getAttribute('aria-label') || node.innerText?.trim() || node.labels?.[0]?.innerText?.trim()))
    .map(node => node.outerHTML)"""

SMALL = """least => [...document.querySelectorAll('button, a, input, select')]
    .filter(node => node.checkVisibility() && !node.matches('.skip-link'))
    .filter(node => Math.min(node.offsetWidth, node.offsetHeight) < least).map(node => node.outerHTML)"""

PLACES = """() => [...document.querySelectorAll('.figure, .question, .frame, .choices-place, #question input, .trail, .explore')]
    .map(node => [node.id || node.className, node.getBoundingClientRect()])
    .map(([name, r]) => [name, r.x, r.y + scrollY, r.width, name.includes('explore') ? 0 : r.height])"""

# Contrast of every text with what is behind it (pictures and disabled controls apart), after WCAG 2.
FAINT = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const rgb = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
                            return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = node => { for (; node; node = node.parentElement) {
        const found = rgb(getComputedStyle(node).backgroundColor); if (found[3] === 255) return found; }
        return [255, 255, 255]; };
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !node.checkVisibility({visibilityProperty: true})) continue;
        if (node.closest(':disabled, option, .out-of-sight, noscript, .skip-link')) continue;
        const [a, b] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
        const size = parseFloat(getComputedStyle(node).fontSize);
        if ((a + 0.05) / (b + 0.05) < (size >= 24 ? 3 : 4.5)) faint.push(node.outerHTML);
    }
    return faint;
}"""


def check(page: Any) -> None:
    """Nothing stands out at the side, every control has a name, all text can be read."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(FAINT) == []


def shoot(page: Any, name: str, *, sizes: dict[int, int] = SIZES) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for width, height in sizes.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            check(page)
            page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png")


def test_pictures_of_all_states(digits_studio: Any, visit: Callable[..., Any], truth: list[str]) -> None:
    person = visit(digits_studio.address)
    page = person.page
    person.wait_for_question()
    page.wait_for_function("document.querySelector('#map-said').textContent.startsWith('Each tile')")
    shoot(page, "first-question")
    person.answer(truth, 10)
    person.wait_for_answers(10)
    shoot(page, "ten-answers")
    page.focus(".map-scroll")
    page.keyboard.press("Enter")
    page.wait_for_selector("#field-panel[open] .tile")
    shoot(page, "field")
    page.locator("#field-panel .tile").first.click()
    page.wait_for_selector("#row-panel[open]")
    shoot(page, "row")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.click("#tab-gallery")
    page.select_option("#gallery-order", "uncertain")
    page.wait_for_selector("#panel-gallery .tile")
    page.locator(".explore").scroll_into_view_if_needed()
    shoot(page, "gallery")
    page.click("#help-button")
    shoot(page, "help")
    page.keyboard.press("Escape")
    page.click("#export-button")
    shoot(page, "export", sizes={400: 860})


def test_many_classes_and_long_names(digits_studio: Any, visit: Callable[..., Any]) -> None:
    names = [f"kind {i}" for i in range(28)] + ["a name that is much longer than any button is wide, and goes on", "x" * 100]
    for row, name in enumerate(names):
        digits_studio.ask("POST", "/api/answers", {"client": "tests", "row": row, "label": name})
    person = visit(digits_studio.address)
    person.wait_for_question()
    person.wait_for_answers(30)
    assert person.page.locator("#question .choice").count() == 30
    assert person.page.locator("#question .choice kbd:visible").all_inner_texts() == [str(i) for i in range(1, 10)]
    shoot(person.page, "many-classes")


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
    assert page.evaluate(SMALL, 30) == []
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
    check(page)


@pytest.mark.parametrize("width", SIZES)
def test_nothing_jumps(digits_studio: Any, visit: Callable[..., Any], truth: list[str], width: int) -> None:
    person = visit(digits_studio.address, viewport={"width": width, "height": SIZES[width]})
    person.wait_for_question()
    before = person.page.evaluate(PLACES)
    person.answer(truth, 8)
    person.wait_for_answers(8)
    assert person.page.evaluate(PLACES) == before


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
