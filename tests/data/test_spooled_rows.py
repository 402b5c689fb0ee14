"""Rows stored block by block: the same in memory, in a temporary folder, and in a permanent one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tnesi.data.spooled_rows import SpooledRows
from tnesi.system.files import FileWriteError


def blocks(form: str) -> list[Any]:
    rng = np.random.default_rng(0)
    dense = [rng.poisson(0.3, (n, 7)).astype(np.float32) for n in (5, 1, 0, 9)]
    return dense if form == "dense" else [sparse.csr_array(block) for block in dense]


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("in_memory", [10**6, 100, 0])
def test_rows_come_back(form: str, in_memory: int) -> None:
    rows = SpooledRows(in_memory)
    for block in blocks(form):
        rows.add(block)
    np.testing.assert_array_equal(dense(rows.matrix()), np.vstack([dense(block) for block in blocks(form)]))
    assert sparse.issparse(rows.matrix()) == (form == "sparse")
    assert (rows.keep is None) == (in_memory == 10**6)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_folder_continues_after_what_was_complete(form: str, tmp_path: Path) -> None:
    first, *others = blocks(form)
    rows = SpooledRows(0, tmp_path)
    rows.add(first)
    size = rows.size
    rows.add(others[0])  # which the next run ignores
    again = SpooledRows(0, tmp_path, size)
    for block in others:
        again.add(block)
    np.testing.assert_array_equal(dense(again.matrix()), np.vstack([dense(block) for block in blocks(form)]))
    assert SpooledRows(0, tmp_path).size.n_rows == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk(tmp_path: Path) -> None:
    rows = SpooledRows(0, tmp_path)
    (tmp_path / "rows").symlink_to("/dev/full")
    with pytest.raises(FileWriteError, match="is full: make room"):
        rows.add(np.ones((3, 4), np.float32))


def test_sparse_rows_without_any_value() -> None:
    rows = SpooledRows(0)
    rows.add(sparse.csr_array((3, 4), dtype=np.float32))
    assert dense(rows.matrix()).tolist() == np.zeros((3, 4)).tolist()
