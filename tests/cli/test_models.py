"""fit, predict, evaluate, info, show, sample."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier, load
from tnesi.data import few_labels, load_named

PNG = b"\x89PNG"


def test_fit_says_what_it_learned(run: Callable[..., Any], tmp_path: Path) -> None:
    said = run(
        "fit", "digits", "--encoder", "none", "--labels-per-class", 5, "--seed", 3, "-o", tmp_path / "m.tnesi"
    ).stdout
    for words in ("1,397 rows of 64 features", "Learned 233 fields", "10 classes", "from 50 labels", "Test error"):
        assert words in said


def test_fit_is_the_estimator_with_the_same_seed(run_json: Callable[..., Any], tmp_path: Path) -> None:
    told = run_json(
        "fit",
        "digits",
        "--encoder",
        "none",
        "--labels-per-class",
        3,
        "--seed",
        5,
        "--fields",
        100,
        "-o",
        tmp_path / "m.tnesi",
    )
    data = load_named("digits")
    y = few_labels(data.y, 3, np.random.default_rng(5), unlabeled=None)
    same = SimpletronClassifier(PoissonMixture(100), random_state=5).fit(data.X, y)
    assert data.test is not None
    assert np.array_equal(load(tmp_path / "m.tnesi").predict_proba(data.test.X), same.predict_proba(data.test.X))
    assert told["test"]["error"] == pytest.approx(100 * (1 - same.score(data.test.X, data.test.y)))
    assert told["labels"] == 30
    assert told["fields"] == 100


@pytest.mark.slow
def test_fit_on_a_cluster(run_json: Callable[..., Any], tmp_path: Path) -> None:
    from distributed import LocalCluster

    words = ("fit", "digits", "--encoder", "none", "--labels-per-class", 3, "--fields", 60, "-o")
    local = run_json(*words, tmp_path / "local.tnesi")
    with LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as cluster:
        far = run_json(*words, tmp_path / "far.tnesi", "--dask", cluster.scheduler_address)
    assert (far["test"], far["free_energy"]) == (local["test"], local["free_energy"])
    one, other = (load(tmp_path / f"{name}.tnesi") for name in ("local", "far"))
    np.testing.assert_array_equal(one.mixture_.means_, other.mixture_.means_)


@pytest.mark.slow
def test_a_committee(run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path) -> None:
    place = tmp_path / "m.tnesi"
    words = (
        "fit",
        "digits",
        "--encoder",
        "none",
        "--labels-per-class",
        3,
        "--fields",
        60,
        "--mixtures",
        3,
        "-o",
        place,
    )
    assert "Learned 3 mixtures of 60 fields" in run(*words).stdout
    told = run_json(*words)
    assert (told["mixtures"], told["fields"]) == (3, 180)
    assert 0 < told["seconds_mixtures"] < told["seconds_learning"]
    data = load_named("digits")
    y = few_labels(data.y, 3, np.random.default_rng(0), unlabeled=None)
    same = SimpletronClassifier(PoissonMixture(60), n_mixtures=3, random_state=0).fit(data.X, y)
    assert data.test is not None
    assert told["test"]["error"] == pytest.approx(100 * (1 - same.score(data.test.X, data.test.y)))
    learned = run_json("info", place)["learned"]
    assert (learned["mixtures"], learned["fields"], learned["iterations"]) == (3, 180, same.n_iter_)
    assert "all 3 mixtures" in run("show", place, "-o", tmp_path / "f.png").stdout
    assert "the first of 3 mixtures" in run("sample", place, "-o", tmp_path / "s.csv").stdout


@pytest.mark.slow
def test_labeling(run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path) -> None:
    place = tmp_path / "m.tnesi"
    words = ("fit", "digits", "--encoder", "none", "--labels-per-class", 1, "--fields", 100, "-o", place)
    for method, said in (
        ("clusters", "The labels name clusters"),
        ("spreading", "the class of similar rows"),
        ("self-labeling", "were labeled with it"),
        ("supervised", "from labeled rows only"),
    ):
        assert said in run(*words, "--labeling", method).stdout
        assert run_json("info", place)["learned"]["labeling"] == method
        shown = run("show", place, "-o", tmp_path / "f.png", "--fields", 9).stdout
        assert said in shown
    told = run_json(*words)
    clf = load(place)
    assert told["labeling"] == clf.labeling_ == run_json("info", place)["learned"]["labeling"]
    assert told["label_confidence"] == pytest.approx(clf.label_confidence_.tolist())
    assert told["unknown_share"] == 0
    assert run_json("show", place, "-o", tmp_path / "f.png")["labeling"] == clf.labeling_


def test_classes_that_may_be_confused(run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path) -> None:
    """Two classes with labels among the same rows: with three of each, all of 40 seeds name these two."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(2), 90)
    X = rng.poisson(np.kron(np.eye(2), np.full(4, 20.0))[kinds] + 1)
    y = np.full(180, "")
    y[[0, 1, 2, 3, 4, 5, 90]] = [*"ababab", "c"]
    np.savez(tmp_path / "d.npz", X=X, y=y)
    words = (
        "fit",
        tmp_path / "d.npz",
        "--encoder",
        "none",
        "--labeling",
        "spreading",
        "--seed",
        1,
        "-o",
        tmp_path / "m.tnesi",
    )
    (doubt,) = run_json(*words)["doubtful"]
    assert {doubt["name"], doubt["rival"]} == {"a", "b"}
    assert doubt["confidence"] < 0.8
    assert "may be swapped" in run(*words).stdout


