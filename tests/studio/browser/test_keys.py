"""Keys only: answers, names, undo, skip, help, the map, panels; typing a word triggers no shortcut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def person(digits_studio: Any, visit: Callable[..., Any]) -> Any:
    met = visit(digits_studio.address)
    met.wait_for_question()
    return met


def press(person: Any, *keys: str) -> None:
    """Press keys like a person who looks first: a key pressed too early applies to the previous example."""
    person.page.wait_for_timeout(200)
    for key in keys:
        person.page.keyboard.press(key)


def focused(person: Any) -> str:
    return str(person.page.evaluate("document.activeElement.id || document.activeElement.className"))


def test_answering_by_keys(person: Any, truth: list[str]) -> None:
    given = []
    known = set()
    for _ in range(6):
        row = person.wait_for_question()
        press(person, truth[row])
        if truth[row] not in known:  # not a shortcut yet: it begins a name
            assert person.page.input_value("#question input") == truth[row]
            assert "new class" in person.page.inner_text("#question .name-hint")
            press(person, "Enter")
        known.add(truth[row])
        person.wait_for_question(row)
        given.append(row)
    person.wait_for_answers(6)
    row = person.wait_for_question()
    press(person, "ArrowRight")
    assert person.wait_for_question(row) != row
    press(person, "ArrowLeft")
    person.page.wait_for_selector(f"#question-row:text-matches(' {row}$')")
    press(person, "Control+z")
    person.wait_for_answers(5)
    assert person.wait_for_question() == given[-1]


def test_a_word_typed_in_a_hurry_is_no_answer(person: Any) -> None:
    row = person.wait_for_question()
    person.page.wait_for_timeout(200)
    person.page.keyboard.type("shirt", delay=30)
    assert person.page.input_value("#question input") == "shirt"
    assert person.row == row
    press(person, "Enter")
    assert person.wait_for_question(row) != row
    person.wait_for_answers(1)
    assert person.page.locator("#question .choice kbd").all_inner_texts() == ["1"]
    row = person.row
    press(person, "1")
    person.wait_for_question(row)
    row = person.row
    person.name("SHIRT")  # case does not matter
    person.wait_for_question(row)
    person.wait_for_answers(3)
    assert person.page.locator("#question .choice").count() == 1


@pytest.mark.parametrize("delay", [30, 300, 900])
def test_letters_only_begin_names(person: Any, delay: int) -> None:
    """Also those of "skip" and "undo", however slowly they are typed."""
    row = person.wait_for_question()
    for name in ("square", "under"):
        person.page.keyboard.type(name, delay=delay)
        assert person.page.input_value("#question input") == name
        assert person.row == row
        press(person, "Enter")
        row = person.wait_for_question(row)
    person.wait_for_answers(2)
    assert person.page.locator("#question .choice-name").all_inner_texts() == ["square", "under"]


def test_undo_by_two_keys(person: Any) -> None:
    for name in ("one", "two"):
        row = person.wait_for_question()
        person.name(name)
        person.wait_for_question(row)
    person.wait_for_answers(2)
    press(person, "Control+z")
    person.wait_for_answers(1)
    press(person, "ArrowLeft")
    person.wait_for_answers(0)


def test_fast_keys_lose_nothing(person: Any) -> None:
    """Keys pressed before the next picture appears apply to the next question."""
    for name in ("one", "two"):
        row = person.wait_for_question()
        person.name(name)
        person.wait_for_question(row)
    person.wait_for_answers(2)
    for key in ("1", "2", "2", "1", "ArrowRight", "2"):
        person.page.keyboard.press(key)
        person.page.wait_for_timeout(200)
    person.page.keyboard.type("three", delay=40)
    person.page.keyboard.press("Enter")
    person.page.keyboard.type("1")
    person.wait_for_answers(9)
    newest = person.page.locator(".trail .chip-name").all_inner_texts()
    assert newest == ["one", "three", "two", "skipped", "one", "two"]


def test_a_key_that_bounces_answers_once(person: Any) -> None:
    person.name("something")
    person.wait_for_question()
    person.wait_for_answers(1)
    row = person.row
    person.page.evaluate(
        "for (const _ of [1, 2, 3])"
        " document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '1', bubbles: true, cancelable: true}))"
    )
    assert person.wait_for_question(row) != row
    person.wait_for_answers(2)
    person.page.locator("#question .choice").dblclick()
    person.wait_for_answers(3)


def test_entering_a_name_can_be_canceled(person: Any) -> None:
    row = person.wait_for_question()
    press(person, "7", "Escape")
    assert person.page.input_value("#question input") == ""
    press(person, "Enter")
    assert focused(person) == "name-1"
    press(person, "Enter", "Escape")  # an empty name is ignored
    assert person.row == row
    assert person.page.inner_text("#count .number") == "0"


def test_help_map_and_panels_by_keys(person: Any, truth: list[str]) -> None:
    person.answer(truth, 2)
    press(person, "?")
    assert person.page.locator("#help-panel").is_visible()
    press(person, "5", "Escape")  # no answers while the help is open
    assert person.page.locator("#help-panel").is_hidden()
    assert person.page.input_value("#question input") == ""

    person.page.focus(".map-scroll")
    before = person.page.inner_text("#map-said")
    press(person, "ArrowRight", "ArrowDown")
    said = person.page.inner_text("#map-said")
    assert said.startswith("Field ")
    assert said != before
    press(person, "Enter")
    person.page.wait_for_selector("#field-panel[open] .tile")
    assert person.page.inner_text("#field-panel-title") == said.split(":")[0]
    press(person, "Tab", "Tab", "Enter")  # over the close button to the first example
    person.page.wait_for_selector("#row-panel[open]")
    row = int(person.page.inner_text("#row-panel-title").split()[-1])
    known = person.page.locator("#question .choice").first.get_attribute("data-key")
    press(person, str(known))
    person.page.wait_for_selector("#row-panel", state="hidden")
    assert person.page.locator(f"#field-panel li[data-row='{row}'] .tile.labeled").count() == 1
    press(person, "Escape")
    assert person.page.locator("#field-panel").is_hidden()
    assert "map-scroll" in focused(person)
    person.wait_for_answers(3)


def test_every_part_is_reached_by_tab_and_shows_it(person: Any, truth: list[str]) -> None:
    person.answer(truth, 2)
    person.page.reload()
    person.wait_for_question()
    reached = []
    for _ in range(60):
        press(person, "Tab")
        told = person.page.evaluate(
            """() => {
                const node = document.activeElement, style = getComputedStyle(node);
                if (node === document.body) return [""];
                return [node.id || node.className || node.textContent, node.matches(':focus-visible'),
                        parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none'];
            }"""
        )
        if told[0] == "" or (reached and told[0] == reached[0]):
            break
        reached.append(told[0])
        assert told[1:] == [True, True], f"{told[0]} does not show its focus"
    wanted = {
        "export-button",
        "invert",
        "theme",
        "help-button",
        "choice",
        "name-1",
        "tab-map",
        "map-scroll",
        "class-open",
    }
    assert wanted <= set(reached)


def test_the_export_menu_by_keys(person: Any) -> None:
    person.page.focus("#export-button")
    press(person, "Enter", "ArrowDown", "ArrowDown")
    assert person.page.evaluate("document.activeElement.getAttribute('href')") == "/api/export/predictions.parquet"
    press(person, "Escape")
    assert focused(person) == "export-button"
    assert person.page.locator("#export-menu").is_hidden()
