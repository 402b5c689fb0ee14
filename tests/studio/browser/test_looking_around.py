"""The gallery, conflicts, names of classes, and what the page says when something is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest


def label_many(studio: Any, labels: dict[int, str]) -> None:
    for row, label in labels.items():
        studio.ask("POST", "/api/answers", {"client": "tests", "row": row, "label": label})


@pytest.fixture
def person(digits_studio: Any, visit: Callable[..., Any], truth: list[str]) -> Any:
    """Return a user whose project has thirty labels."""
    label_many(digits_studio, {row: truth[row] for row in range(30)})
    met = visit(digits_studio.address)
    met.wait_for_question()
    met.wait_for_answers(30)
    return met


def margins(person: Any) -> list[float]:
    return [float(text) for text in person.page.locator("#panel-gallery .tile-share").all_inner_texts()]


def test_gallery_by_class_and_certainty(person: Any) -> None:
    page = person.page
    page.locator(".class-open", has_text="3").click()  # a class opens its rows
    page.wait_for_selector("#panel-gallery .tile")
    assert page.input_value("#gallery-class") == "c3"
    assert set(page.locator("#panel-gallery .tile-name").all_inner_texts()) == {"3"}
    certain = margins(person)
    assert certain == sorted(certain, reverse=True)
    page.select_option("#gallery-order", "uncertain")
    page.wait_for_function(
        "first => document.querySelector('#panel-gallery .tile-share').textContent !== first", arg="1.00"
    )
    uncertain = margins(person)
    assert uncertain == sorted(uncertain)
    assert uncertain[0] < certain[0]
    page.select_option("#gallery-class", label="All rows")
    page.select_option("#gallery-order", "index")
    page.wait_for_selector("#panel-gallery li[data-row='0']")
    page.click("text=Next")
    page.wait_for_selector("#panel-gallery li[data-row='60']")
    assert "61 to 120 of 1,397" in page.inner_text(".gallery-said")
    page.click("text=Previous")
    page.wait_for_selector("#panel-gallery li[data-row='0']")
    assert page.is_disabled("button:has-text('Previous')")
    page.select_option("#gallery-class", label="With a label")
    page.wait_for_selector(".gallery-said:has-text('of 30')")
    assert page.locator("#panel-gallery .tile.labeled").count() == 30


def test_undo_is_seen_in_the_gallery(person: Any) -> None:
    page = person.page
    page.click("#tab-gallery")
    page.select_option("#gallery-order", "index")
    page.wait_for_selector("#panel-gallery li[data-row='40']")
    named = "#panel-gallery li[data-row='{}'] .tile-name"
    before = {row: page.inner_text(named.format(row)) for row in (5, 40)}
    for n, (row, name) in enumerate(before.items()):  # one with a label, one without
        other = "2" if name != "2" else "7"
        page.click(f"#panel-gallery li[data-row='{row}'] .tile")
        page.wait_for_selector("#row-panel[open]")
        page.keyboard.press(other)
        page.wait_for_selector(f"#panel-gallery li[data-row='{row}'] .tile.labeled .tile-name:text-is('{other}')")
        person.wait_for_answers(30 + n)
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector(f"{named.format(row)}:text-is('{name}')")
    assert page.locator("#panel-gallery li[data-row='40'] .tile.labeled").count() == 0
    assert page.locator("#panel-gallery li[data-row='5'] .tile.labeled").count() == 1


def test_search_by_index_and_relabel(person: Any) -> None:
    page = person.page
    page.click("#tab-gallery")
    for wrong in ("", "-1", "1397", "4x"):
        page.fill("#gallery-index", wrong)
        page.press("#gallery-index", "Enter")
        page.wait_for_selector(".gallery-said:has-text('Enter a number from 0 to 1,396')")
    page.fill("#gallery-index", "1396")
    page.press("#gallery-index", "Enter")
    page.wait_for_selector("#row-panel[open]")
    assert page.inner_text("#row-panel-title") == "Row 1396"
    page.locator("#row-panel .choice").first.click()
    page.wait_for_selector("#row-panel", state="hidden")
    person.wait_for_answers(31)
    page.fill("#gallery-index", "1396")
    page.press("#gallery-index", "Enter")
    page.click("text=Remove the label")
    page.wait_for_selector("#row-panel", state="hidden")
    person.wait_for_answers(30)


def test_a_wrong_label_is_found_and_mended(person: Any, digits_studio: Any, truth: list[str]) -> None:
    page = person.page
    told = digits_studio.ask("GET", "/api/gallery?class=0&order=certain&limit=5")["rows"]
    row = next(one["row"] for one in told if one["label"] is None)
    label_many(digits_studio, {row: "6"})
    conflict = page.locator(".conflict-list li", has_text=f"row {row}")
    conflict.wait_for()
    assert "6" in conflict.inner_text()
    person.shoot("conflict", [400, 1280], at=".conflicts")
    conflict.get_by_role("button").click()
    page.wait_for_selector("#row-panel[open]")
    assert page.inner_text("#row-panel .row-label") == "Labeled 6"
    assert "of the rows around it" in page.inner_text("#row-panel .row-conflict").lower()
    assert "look like 0" in page.inner_text("#row-panel .row-conflict")
    page.click("#row-panel button:has-text('Rows around it')")
    page.wait_for_selector("#field-panel[open] .tile")
    assert page.locator("#row-panel").is_hidden()
    page.keyboard.press("Escape")
    page.click("#to-conflicts")  # from the advice to its subject
    conflict.get_by_role("button").click()
    page.wait_for_selector("#row-panel[open]")
    page.click("#row-panel .choice[data-key='0']")
    conflict.wait_for(state="detached")


def test_renaming_and_merging(person: Any) -> None:
    page = person.page
    page.click("button[aria-label='Rename 7']")
    page.fill("#rename-name", "seven")
    page.press("#rename-name", "Enter")
    page.wait_for_selector("#question .choice[data-key='seven']")
    assert page.locator("#question .choice[data-key='7']").count() == 0
    page.click("button[aria-label='Rename seven']")
    page.fill("#rename-name", "1")
    assert "will be merged" in page.inner_text("#rename-panel")
    page.press("#rename-name", "Enter")
    page.wait_for_selector("#rename-panel button:text-is('Merge')")  # asks for confirmation
    assert page.locator("#question .choice[data-key='seven']").count() == 1
    page.press("#rename-name", "Enter")
    page.wait_for_selector("#question .choice[data-key='seven']", state="detached")
    assert page.locator("#question .choice").count() == 9
    person.wait_for_answers(30)
    page.wait_for_selector("#question .notice:has-text('seven is 1 now; Ctrl+Z undoes this')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#question .notice:has-text('Undone: renaming seven to 1')")
    page.wait_for_selector("#question .choice[data-key='seven']")


def test_last_answers_follow_the_names_of_their_classes(person: Any) -> None:
    page = person.page
    person.name("crow")
    page.wait_for_selector(".chip.saved .chip-name:text-is('crow')")
    page.click("button[aria-label='Rename crow']")
    page.fill("#rename-name", "raven")
    page.press("#rename-name", "Enter")
    page.wait_for_selector(".chip.saved .chip-name:text-is('raven')")
    page.reload()
    person.wait_for_question()
    page.click("button:has-text('Undo')")
    page.wait_for_selector(".chip.saved .chip-name:text-is('crow')")


def test_an_export_that_cannot_be_made_yet(digits_studio: Any, visit: Callable[..., Any]) -> None:
    person = visit(digits_studio.address)
    person.wait_for_question()
    person.page.click("#export-button")
    person.page.click("#export-menu a[href='/api/export/model.tnesi']")
    person.page.wait_for_selector("#question .notice[data-kind=warning]")
    assert len(person.page.inner_text("#question .notice")) > 10
    person.errors.clear()  # the browser logs refusals as errors


def test_a_server_with_another_token(own_studio: Any, visit: Callable[..., Any], truth: list[str]) -> None:
    person = visit(own_studio.address)
    row = person.wait_for_question()
    person.offline = True
    own_studio.kill()
    person.name(truth[row])
    person.page.wait_for_selector(".chip.waiting")
    shutil.rmtree(own_studio.folder / "cache")
    port = own_studio.address.split(":")[2].split("/")[0]
    address = own_studio.start("--port", port)
    assert address != own_studio.address
    person.page.wait_for_selector("#banner:has-text('printed in the terminal')")
    person.page.goto(address)  # as the message says; the answer is not lost
    person.wait_for_answers(1)


def test_unreadable_data_is_reported(own_studio: Any, visit: Callable[..., Any], truth: list[str]) -> None:
    person = visit(own_studio.address)
    person.answer(truth, 1)
    person.offline = True
    own_studio.kill()
    person.page.click(".trail .chip")
    person.page.wait_for_selector("#question .notice[data-kind=warning]:has-text('connection to the studio was lost')")