@pytest.mark.slow
def test_unknown_classes(run: Callable[..., Any], run_json: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    X, y = digits
    names = np.array([*"abcdefg", "", "", ""])
    np.savez(tmp_path / "d.npz", X=X, y=names[np.where(np.arange(len(y)) < 400, y, 9)])
    place = tmp_path / "m.tnesi"
    words = ("fit", tmp_path / "d.npz", "--encoder", "none", "--unknown-classes", 3, "--fields", 150, "-o", place)
    assert "% of the rows belong to unknown classes" in run(*words).stdout
    told = run_json(*words)
    assert told["classes"] == [*"abcdefg"]
    assert told["unknown_share"] == pytest.approx(0.3, abs=0.28)  # over 20 seeds 0.22 +- 0.04
    assert told["labeling"] == "clusters"
    assert run_json("info", place)["unknown"] is True
    assert "unknown rows get" in run("info", place).stdout
    said = run("predict", place, tmp_path / "d.npz", "-o", tmp_path / "p.csv").stdout
    assert "unknown" in said
    with (tmp_path / "p.csv").open(newline="") as file:
        found = [row["label"] for row in csv.DictReader(file)]
    assert found == load(place).predict(X).tolist()
    np.savez(tmp_path / "t.npz", X=X, y=np.array([*"abcdefghij"])[y])
    told = run_json("evaluate", place, tmp_path / "t.npz")
    assert told["error"] == pytest.approx(100 * np.mean(np.array(found) != names[y]))
    assert told["error"] < 30  # over 20 seeds 11.7 +- 3.1
    assert np.shape(told["confusion"]) == (8, 8)
    run("show", place, "-o", tmp_path / "f.png")


def test_unknown_classes_without_labels(run: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", digits[0])
    said = run("fit", tmp_path / "x.npy", "--unknown-classes", 2, "-o", tmp_path / "m.tnesi", code=1).stderr
    assert "--unknown-classes needs labels: pass --labels" in said
    np.savez(tmp_path / "d.npz", X=digits[0], y=np.full(len(digits[0]), -1))
    assert (
        "y has no labels"
        in run("fit", tmp_path / "d.npz", "--encoder", "none", "-o", tmp_path / "m.tnesi", code=1).stderr
    )


def test_committees_that_are_refused(run: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", digits[0])
    said = run("fit", tmp_path / "x.npy", "--mixtures", 2, "-o", tmp_path / "m.tnesi", code=1).stderr
    assert "--mixtures needs labels: pass --labels" in said
    run("fit", "digits", "--encoder", "none", "--mixtures", 0, "-o", tmp_path / "m.tnesi", code=2)


def test_without_labels_only_fields_are_learned(run: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", digits[0])
    said = run("fit", tmp_path / "x.npy", "-o", tmp_path / "m.tnesi", "--fields", 50).stdout
    assert "No labels" in said
    assert isinstance(load(tmp_path / "m.tnesi"), PoissonMixture)
    refused = run("predict", tmp_path / "m.tnesi", tmp_path / "x.npy", "-o", tmp_path / "p.csv", code=1).stderr
    assert "learned without labels" in refused
    run("show", tmp_path / "m.tnesi", "-o", tmp_path / "f.png")


def test_predictions_are_those_of_the_estimator(
    run: Callable[..., Any], model: Path, digits: Any, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", digits[0])
    said = run("predict", model, tmp_path / "x.npy", "-o", tmp_path / "p.csv").stdout
    assert "1,797 rows predicted" in said
    with (tmp_path / "p.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    t = load(model).predict_proba(digits[0])
    assert [int(row["row"]) for row in found] == list(range(1797))
    assert [int(row["label"]) for row in found] == t.argmax(axis=1).tolist()
    ordered = np.sort(t, axis=1)
    assert np.allclose([float(row["probability"]) for row in found], ordered[:, -1], atol=1e-6)
    assert np.allclose([float(row["margin"]) for row in found], ordered[:, -1] - ordered[:, -2], atol=1e-6)


def test_doubtful_predictions(
    run: Callable[..., Any], run_json: Callable[..., Any], model: Path, tmp_path: Path
) -> None:
    """Doubtful rows are counted, sorted first or selected on request; their lines stay the same."""

    def lines(*words: Any) -> list[str]:
        found: list[str] = run("predict", model, "digits", "-o", "-", "-q", *words).stdout.splitlines()
        assert found[0] == "row,label,probability,margin"
        return found[1:]

    everything = lines()
    margin = np.array([float(line.split(",")[3]) for line in everything])
    below = float(np.quantile(margin, 0.2)) + 1e-5
    doubtful = np.flatnonzero(margin < below)
    assert 0 < doubtful.size < margin.size
    ordered = lines("--sort", "doubt")
    assert sorted(ordered) == sorted(everything)
    assert (np.diff([float(line.split(",")[3]) for line in ordered]) >= 0).all()
    only = ("--only-doubtful", "--doubtful-below", below)
    assert lines(*only) == [everything[row] for row in doubtful]
    assert sorted(lines(*only, "--sort", "doubt")) == sorted(everything[row] for row in doubtful)
    out = ("predict", model, "digits", "-o", tmp_path / "p.csv", "--doubtful-below", below)
    found = run_json(*out, "--only-doubtful")
    assert (found["doubtful"], found["rows"]) == (doubtful.size, margin.size)
    assert f"{doubtful.size} are doubtful (margin below {below:g})" in run(*out).stdout
    assert run_json("predict", model, "digits", "-o", tmp_path / "p.csv")["doubtful"] == (margin < 0.5).sum()
    assert (
        lines("--only-doubtful", "--doubtful-below", 0)
        == lines("--only-doubtful", "--doubtful-below", 0, "--sort", "doubt")
        == []
    )
    assert (
        "--sort best is not row or doubt" in run("predict", model, "digits", "-o", "-", "--sort", "best", code=1).stderr
    )


def test_predictions_to_standard_output(run: Callable[..., Any], model: Path) -> None:
    printed = run("predict", model, "digits", "-o", "-", "--quiet").stdout.splitlines()
    assert printed[0] == "row,label,probability,margin"
    assert len(printed) == 401  # the test part
    assert len(run("predict", model, "digits", "--part", "train", "-o", "-", "-q").stdout.splitlines()) == 1398


def test_a_table_with_names_for_classes(run: Callable[..., Any], table: Path, tmp_path: Path) -> None:
    said = run("fit", table, "--label-column", "kind", "-o", tmp_path / "m.tnesi").stdout
    assert "from 400 labels" in said
    run("predict", tmp_path / "m.tnesi", table, "--label-column", "kind", "-o", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="") as file:
        labels = {row["label"] for row in csv.DictReader(file)}
    assert "nine, the last" in labels  # quoted, since it has a comma


def test_columns_are_known_by_their_names(run: Callable[..., Any], table: Path, tmp_path: Path) -> None:
    run("fit", table, "--label-column", "kind", "-o", tmp_path / "m.tnesi")
    with table.open(newline="") as file:
        rows = list(csv.reader(file))
    tables = {
        "moved": [[*row[1:64], row[0], row[64]] for row in rows],
        "more": [["id", *rows[0]], *([str(i), *row] for i, row in enumerate(rows[1:]))],
        "fewer": [row[1:] for row in rows],
    }
    for name, changed in tables.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(changed)

    def predict(name: Path, code: int = 0) -> Any:
        words = ("predict", tmp_path / "m.tnesi", name, "--label-column", "kind", "-o", tmp_path / "p.csv")
        return run(*words, code=code)

    predict(table)
    expected = (tmp_path / "p.csv").read_text()
    for name in ("moved", "more"):
        predict(tmp_path / f"{name}.csv")
        assert (tmp_path / "p.csv").read_text() == expected
    assert "column 'p0', used by the model, is missing" in predict(tmp_path / "fewer.csv", code=1).stderr


def test_evaluate(run: Callable[..., Any], run_json: Callable[..., Any], model: Path) -> None:
    data = load_named("digits").test
    assert data is not None
    told = run_json("evaluate", model, "digits")
    predicted = load(model).predict(data.X)
    assert told["error"] == pytest.approx(100 * np.mean(predicted != data.y))
    assert np.sum(told["confusion"]) == 400
    assert "confused with" in run("evaluate", model, "digits").stdout


def test_evaluate_with_labels_from_a_file(
    run_json: Callable[..., Any], model: Path, digits: Any, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", digits[0][:20])
    truth = load(model).predict(digits[0][:20])
    (tmp_path / "y.csv").write_text(
        "row,label\n" + "".join(f"{i},{k}\n" for i, k in enumerate(truth[:10])) + "10,cat\n"
    )
    told = run_json("evaluate", model, tmp_path / "x.npy", "--labels", tmp_path / "y.csv")
    assert told["rows"] == 11
    assert told["error"] == pytest.approx(100 / 11)  # a class unknown to the model
    assert told["classes"][-1] == "cat"


def test_info(run: Callable[..., Any], run_json: Callable[..., Any], model: Path) -> None:
    told = run_json("info", model)
    assert told["kind"] == "classifier"
    assert told["classes"] == list(range(10))
    assert told["provenance"]["data"] == "digits"
    assert told["provenance"]["labels"] == 100
    assert told["image_shape"] == [8, 8]
    assert "fingerprint" in run("info", model).stdout


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_show(run: Callable[..., Any], model: Path, tmp_path: Path, ending: str) -> None:
    run("show", model, "-o", tmp_path / f"f.{ending}", "--fields", 20)
    assert (tmp_path / f"f.{ending}").read_bytes()[:5].strip() in (PNG, b"<?xml", b"%PDF-")


def test_sample(run: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    run("sample", model, "-n", 12, "-o", tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(PNG)
    run("sample", model, "-n", 12, "--seed", 4, "-o", tmp_path / "s.npy")
    run("sample", model, "-n", 12, "--seed", 4, "-o", tmp_path / "s.csv")
    rows = np.load(tmp_path / "s.npy")
    assert rows.shape == (12, 64)
    assert np.array_equal(rows, np.loadtxt(tmp_path / "s.csv", delimiter=","))


def test_predictions_of_images_name_their_files(run: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for i, (pixels, label) in enumerate(zip(digits[0][:60], digits[1][:60], strict=True)):
        folder = tmp_path / "photos" / f"class {label}, really"
        folder.mkdir(parents=True, exist_ok=True)
        image.fromarray(16 * pixels.reshape(8, 8).clip(0, 15)).save(folder / f"{i:03}.png")
    run("fit", tmp_path / "photos", "-o", tmp_path / "m.tnesi", "--fields", 30)
    run("predict", tmp_path / "m.tnesi", tmp_path / "photos", "-o", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == 60
    assert all(Path(row["file"]).is_file() for row in found)
    assert np.mean([row["label"] in row["file"] for row in found]) > 0.7


def test_a_prior_can_be_chosen(run_json: Callable[..., Any], tmp_path: Path) -> None:
    for value in ("0", "5"):
        run_json(
            "fit",
            "digits",
            "--encoder",
            "none",
            "--prior-strength",
            value,
            "--fields",
            60,
            "-o",
            tmp_path / f"{value}.tnesi",
        )
    plain, shrunk = (load(tmp_path / f"{value}.tnesi").mixture_.means_ for value in ("0", "5"))
    assert shrunk.std(axis=0).sum() < plain.std(axis=0).sum()


def test_names_from_files_are_only_text(run: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    names = np.array(["[/b]", "[red]x", "\x1b[31mred", "[link=http://x]y", *"defghi"])
    np.savez(tmp_path / "d.npz", X=digits[0][:300], y=names[digits[1][:300]])
    run("fit", tmp_path / "d.npz", "--encoder", "none", "-o", tmp_path / "m.tnesi", "--fields", 60)
    for words in (("info", tmp_path / "m.tnesi"), ("evaluate", tmp_path / "m.tnesi", tmp_path / "d.npz")):
        said = run(*words).stdout
        assert "[/b]" in said
        assert "[link=http://x]y" in said
        assert "\x1b" not in said


def test_a_marker_for_no_label(run_json: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    y = digits[1][:300].astype(int) - 1  # classes -1 to 8
    np.savez(tmp_path / "d.npz", X=digits[0][:300], y=y)
    words = ("fit", tmp_path / "d.npz", "--encoder", "none", "-o", tmp_path / "m.tnesi", "--fields", 60)
    assert run_json(*words)["classes"] == list(range(9))
    told = run_json(*words, "--unlabeled", "none")
    assert (told["classes"], told["labels"]) == (list(range(-1, 9)), 300)
    told = run_json(*words, "--unlabeled", "8", "--labels-per-class", 2)
    assert (told["classes"], told["labels"]) == (list(range(-1, 8)), 18)


def test_labels_are_of_all_rows(run: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("row,label\n0,1\n")
    refused = run("evaluate", model, "digits", "--part", "test", "--labels", tmp_path / "y.csv", code=1)
    assert "omit --part" in refused.stderr


def test_predictions_into_a_pipe_and_through_a_link(run: Callable[..., Any], model: Path, tmp_path: Path) -> None:
    (tmp_path / "target.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "target.csv")
    run("predict", model, "digits", "-o", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text().startswith("row,label")
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    run("predict", model, "digits", "-o", tmp_path / "pipe")
    assert reader.communicate(timeout=60)[0] == (tmp_path / "target.csv").read_text()


def test_photos_of_another_size(run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for folder, size in (("photos", (8, 6)), ("new", (20, 15))):
        for i in range(20):
            (tmp_path / folder / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 99, size) + np.outer(
                np.arange(size[0]) if i % 2 else np.ones(size[0]), [5] * size[1]
            )
            image.fromarray(pixels.astype(np.uint8)).save(tmp_path / folder / "ab"[i % 2] / f"{i}.png")
    told = run_json("fit", tmp_path / "photos", "--test", tmp_path / "new", "-o", tmp_path / "m.tnesi")
    assert told["test"]["rows"] == 20
    run("predict", tmp_path / "m.tnesi", tmp_path / "new", "-o", tmp_path / "p.csv")
    run("predict", tmp_path / "m.tnesi", tmp_path / "new" / "a" / "0.png", "-o", tmp_path / "one.csv")
    assert len((tmp_path / "one.csv").read_text().splitlines()) == 2


def test_nothing_that_is_read_is_written(run: Callable[..., Any], table: Path, model: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_bytes(table.read_bytes())
    refused = run("fit", mine, "--label-column", "kind", "-o", mine, code=1).stderr
    assert "is an input" in refused
    run("predict", model, mine, "--label-column", "kind", "-o", mine, code=1)
    run("predict", model, "digits", "-o", model, code=1)
    assert mine.read_bytes() == table.read_bytes()
    assert load(model).classes_.size == 10


def test_a_bad_test_part_is_reported_before_learning(run: Callable[..., Any], tmp_path: Path) -> None:
    np.save(tmp_path / "bare.npy", np.ones((5, 64)))
    np.savez(tmp_path / "small.npz", X=np.ones((5, 3)), y=np.arange(5))
    for test, said in (("bare.npy", "has no labels"), ("small.npz", "3 features")):
        refused = run(
            "fit", "digits", "--encoder", "none", "--test", tmp_path / test, "-o", tmp_path / "m.tnesi", code=1
        )
        assert said in refused.stderr
        assert not (tmp_path / "m.tnesi").exists()


def test_labels_of_another_kind(run: Callable[..., Any], model: Path, digits: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=digits[0][:10], y=np.array(list("abcdefghij")))
    assert "none of the labels" in run("evaluate", model, tmp_path / "d.npz", code=1).stderr


def test_a_mixture_needs_no_labels_in_its_test_part(run: Callable[..., Any], digits: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=digits[0][:200], X_test=digits[0][200:250])
    assert (
        "No labels"
        in run("fit", tmp_path / "d.npz", "--encoder", "none", "-o", tmp_path / "m.tnesi", "--fields", 20).stdout
    )
