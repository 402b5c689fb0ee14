from __future__ import annotations

from math import nan
from typing import Any

import pytest

from tnesi.report.words import summary_of_likelihood, summary_of_table, verdict


def row(n_labels: int, ours: float, paper: float | None, distance: float) -> dict[str, Any]:
    known = None if paper is None else {"mean": paper}
    return {
        "task": "t", "method": "m", "n_labels": n_labels, "ours": {"mean": ours}, "paper": known, "distance": distance,
        "comparable": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (row(10, 3, None, nan), ""),
        (row(10, 3, 4, nan), "▼ lower"),
        (row(10, 5, 4, nan), "▲ higher"),
        (row(10, 3.9, 4, -1.9), "≈ equal"),
        (row(10, 3, 4, -2.1), "▼ better"),
        (row(10, 5, 4, 2.1), "▲ worse"),
    ],
)
def test_verdict(given: dict[str, Any], said: str) -> None:
    assert verdict(given) == said


TASKS = {"tasks": [{"name": "t", "title": "Task"}]}


def test_summary_of_a_table() -> None:
    rows = [row(10, 3, 4, -3), row(1000, 3, 3, 0), row(60000, 3, 2, 1)]
    said = summary_of_table(TASKS, [{}] * 7, rows)
    assert said == (
        "7 runs of m. Task, m: ours is at or below the paper's error with 10 and 1,000 labels (clearly: 10), and above "
        "it with 60,000 labels."
    )
    assert "paper" not in summary_of_table(TASKS, [{}], [{**found, "comparable": False} for found in rows])
    assert "for every number of labels (10)" in summary_of_table(TASKS, [{}], rows[:1])
    assert summary_of_table(TASKS, [{}], [row(1, 3, None, nan)]) == (
        "1 run of m. Task, m: a mean test error of 3.00 % with 1 label."
    )


def test_summary_of_a_likelihood() -> None:
    def end(truncation: int | str, likelihood: float, error: float) -> dict[str, Any]:
        values = {"free_energy": -9.0, "log_likelihood": likelihood, "error": error}
        ends = {key: {"mean": value, "runs": 3} for key, value in values.items()}
        return {"truncation": truncation, "iterations": 20} | ends

    said = summary_of_likelihood([end(1, -9.0, 5), end(15, -8.0, 4), end("all", -8.005, 3)])
    assert "3 degrees of truncation, 3 seeds each." in said
    assert "C' = 15 has the highest log-likelihood: -8.000 nats per row. C' = all is within 0.01 nats of it." in said
    assert "C' = all has the lowest test error, 3.00 %." in said
