"""AnnData files, written by h5py as AnnData writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import sparse

from tnesi import PoissonMixture
from tnesi.data import DataError, open_data
from tnesi.data.readers import h5ad

COUNTS = np.random.default_rng(0).poisson(0.7, (30, 60))
NAMES = np.array(["B cell", "T cell"])[np.arange(30) % 2]


def write_matrix(group: Any, name: str, X: Any) -> None:
    if isinstance(X, np.ndarray):
        group[name] = X
        return
    place = group.create_group(name)
    place.attrs["encoding-type"] = f"{X.format}_matrix"
    place.attrs["shape"] = X.shape
    for part in ("data", "indices", "indptr"):
        place[part] = getattr(X, part)


def write(path: Path, X: Any, counts: Any = None) -> Path:
    with h5py.File(path, "w") as file:
        write_matrix(file, "X", X)
        if counts is not None:
            write_matrix(file.create_group("layers"), "counts", counts)
        obs, var = file.create_group("obs"), file.create_group("var")
        obs.attrs["_index"] = var.attrs["_index"] = "_index"
        obs.attrs["column-order"] = ["cell_type", "batch", "some"]
        obs["_index"] = [f"cell{i}" for i in range(30)]
        var["_index"] = [f"gene{i}" for i in range(60)]
        kinds = obs.create_group("cell_type")
        kinds["categories"] = ["B cell", "T cell"]
        kinds["codes"] = np.where(np.arange(30) < 20, np.arange(30) % 2, -1).astype(np.int8)
        obs["batch"] = NAMES.tolist()
        some = obs.create_group("some")
        some["values"], some["mask"] = np.arange(30), np.arange(30) > 3
    return path


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_counts_and_labels(tmp_path: Path, form: Any) -> None:
    data = open_data(write(tmp_path / "cells.h5ad", form(COUNTS)), label_column="cell_type")
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    np.testing.assert_array_equal(X, COUNTS)
    assert data.y.tolist() == [*NAMES[:20], *[None] * 10]
    assert data.rows.feature_names is not None
    assert data.rows.feature_names[:2] == ["gene0", "gene1"]


def test_raw_counts_are_preferred(tmp_path: Path) -> None:
    data = open_data(write(tmp_path / "cells.h5ad", np.log1p(COUNTS), sparse.csr_array(COUNTS)))
    np.testing.assert_array_equal(data.X.toarray(), COUNTS)
    assert data.note == "counts from layers/counts"
    assert data.labels is None


def test_columns_of_obs(tmp_path: Path) -> None:
    path = write(tmp_path / "cells.h5ad", COUNTS)
    assert open_data(path, label_column="batch").y.tolist() == NAMES.tolist()
    assert open_data(path, label_column="some").y.tolist() == [0, 1, 2, 3, *[None] * 26]
    with pytest.raises(DataError, match=r"obs, has no column 'kind'.*cell_type, batch, some"):
        open_data(path, label_column="kind")


def test_large_counts_are_copied_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = open_data(write(tmp_path / "cells.h5ad", sparse.csr_array(COUNTS)))
    monkeypatch.setattr(h5ad, "IN_MEMORY", 100)
    monkeypatch.setattr(h5ad, "_BLOCK", 60)
    blocks = open_data(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(blocks.X.toarray(), whole.X.toarray())
    assert blocks.rows.feature_names == whole.rows.feature_names
    assert np.vstack(list(blocks.rows.blocks(7))).tolist() == COUNTS.tolist()
    fit = PoissonMixture(3, random_state=0)
    np.testing.assert_array_equal(fit.fit(blocks.X).means_, fit.fit(whole.X).means_)
    for damage, message in (
        (stray, "damaged|index"),
        (shuffle, "do not fit together"),
        (cut, "has no 'data'"),
        (inflate, "plausible"),
    ):
        path = write(tmp_path / f"{damage.__name__}.h5ad", sparse.csr_array(COUNTS))
        with h5py.File(path, "r+") as file:
            damage(file)
        with pytest.raises(DataError, match=message):
            open_data(path)


def inflate(file: Any) -> None:
    for name in ("data", "indices"):
        del file["X"][name]
        file["X"].create_dataset(name, (2**40,), np.int32, chunks=(2**16,))


def shuffle(file: Any) -> None:
    file["X/indptr"][3] = 0


def link(file: Any) -> None:
    del file["X"]
    file["X"] = h5py.ExternalLink("other.h5", "/secret")


def refer(file: Any) -> None:
    del file["X"]
    file.create_dataset("X", (30, 60), np.uint8, external=[("/etc/passwd", 0, 1800)])


def promise(file: Any) -> None:
    del file["X"]
    file.create_dataset("X", (2**40, 2**10), np.float64, chunks=(1, 2**10))


def cut(file: Any) -> None:
    del file["X/data"]


def stray(file: Any) -> None:
    file["X/indices"][3] = 99


def codes(file: Any) -> None:
    file["obs/cell_type/codes"][0] = 7


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (link, "neither X nor layers/counts"),
        (refer, "refers to other files"),
        (promise, "of memory"),
        (cut, "has no 'data'"),
        (stray, "damaged|index"),
        (codes, "codes beyond its categories"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, damage: Any, message: str) -> None:
    path = write(tmp_path / "cells.h5ad", sparse.csr_array(COUNTS))
    with h5py.File(path, "r+") as file:
        damage(file)
    with pytest.raises(DataError, match=message):
        open_data(path, label_column="cell_type")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "cells.h5ad", COUNTS).read_bytes()
    for n in (9, 100, len(whole) // 2):
        (tmp_path / "cut.h5ad").write_bytes(whole[:n])
        with pytest.raises(DataError, match=r"cut\.h5ad"):
            open_data(tmp_path / "cut.h5ad")
