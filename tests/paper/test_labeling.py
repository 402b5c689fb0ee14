"""Labeling methods are compared on the same mixtures and the same labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels, load_named
from tnesi.paper import Protocol, RunFolder, read_protocol, reproduce
from tnesi.paper.protocol import Task
from tnesi.paper.summary import behind_best, by_setting, summarize
from tnesi.paper.table import label_seed
from tnesi.report.words import left_out, progress

DIGITS = Task("digits", "Digits", ("digits",))
ODD_EVEN = Task("odd-even", "Odd and even", ("digits",), variant="odd-even")
SMALL: dict[str, Any] = {"n_components": 60, "row_sum": 250}


def protocol(*tasks: Task, **changes: Any) -> Protocol:
    usual: dict[str, Any] = {"parameters": SMALL, "labels_per_class": (2, 1000), "seeds": (0, 1), "runs": 4}
    return replace(read_protocol("label-methods"), tasks=tasks or (DIGITS,), **(usual | changes))


def without_times(folder: RunFolder) -> list[dict[str, Any]]:
    return [{**record, "seconds": None} for record in folder.records]


def test_methods_share_mixtures_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[int] = []
    drawn: dict[str, list[list[Any]]] = {}
    fit, fit_labels = SimpletronClassifier.fit, SimpletronClassifier.fit_labels

    def count(self: SimpletronClassifier, *args: Any) -> SimpletronClassifier:
        learned.append(self.random_state)
        return fit(self, *args)

    def note(self: SimpletronClassifier, y: Any) -> SimpletronClassifier:
        drawn.setdefault(self.labeling, []).append(y.tolist())
        return fit_labels(self, y)

    monkeypatch.setattr(SimpletronClassifier, "fit", count)
    monkeypatch.setattr(SimpletronClassifier, "fit_labels", note)
    folder = reproduce(protocol(DIGITS, ODD_EVEN), tmp_path)
    assert learned == [0, 1]  # both tasks have the same rows
    assert set(drawn) == {"self-labeling", "clusters", "spreading", "auto"}
    assert len(drawn["auto"]) == 2 * 4
    assert all(labels == drawn["auto"] for labels in drawn.values())
    assert len({str(labels) for labels in drawn["auto"]}) == len(drawn["auto"])
    assert {(r["task"], r["n_labels"]) for r in folder.records} == {("digits", 20), ("odd-even", 4)}


def test_records_are_what_the_estimator_does(tmp_path: Path) -> None:
    folder = reproduce(protocol(), tmp_path)
    record = next(r for r in folder.records if (r["method"], r["run"]) == ("spreading", 3))
    data = load_named("digits")
    assert data.test is not None
    seed = label_seed(record["seed"], 3)
    classifier = SimpletronClassifier(PoissonMixture(**SMALL), random_state=record["seed"], labeling="spreading")
    classifier.fit(data.X, data.y)
    classifier.set_params(random_state=seed)
    classifier.fit_labels(few_labels(data.y, 2, np.random.default_rng(seed), unlabeled=None))
    assert record["error"] == pytest.approx(100 * (1 - classifier.score(data.test.X, data.test.y)))
    assert record["confidence"] == pytest.approx(100 * classifier.predict_proba(data.test.X).max(axis=1).mean())
    assert record["chosen"] == "spreading"
    assert all(r["chosen"] != "auto" for r in folder.records)


def test_resuming_adds_nothing(tmp_path: Path) -> None:
    folder = reproduce(protocol(), tmp_path)
    before = without_times(folder)
    assert without_times(reproduce(protocol(), tmp_path)) == before
    records = folder.path / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:5]))
    assert without_times(reproduce(protocol(), tmp_path)) == before


def test_a_class_gives_no_more_labels_than_it_has(tmp_path: Path) -> None:
    folder = reproduce(protocol(), tmp_path)
    assert {record["labels_per_class"] for record in folder.records} == {2}
    assert progress(folder.configuration, folder.records) == (16, 16)


def test_missing_data_are_left_out_until_they_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("TNESI_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    wanted = protocol(DIGITS, Task("other", "Other", ("mnist",)), runs=1)
    folder = reproduce(wanted, tmp_path)
    assert left_out(folder.configuration) == [
        "Other is omitted because its data is not on this machine: tnesi data fetch mnist"
    ]
    assert {record["task"] for record in folder.records} == {"digits"}
    assert progress(folder.configuration, folder.records) == (4, 4)
    folder = reproduce(protocol(Task("other", "Other", ("digits",)), runs=1), tmp_path)
    assert left_out(folder.configuration) == []
    assert [task["name"] for task in folder.configuration["tasks"]] == ["digits", "other"]
    assert progress(folder.configuration, folder.records) == (8, 8)


def test_summary(tmp_path: Path) -> None:
    folder = reproduce(protocol(), tmp_path)
    rows = summarize(folder)
    assert [row["method"] for row in rows] == ["self-labeling", "clusters", "spreading", "auto"]
    errors = {
        m: [r["error"] for r in folder.records if r["method"] == m]
        for m in ("self-labeling", "clusters", "spreading", "auto")
    }
    assert [row["median"] for row in rows] == [pytest.approx(np.median(errors[row["method"]])) for row in rows]
    assert all(sum(row["chosen"].values()) == 4 for row in rows)
    means = {method: np.mean(values) for method, values in errors.items()}
    best = min(means[method] for method in ("self-labeling", "clusters", "spreading"))
    assert behind_best(by_setting(rows)["digits", 2]) == pytest.approx(means["auto"] - best)
    assert behind_best({"auto": rows[-1]}) is None
