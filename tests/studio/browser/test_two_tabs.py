"""Two tabs and two users: different questions, nothing is lost, each sees the answers of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("same_browser", [True, False], ids=["two tabs", "two people"])
def test_two_at_once(digits_studio: Any, visit: Callable[..., Any], truth: list[str], same_browser: bool) -> None:
    one = visit(digits_studio.address)
    one.wait_for_question()
    other = visit(digits_studio.address, beside=one if same_browser else None)
    assert other.wait_for_question() != one.row
    rows = []
    for _ in range(3):
        rows += one.answer(truth) + other.answer(truth)
    assert len(set(rows)) == 6
    for person in (one, other):
        person.wait_for_answers(6)
        assert set(person.page.locator("#question .choice-name").all_inner_texts()) == {truth[row] for row in rows}
    assert one.row != other.row


def test_another_clients_answer_replaces_an_open_question(
    digits_studio: Any, visit: Callable[..., Any], truth: list[str]
) -> None:
    one = visit(digits_studio.address)
    other = visit(digits_studio.address)
    row = one.wait_for_question()
    other.answer(truth)
    other.page.click("#tab-gallery")
    other.page.fill("#gallery-index", str(row))
    other.page.press("#gallery-index", "Enter")
    other.page.fill("#row-panel input", truth[row])
    other.page.press("#row-panel input", "Enter")
    other.page.wait_for_selector("#row-panel", state="hidden")
    assert one.wait_for_question(row) != row
    one.wait_for_answers(2)
    assert one.errors == []


def test_a_conflict_of_two_is_kept_with_its_history(
    digits_studio: Any, visit: Callable[..., Any], truth: list[str]
) -> None:
    one = visit(digits_studio.address)
    (row,) = one.answer(truth)
    other = visit(digits_studio.address)
    other.wait_for_question()
    other.page.click("#tab-gallery")
    other.page.select_option("#gallery-class", label="With a label")
    other.page.click(f"#panel-gallery li[data-row='{row}'] .tile")
    other.page.fill("#row-panel input", "something else")
    other.page.press("#row-panel input", "Enter")
    other.page.wait_for_selector("#row-panel", state="hidden")
    one.page.wait_for_selector("#question .choice[data-key='something else']")  # the last one counts, everywhere
    one.page.locator(".trail .chip").first.click()
    one.page.wait_for_selector("#row-panel[open]")
    assert "something else" in one.page.inner_text("#row-panel .row-label")
    told = one.page.inner_text("#row-panel")
    assert int(told.split("Answered ")[1].split()[0]) >= 2
