"""Runs of the published rule that share a mixture learn as if each were alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi.data import load_named
from tnesi.paper import Protocol, RunFolder, read_protocol, reproduce
from tnesi.paper.network import build, drawn_labels
from tnesi.paper.protocol import Method, Solver
from tnesi.paper.side_by_side import PASSES_FILE
from tnesi.paper.statistics import Summary
from tnesi.paper.summary import summarize
from tnesi.paper.table import label_seed
from tnesi.system.progress import Progress

SMALL = {"n_components": 50, "row_sum": 180, "max_iter": 9, "learning_rate": 1.0, "label_learning_rate": 1.0}


def small(solver: Solver = "hebbian", **changes: Any) -> Protocol:
    protocol = read_protocol("digits-table", solver=solver, quick=True, runs=2)
    changes = {"labels_per_class": (1, 5, "all"), "one_label_iterations": 12, "one_label_factor": 2, **changes}
    return replace(protocol, parameters=SMALL, **changes)


class StopAtPass(Progress):
    """Presses Ctrl-C after a pass of the second mixture."""

    def __init__(self, text: str) -> None:
        self.text = text

    def tell(self, text: str) -> None:
        if self.text in text:
            raise KeyboardInterrupt


@pytest.mark.parametrize("solver", ["hebbian", "hebbian-partial"])
def test_each_run_is_that_of_a_network_alone(tmp_path: Path, solver: Solver) -> None:
    protocol = small(solver, label_sets=2)
    folder = reproduce(protocol, tmp_path)
    data = load_named("digits")
    assert data.test is not None
    assert len(folder.records) == 2 * (2 + 2 + 1)
    for record in folder.records:
        labels, run, seed = (record[name] for name in ("labels_per_class", "run", "seed"))
        network = build(protocol, protocol.methods[0], seed)
        passes = 12 if labels == 1 else 9
        assert record["iterations"] == passes
        network.set_params(rule=replace(network.rule, max_iter=passes))
        network.fit(data.X, drawn_labels(data.y, labels, label_seed(seed, run)))
        confusion = np.zeros((10, 10), int)
        np.add.at(confusion, (data.test.y, network.predict(data.test.X)), 1)
        np.testing.assert_array_equal(confusion, record["confusion"])
        assert record["n_labels"] == (len(data.y) if labels == "all" else 10 * labels)


def test_an_interrupted_mixture_resumes_where_it_stopped(tmp_path: Path) -> None:
    """The records are those of an uninterrupted reproduction, and no pass is made twice."""
    protocol = small("hebbian-partial")
    whole = reproduce(protocol, tmp_path / "whole").records
    with pytest.raises(KeyboardInterrupt):
        reproduce(protocol, tmp_path / "parts", StopAtPass("mixture 1: pass 10,"))
    before = RunFolder(tmp_path / "parts").records
    assert {record["iterations"] for record in before if record["seed"] == 1} == {9}
    assert list((tmp_path / "parts").glob("unfinished-*.npz"))
    parts = reproduce(protocol, tmp_path / "parts").records
    measured = ("seconds", "processor_seconds", "free_energies", "side_by_side")
    for one, other in zip(parts, whole, strict=True):
        assert {k: v for k, v in one.items() if k not in measured} == {
            k: v for k, v in other.items() if k not in measured
        }
    assert not list((tmp_path / "parts").glob("unfinished-*"))
    seen = [json.loads(line) for line in (tmp_path / "parts" / PASSES_FILE).read_text().splitlines()]
    assert [entry["passes"] for entry in seen if entry["seed"] == 1] == [1, 2, 5, 9, 12]


def test_results_on_the_way_are_logged(tmp_path: Path) -> None:
    folder = reproduce(small(), tmp_path)
    last = [json.loads(line) for line in (tmp_path / PASSES_FILE).read_text().splitlines()][-1]
    record = next(r for r in folder.records if r["seed"] == 1 and r["labels_per_class"] == 1)
    assert last["passes"] == record["iterations"] == 12
    assert [1, record["run"], record["error"]] in last["errors"]
    assert last["held_out_free_energy"] == record["held_out_free_energy"]
    assert record["free_energy"] > last["free_energy"] - 5


def test_runs_have_mixtures_of_their_own() -> None:
    protocol = read_protocol("mnist-table", solver="hebbian")
    assert [protocol.seed_of(run, 10) for run in range(3)] == [0, 1, 2]
    assert [protocol.seed_of(run, 1) for run in (0, 9, 10, 99)] == [0, 0, 1, 9]
    shared = read_protocol("mnist-table", solver="hebbian", label_sets=4)
    assert [shared.seed_of(run, 10) for run in (0, 3, 4)] == [0, 0, 1]
    assert [shared.seed_of(run) for run in (0, 1)] == [0, 1]


def test_passes_of_the_table() -> None:
    protocol = read_protocol("mnist-table", solver="hebbian")
    assert (protocol.passes(1), protocol.passes(10), protocol.passes("all")) == (2000, 500, 500)
    fewer = read_protocol("mnist-table", solver="hebbian", passes=500)
    assert (fewer.passes(1), fewer.passes(10)) == (500, 500)
    assert fewer.folder_name() == "mnist-table-hebbian-500-passes"
    assert read_protocol("mnist-table", solver="hebbian", passes=2000).folder_name() == "mnist-table-hebbian"
    nist = read_protocol("nist-table", solver="hebbian")
    assert (nist.passes(1), nist.passes(10)) == (500, 500)
    weights = read_protocol("mnist-weights", solver="hebbian")
    assert weights.passes(1) == 2000
    rule = build(read_protocol("nist-weights", solver="hebbian"), Method("t-NeSi", "t_nesi"), 0).rule
    assert rule.label_learning_rate == 1.0


def test_partial_e_steps_need_truncation() -> None:
    names = [method.name for method in read_protocol("mnist-table", solver="hebbian-partial").methods]
    assert names == ["t-NeSi"]


def test_the_standard_error_is_that_of_the_mixtures(tmp_path: Path) -> None:
    folder = reproduce(small(), tmp_path)
    row = next(row for row in summarize(folder) if row["labels_per_class"] == 1)
    errors = [[r["error"] for r in folder.records if (r["labels_per_class"], r["seed"]) == (1, m)] for m in (0, 1)]
    means = [np.mean(own) for own in errors]
    assert (row["ours"]["runs"], row["mixtures"]) == (4, 2)
    assert row["ours"]["sem"] == pytest.approx(np.std(means, ddof=1) / 2**0.5)
    assert np.isnan(Summary.of([1.0, 2.0], mixtures=[3, 3]).sem)
