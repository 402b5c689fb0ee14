"""Protocols and reference values match the paper."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi import SimpletronClassifier
from tnesi.errors import InvalidParameterError
from tnesi.paper import NeuralSimpletron, OnlineRule
from tnesi.paper.network import build
from tnesi.paper.protocol import TARGETS, Method, paper_values, read_protocol
from tnesi.paper.statistics import Summary, calibration_error
from tnesi.paper.table import wanted_runs


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("solver", ["em", "hebbian"])
def test_all_protocols_can_be_read_and_built(name: str, quick: bool, solver: str) -> None:
    if name in ("label-methods", "one-label") and solver == "hebbian":
        with pytest.raises(ValueError, match="EM only"):
            read_protocol(name, quick=quick, solver="hebbian")
        return
    protocol = read_protocol(name, quick=quick, solver=solver)  # type: ignore[arg-type]
    assert protocol.title
    for method in protocol.methods:
        network = build(protocol, method, 3)
        network.check_parameters()
        assert network.random_state == 3
        if solver == "hebbian":
            assert isinstance(network, NeuralSimpletron)
            assert isinstance(network.rule, OnlineRule)
            truncation = network.truncation
        else:
            assert isinstance(network, SimpletronClassifier)
            assert network.mixture is not None
            truncation = network.mixture.truncation
        assert (truncation is None) == (method.name == "ff+-NeSi")


def test_the_published_parameters() -> None:
    network = build(read_protocol("mnist-table", solver="hebbian"), Method("t-NeSi", "t_nesi"), 0)
    wanted = {
        "n_components": 10_000, "truncation": 15, "row_sum": 900, "threshold": 0.6, "self_labeling": True,
        "recurrent": False,
        "rule": OnlineRule(max_iter=None, batch_size=25, learning_rate=0.2, label_learning_rate=0.2),
    }  # fmt: skip
    assert {name: network.get_params()[name] for name in wanted} == wanted
    nist = build(read_protocol("nist-table", solver="hebbian"), Method("t-NeSi", "t_nesi"), 0)
    assert nist.rule.label_learning_rate == 1.0


def test_runs_of_the_table() -> None:
    protocol = read_protocol("mnist-table", methods=("t-NeSi",))
    runs = wanted_runs(protocol)
    assert len(runs) == len(set(runs)) == 100 + 5 * 10
    assert len(wanted_runs(read_protocol("mnist-table"))) == 2 * (100 + 5 * 10) + 20 + 5 * 2
    seeds = [seed for *_, seed in runs]
    assert seeds == sorted(seeds)  # a mixture is learned once and used for all of its runs
    assert set(seeds) == set(range(10))
    shared = read_protocol("mnist-table", methods=("t-NeSi",), seeds=(4, 7), runs=6)
    assert {seed for *_, seed in wanted_runs(shared)} == {4, 7}


def test_more_runs_keep_those_there_are() -> None:
    few, more = (set(wanted_runs(read_protocol("mnist-table", runs=runs))) for runs in (2, 3))
    assert few < more


def test_runs_of_the_labeling_methods() -> None:
    protocol = read_protocol("label-methods")
    runs = wanted_runs(protocol)
    n_settings = sum(len(protocol.labels_of(task)) for task in protocol.tasks)
    assert len(runs) == len(set(runs)) == n_settings * len(protocol.methods) * 20
    assert {(task, labels) for task, _, labels, *_ in runs if task == "noise"} == {("noise", 10)}
    of_method = {m.name: {key[:1] + key[2:] for key in runs if key[1] == m.name} for m in protocol.methods}
    assert all(same == of_method["self-labeling"] for same in of_method.values())
    assert {seed for *_, seed in runs} == {0, 1}
    few = read_protocol("label-methods", tasks=("digits",), seeds=(5,), methods=("auto",), runs=3)
    assert {(task, method, seed) for task, method, *_, seed in wanted_runs(few)} == {("digits", "auto", 5)}


def test_paper_values() -> None:
    rows = {(r["method"], r["labels_per_class"]): r for r in paper_values("mnist-table")}
    assert len(rows) == 12
    assert rows["t-NeSi", "1"]["mean"] == "7.22"
    for row in rows.values():
        total = 60_000 if row["labels_per_class"] == "all" else 10 * int(row["labels_per_class"])
        assert int(row["n_labels"]) == total
        if row["runs"]:  # the paper's standard errors are its standard deviations over the root of the runs
            assert float(row["std"]) / math.sqrt(int(row["runs"])) == pytest.approx(float(row["sem"]), abs=0.006)
    assert len(paper_values("nist-table")) == 26
    assert paper_values("") == []


def test_the_prior_is_ours() -> None:
    network = {m.name: build(read_protocol("mnist-table"), m, 0) for m in read_protocol("mnist-table").methods}
    assert {name: n.mixture.prior_strength for name, n in network.items()} == {
        "t-NeSi": 0,
        "t-NeSi+prior": 1,
        "ff+-NeSi": 0,
    }
    published = read_protocol("mnist-table", solver="hebbian").methods
    assert [m.name for m in published] == ["t-NeSi", "ff+-NeSi"]


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="choose one of mnist-table"):
        read_protocol("mnist-tabel")
    with pytest.raises(ValueError, match="no network 'x'"):
        read_protocol("mnist-table", methods=("x",))
    with pytest.raises(ValueError, match=r"no task 'x': choose one of digits, letters"):
        read_protocol("nist-table", tasks=("x",))


def test_summary() -> None:
    ours, theirs = Summary.of([3.0, 4.0, 5.0]), Summary(3.5, 0.2, 0.6, 10)
    assert ours.sem == pytest.approx(1 / math.sqrt(3))
    assert ours.distance(theirs) == pytest.approx(0.5 / math.hypot(ours.sem, 0.2))
    assert math.isnan(Summary.of([3.0]).distance(theirs))


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60), st.integers(1, 20))
def test_calibration_error(rows: list[tuple[float, bool]], n_bins: int) -> None:
    bins = [[(p, right) for p, right in rows if min(int(p * n_bins), n_bins - 1) == b] for b in range(n_bins)]
    gaps = [abs(sum(p for p, _ in of) / len(of) - sum(r for _, r in of) / len(of)) * len(of) for of in bins if of]
    assert calibration_error(*zip(*rows, strict=True), n_bins) == pytest.approx(sum(gaps) / len(rows))


def test_em_takes_over_the_labeling_of_the_preset_and_refuses_recurrent_ones() -> None:
    protocol = read_protocol("mnist-table")
    network = build(protocol, Method("ff-NeSi", "ff_nesi"), 0)
    assert isinstance(network, SimpletronClassifier)
    assert network.labeling == "supervised"
    with pytest.raises(InvalidParameterError, match="recurrent"):
        build(protocol, Method("r-NeSi", "r_nesi"), 0)
