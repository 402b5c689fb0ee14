"""MNIST end to end: a fresh start, ten answers, a kill -9, and a model that predicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tnesi
from tnesi.data import Data


def answer_calmly(person: Any, truth: list[str], numbers: range) -> list[int]:
    """Answer like a person, who sees the effect of the last answer before giving the next."""
    rows = []
    for number in numbers:
        rows += person.answer(truth)
        person.wait_for_answers(number)
    return rows


@pytest.mark.slow(first=True)
def test_ten_digits_of_mnist(
    studio: Callable[..., Any], visit: Callable[..., Any], mnist: Data, tmp_path: Path
) -> None:
    truth = [str(label) for label in mnist.y]
    running = studio("mnist", forked=False)
    person = visit(running.address)
    page = person.page
    page.wait_for_selector("#progress.on")
    assert page.locator("#question .placeholder").is_visible()
    page.wait_for_selector(".map-sheet canvas[style]", timeout=600_000)  # fields, long before it is done
    if "Ready" not in page.inner_text("#status"):
        person.shoot("training")
    person.wait_for_question()
    person.shoot("mnist-first-question", [1280])
    rows = answer_calmly(person, truth, range(1, 6))
    before = person.number("decided")

    person.offline = True
    running.kill()
    page.wait_for_selector("#banner:has-text('connection')")
    row = person.row
    person.name(truth[row])
    page.wait_for_selector(".chip.waiting")
    person.shoot("connection-lost", [400, 1280])
    running.start()
    person.wait_for_question(row)
    rows += [row, *answer_calmly(person, truth, range(7, 11))]
    assert len(set(rows)) == 10
    assert person.number("decided") > before
    person.shoot("mnist-ten-answers")

    model = tnesi.load(person.export("model.tnesi", tmp_path))
    assert mnist.test is not None
    predicted = np.array([str(name) for name in model.predict(mnist.test.X.reshape(-1, 28, 28))])
    assert (predicted != np.array([str(name) for name in mnist.test.y])).mean() < 0.08
