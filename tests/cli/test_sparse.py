"""Sparse data on the command line, which are never made dense."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tnesi import load
from tnesi.data.readers.sparse import CsrSource

TOPICS = {
    "sci.space": "moon rocket orbit shuttle launch",
    "sci.med": "pill doctor patient disease cure",
    "rec.autos": "car engine wheel brake fuel",
}


@pytest.fixture
def never_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("sparse rows were made dense")

    monkeypatch.setattr(CsrSource, "blocks", refuse)


@pytest.fixture
def newsgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small 20news-bydate.tar.gz in the data folder."""
    rng = np.random.default_rng(0)
    place = tmp_path / "20newsgroups" / "20news-bydate.tar.gz"
    place.parent.mkdir()
    monkeypatch.setenv("TNESI_DATA", str(tmp_path))
    with tarfile.open(place, "w:gz") as file:
        for part, n in (("train", 40), ("test", 10)):
            for group, words in TOPICS.items():
                for i in range(n):
                    text = " ".join(["the", "and", *rng.choice(words.split(), 12)]).encode()
                    info = tarfile.TarInfo(f"20news-bydate-{part}/{group}/{i}")
                    info.size = len(text)
                    file.addfile(info, io.BytesIO(text))


@pytest.mark.usefixtures("never_dense", "newsgroups")
def test_newsgroups(run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path) -> None:
    model = tmp_path / "news.tnesi"
    told = run_json("fit", "20newsgroups", "--fields", 6, "--labels-per-class", 3, "-o", model)
    assert told["rows"] == 120
    assert told["features"] == 17
    assert told["test"]["error"] < 5
    assert run_json("evaluate", model, "20newsgroups")["error"] == told["test"]["error"]
    run("predict", model, "20newsgroups", "--part", "train", "-o", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 121
    run("show", model, "-o", tmp_path / "f.png")
    run("sample", model, "-o", tmp_path / "s.png")
    run("tune", "20newsgroups", "--labels-per-class", 4, "--fields", 6, "--truncation", "2", "--splits", 2)
    assert load(model).n_features_in_ == 17


@pytest.mark.usefixtures("never_dense")
def test_a_file(digits: Any, run: Callable[..., Any], run_json: Callable[..., Any], tmp_path: Path) -> None:
    X, y = digits
    sparse.save_npz(tmp_path / "sparse.npz", sparse.coo_matrix(X))
    np.save(tmp_path / "dense.npy", X)
    np.savetxt(tmp_path / "labels.csv", y, fmt="%d")
    errors = []
    for name in ("sparse.npz", "dense.npy"):
        words = ("fit", tmp_path / name, "--labels", tmp_path / "labels.csv", "--labels-per-class", 5, "--fields", 80)
        assert run_json(*words, "-o", tmp_path / "m.tnesi")["features"] == 64
        errors.append(
            run_json("evaluate", tmp_path / "m.tnesi", tmp_path / name, "--labels", tmp_path / "labels.csv")["error"]
        )
    assert errors[0] == pytest.approx(errors[1], abs=0.3)
    run("fit", tmp_path / "sparse.npz", "--fields", 30, "-o", tmp_path / "mixture.tnesi")


def test_fields_that_do_not_fit(run: Callable[..., Any], tmp_path: Path) -> None:
    wide = sparse.csr_array((np.ones(40), (np.arange(40), np.arange(40))), shape=(40, 2_000_000_000))
    sparse.save_npz(tmp_path / "wide.npz", wide)
    said = run(
        "fit", tmp_path / "wide.npz", "--fields", 30, "--row-sum", 3e9, "-o", tmp_path / "m.tnesi", code=1
    ).output
    assert "30 fields of 2000000000 features need 1440.0 GB of memory" in said
    assert "use fewer features" in said
    assert "n_components" not in said
