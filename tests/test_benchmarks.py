"""The peers benchmark: its methods are those of the libraries, it resumes, and its verdicts follow from the errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import LabelSpreading

from tnesi.data import few_labels

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import benchmarks from their folder, in which they stand side by side."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


def imported(name: str) -> ModuleType:
    return __import__(name)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_naive_bayes_em_without_unlabeled_rows_is_that_of_scikit_learn(storage: Any) -> None:
    digits = load_digits()
    X = storage(digits.data)
    ours = imported("naive_bayes").naive_bayes_em(X, digits.target)
    theirs = MultinomialNB().fit(X, digits.target)
    np.testing.assert_allclose(ours.log_shares, theirs.feature_log_prob_, rtol=1e-12)
    np.testing.assert_allclose(ours.log_prior, theirs.class_log_prior_, rtol=1e-12)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_the_page_on_gpus_has_the_calculated_table() -> None:
    page = Path(__file__).parents[1] / "docs" / "gpu.md"
    assert imported("gpu_roofline").table() in page.read_text(encoding="utf-8")


def test_naive_bayes_em_learns_from_unlabeled_rows() -> None:
    rng = np.random.default_rng(0)
    rates, truth = rng.gamma(1.0, 0.2, (3, 200)), rng.integers(3, size=600)
    X = rng.poisson(rates[truth])
    y = few_labels(truth, 1, rng)
    model = imported("naive_bayes").naive_bayes_em(X, y)
    alone = MultinomialNB().fit(X[y >= 0], y[y >= 0])
    assert np.mean(model.predict(X) != truth) < 0.5 * np.mean(alone.predict(X) != truth)


@pytest.mark.parametrize("transductive", [False, True])
def test_label_spreading_with_known_neighbors_is_that_of_scikit_learn(transductive: bool, tmp_path: Path) -> None:
    methods = imported("peers_methods")
    digits = load_digits()
    rows = digits.data + np.random.default_rng(1).uniform(0, 0.01, digits.data.shape)  # no equal distances
    X, y, T = rows[:900], digits.target[:900], rows[900:1300]
    few = few_labels(y, 3, np.random.default_rng(0))
    task = methods.Task(X, None if transductive else T, few, np.bincount(y) / 900, 0, tmp_path / "neighbors.npz")
    method = methods.METHODS["label spreading"]
    found = method.learn(task, method.share(task).value).labels
    model = LabelSpreading(kernel="knn", n_neighbors=7).fit(X, few)
    np.testing.assert_array_equal(found, model.transduction_[few < 0] if transductive else model.predict(T))


def test_features_are_the_same_from_the_cache(tmp_path: Path) -> None:
    data = imported("peers_data")
    first, again = (data.load("digits-8x8", "encoded", tmp_path) for _ in range(2))
    computed = imported("peers_features").compute("digits-8x8", "encoded")
    for one in (first, again):
        for values, expected in zip(one, computed, strict=True):
            np.testing.assert_array_equal(values, expected)
    assert len(list(tmp_path.iterdir())) == 1


def test_sparse_features_survive_the_cache() -> None:
    data = imported("peers_data")
    rows = sparse.random_array((7, 5), density=0.4, format="csr", rng=0)
    split = data.Split(rows, np.arange(7), rows[:3], np.arange(3))
    found = data._from_arrays(data._as_arrays(split))
    np.testing.assert_array_equal(found.X.toarray(), rows.toarray())
    np.testing.assert_array_equal(found.X_test.toarray(), rows[:3].toarray())


def test_the_run_resumes_and_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = imported("peers")
    results = tmp_path / "results.jsonl"
    common = ["peers.py", "--folder", str(tmp_path), "--results", str(results), "--data", "iris", "--draws", "2"]
    chosen = ["--features", "encoded", "standardized", "--labels", "1", "100", "--methods", "tnesi", "k-NN"]

    def call(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", [*common, *words])
        peers.main()

    call(*chosen)
    lines = results.read_text().splitlines()
    assert len(lines) == 2 * 2 * 2, "100 labels per class would leave nothing to predict"
    results.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])
    call(*chosen)
    records = peers.read_records(results)
    assert len({peers.key_of(record) for record in records}) == len(records) == 8
    measures = ("error", "ece", "labeling")
    repeated = {peers.key_of(r): [r.get(name) for name in measures] for r in records}
    before = [peers.json.loads(line) for line in lines]
    assert repeated == {peers.key_of(r): [r.get(name) for name in measures] for r in before}
    assert {r["skipped"] for r in records if "skipped" in r} == {"needs non-negative numbers"}

    page = tmp_path / "page.md"
    page.write_text(f"before\n{peers.MARKERS[0]}\noutdated\n{peers.MARKERS[1]}\nafter\n")
    call("--table", str(page), "--json", str(tmp_path / "means.json"))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "outdated" not in text
    assert "1 cell on encoded features" in text
    means = peers.json.loads((tmp_path / "means.json").read_text())
    tnesi = [r["error"] for r in records if r["method"] == "tnesi" and "error" in r]
    of_cell = next(cell for cell in means if cell["features"] == "encoded")
    assert of_cell["methods"]["tnesi"]["error"] == pytest.approx(np.mean(tnesi), abs=1e-3)

    call(*chosen, "--again", "tnesi")
    records = peers.read_records(results)
    assert [r["method"] for r in records] == ["k-NN"] * 4 + ["tnesi"] * 4
    assert len({r["digest"] for r in records}) == 2

    other = [{**r, "digest": "of other rows"} if r["features"] == "encoded" else r for r in records]
    results.write_text("".join(peers.json.dumps(r) + "\n" for r in other))
    call(*chosen)
    again = {peers.key_of(r): (r["digest"], r.get("error")) for r in peers.read_records(results)}
    assert again == {peers.key_of(r): (r["digest"], r.get("error")) for r in records}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("ours", "theirs", "too_far"),
    [
        ([5.0, 5.0, 5.0], [4.5, 4.5, 4.5], False),
        ([5.0, 5.0, 5.0], [3.5, 3.5, 3.5], True),
        ([5.0, 15.0, 1.0], [4.0, 9.0, 4.0], False),  # 1.3 points, with a standard error of 2.6
        ([4.0], [2.0], True),
    ],
)
def test_a_gap_counts_if_it_exceeds_a_point_and_a_standard_error(
    ours: list[float], theirs: list[float], too_far: bool
) -> None:
    cells = imported("peers_cells")
    cell = {
        name: cells.Outcome(False, False, dict(enumerate(errors)))
        for name, errors in (("tnesi", ours), ("k-NN", theirs))
    }
    assert cells.gap_to_best(cell).too_far is too_far


def test_peers_that_know_more_can_be_left_out() -> None:
    cells = imported("peers_cells")
    cell = {
        "tnesi": cells.Outcome(False, False, {0: 5.0}),
        "k-NN": cells.Outcome(False, False, {0: 9.0}),
        "PoissonMBO": cells.Outcome(False, True, {0: 1.0}),
    }
    assert cells.gap_to_best(cell).peer == "PoissonMBO"
    assert cells.gap_to_best(cell, fair=True).peer == "k-NN"


def test_validation_parts_are_training_rows() -> None:
    data = imported("peers_data")
    X = np.arange(70)[:, None]
    whole = data.Split(X, np.arange(70), X[:5] + 1000, np.arange(5))
    part = data.validation(whole)
    assert part.X_test.shape == (10, 1)
    assert sorted([*part.X[:, 0], *part.X_test[:, 0]]) == list(range(70))
    np.testing.assert_array_equal(part.X[:, 0], part.y)
    np.testing.assert_array_equal(part.X_test[:, 0], part.y_test)


def test_the_online_benchmark_measures_all_parts() -> None:
    from tnesi.data import load_named

    found = imported("online").measure(load_named("digits"), 180, 120, 400, 5, 1)
    assert found["exact"] > 0
    assert [len(found[part]) for part in ("partial", "exact again", "with layers")] == [2, 1, 1]
    assert list(found["update"]) == [1, 2, 5, 15, 50, "all"]
