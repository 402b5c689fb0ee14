"""Reproductions end to end, on scikit-learn's digits where a small experiment suffices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier, load
from tnesi.data import Data, few_labels, load_named
from tnesi.paper import Protocol, RunFolder, read_protocol, reproduce
from tnesi.paper.protocol import Task
from tnesi.paper.summary import summarize
from tnesi.paper.table import label_seed
from tnesi.system.progress import Progress

DIGITS = (Task("digits", "Digits", ("digits",)),)
SMALL = {"n_components": 60, "row_sum": 250}


class Stop(Progress):
    """Raises KeyboardInterrupt after a number of runs."""

    def __init__(self, after: int) -> None:
        self.left = after

    def advance(self, amount: float = 1) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def table(**changes: Any) -> Protocol:
    protocol = read_protocol("digits-table", quick=True)
    return replace(protocol, parameters=SMALL, labels_per_class=(2, "all"), **changes)


def test_records_are_what_the_estimator_does(tmp_path: Path) -> None:
    folder = reproduce(table(runs=2), tmp_path)
    data = load_named("digits")
    assert data.test is not None
    record = next(r for r in folder.records if (r["labels_per_class"], r["run"]) == (2, 1))
    seed = label_seed(1, 1)
    classifier = SimpletronClassifier(PoissonMixture(**SMALL), random_state=1, labeling="self-labeling").fit(
        data.X, data.y
    )
    classifier.set_params(random_state=seed)
    classifier.fit_labels(few_labels(data.y, 2, np.random.default_rng(seed), unlabeled=None))
    assert record["error"] == pytest.approx(100 * (1 - classifier.score(data.test.X, data.test.y)))
    assert record["n_labels"] == 20
    confusion = np.array(record["confusion"])
    assert confusion.sum() == len(data.test.y)
    assert 100 * (1 - np.trace(confusion) / confusion.sum()) == pytest.approx(record["error"])


def test_committees(tmp_path: Path) -> None:
    """Test rows are activated by all mixtures."""
    told: list[str] = []

    class Hears(Progress):
        def tell(self, text: str) -> None:
            told.append(text)

    folder = reproduce(replace(table(runs=1), parameters={**SMALL, "n_mixtures": 2}), tmp_path, progress=Hears())
    data = load_named("digits")
    assert data.test is not None
    record = next(r for r in folder.records if r["labels_per_class"] == "all")
    mixture = PoissonMixture(**SMALL)
    classifier = SimpletronClassifier(mixture, labeling="supervised", n_mixtures=2, random_state=record["seed"])
    classifier.fit(data.X, data.y)
    assert record["error"] == pytest.approx(100 * (1 - classifier.score(data.test.X, data.test.y)))
    assert record["free_energy"] == pytest.approx(np.mean([m.lower_bound_ for m in classifier.mixtures_]))
    assert any("mixture 2 of 2, iteration 1" in text for text in told)


def test_runs_differ_and_summaries_count_them(tmp_path: Path) -> None:
    folder = reproduce(table(runs=3), tmp_path)
    rows = summarize(folder)
    assert [(row["labels_per_class"], row["ours"]["runs"]) for row in rows] == [(2, 3), ("all", 3)]
    errors = [r["error"] for r in folder.records if r["labels_per_class"] == 2]
    assert len(set(errors)) > 1
    assert rows[0]["ours"]["mean"] == pytest.approx(np.mean(errors))
    assert rows[0]["ours"]["sem"] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3))


def test_an_interrupted_reproduction_resumes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        reproduce(table(runs=2), tmp_path / "a", Stop(after=3))
    assert len(RunFolder(tmp_path / "a").records) == 3
    reproduce(table(runs=2), tmp_path / "a")
    reproduce(table(runs=2), tmp_path / "b")
    a, b = ([{**r, "seconds": None} for r in RunFolder(tmp_path / name).records] for name in "ab")
    assert a == b


def test_slow_mixtures_are_kept_until_their_runs_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tnesi.paper.network._KEEP_FROM", 0.0)
    with pytest.raises(KeyboardInterrupt):
        reproduce(table(runs=1), tmp_path, Stop(after=1))
    assert len(list(tmp_path.glob("unfinished-*.tnesi"))) == 1
    learned: list[int] = []
    fit = SimpletronClassifier.fit
    monkeypatch.setattr(SimpletronClassifier, "fit", lambda self, *a: learned.append(1) or fit(self, *a))
    reproduce(table(runs=1), tmp_path)
    assert not learned
    assert not list(tmp_path.glob("unfinished-*"))
    monkeypatch.undo()
    reproduce(table(runs=1), tmp_path / "whole")
    errors = [[r["error"] for r in RunFolder(place).records] for place in (tmp_path, tmp_path / "whole")]
    assert errors[0] == errors[1]


def test_other_settings_need_another_folder(tmp_path: Path) -> None:
    reproduce(table(runs=1), tmp_path)
    with pytest.raises(ValueError, match="other settings"):
        reproduce(replace(table(runs=1), parameters={**SMALL, "row_sum": 300}), tmp_path)


def test_the_comparison_takes_over_the_runs_of_the_table(tmp_path: Path) -> None:
    first = replace(table(runs=2), name="mnist-table")
    reproduce(first, tmp_path / first.folder_name())
    second = replace(first, name="mnist-comparison", same_runs_as="mnist-table", labels_per_class=(2,))
    made: list[float] = []

    class Count(Progress):
        def begin(self, total: float) -> None:
            made.append(total)

    folder = reproduce(second, tmp_path / "mnist-comparison", Count())
    assert made == [0]
    assert len(folder.records) == 2
    other = replace(second, parameters={**SMALL, "row_sum": 300})
    reproduce(other, tmp_path / "other" / "mnist-comparison", Count())
    assert made == [0, 2]


def test_likelihood_curves(tmp_path: Path) -> None:
    protocol = replace(
        read_protocol("mnist-likelihood", runs=2),
        tasks=DIGITS, parameters=SMALL, truncations=(1, 6, "all"), iterations=4, evaluate_at=(0, 4), sample_rows=300,
    )  # fmt: skip
    folder = reproduce(protocol, tmp_path)
    assert len(folder.records) == 6
    for record in folder.records:
        curve = record["curve"]
        assert [point["iteration"] for point in curve] == [0, 1, 2, 3, 4]
        assert np.all(np.diff([point["free_energy"] for point in curve]) > -1e-3)
        assert ["log_likelihood" in point for point in curve] == [True, False, False, False, True]
    ends = {row["truncation"]: row for row in summarize(folder)}
    assert ends[1]["free_energy"]["mean"] < ends[1]["log_likelihood"]["mean"] + 1
    assert all(row["error"]["mean"] < 40 for row in ends.values())


def test_weights_are_kept_as_models(tmp_path: Path) -> None:
    protocol = replace(read_protocol("mnist-weights"), tasks=DIGITS, parameters=SMALL)
    folder = reproduce(protocol, tmp_path)
    model = load(tmp_path / folder.records[0]["model"])
    assert isinstance(model, SimpletronClassifier)
    assert model.mixture_.n_components_ == 60


@pytest.mark.slow
def test_nist_letters_by_emnist(emnist_letters: Data, tmp_path: Path) -> None:
    protocol = read_protocol("nist-table", quick=True, runs=1)
    protocol = replace(protocol, tasks=protocol.tasks[1:], labels_per_class=(10, "all"), train_rows=6000)
    folder = reproduce(protocol, tmp_path)
    assert folder.configuration["notes"][0].startswith("EMNIST byclass, not the paper's split")
    rows = summarize(folder)
    assert len(folder.records[0]["classes"]) == 52
    assert rows[0]["n_labels"] == 520
    assert rows[1]["ours"]["mean"] < rows[0]["ours"]["mean"] < 80
    assert rows[0]["paper"]["mean"] == 45.62


@pytest.mark.slow
def test_the_published_rule(tmp_path: Path) -> None:
    faster = {"max_iter": 30, "learning_rate": 1.0, "label_learning_rate": 1.0}
    protocol = read_protocol("digits-table", solver="hebbian", quick=True, runs=1)
    protocol = replace(protocol, labels_per_class=(20, "all"), parameters={**SMALL, **faster})
    errors = [record["error"] for record in reproduce(protocol, tmp_path).records]
    assert all(error < 15 for error in errors)
