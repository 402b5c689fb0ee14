from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse

from tnesi.data import Data, DataError, open_data
from tnesi.model.rows import dense

X = np.arange(24, dtype=np.uint8).reshape(6, 4)
Y = np.array([0, 0, 1, 1, 2, 2])
SHAPES = array_shapes(min_dims=2, max_dims=2, max_side=7)


def read_all(where: Any) -> Data:
    """Open data and read everything in them."""
    data = open_data(where)
    rows = np.concatenate(list(data.rows.blocks(4)))
    np.testing.assert_array_equal(rows, dense(data.X))
    return data


@settings(max_examples=settings.default.max_examples // 4)
@given(st.data())
def test_every_kind_gives_the_same_rows(kind: Any, data: st.DataObject) -> None:
    values = st.integers(0, 255) if kind.is_bytes else st.integers(0, 1000) | st.floats(0, 1e6, width=32)
    rows = data.draw(arrays(np.uint8 if kind.is_bytes else np.float32, SHAPES, elements=values))
    labels = np.sort(data.draw(arrays(np.int64, len(rows), elements=st.integers(0, 99))))
    size = data.draw(st.integers(1, 9))
    with tempfile.TemporaryDirectory() as folder:
        opened = open_data(kind.write(Path(folder, "file"), rows, labels))
        blocks = list(opened.rows.blocks(size))
        np.testing.assert_array_equal(np.concatenate(blocks), rows)
        np.testing.assert_array_equal(dense(opened.X), rows)
        parts = list(opened.rows.parts(size))
        np.testing.assert_array_equal(np.concatenate([dense(part) for part in parts]), rows)
        assert opened.X.dtype == opened.rows.dtype == blocks[0].dtype
        assert all(len(block) <= size and block.flags.c_contiguous for block in blocks)
        assert (opened.rows.n_rows, opened.rows.n_features) == rows.shape
        if kind.name == "images":
            np.testing.assert_array_equal(opened.y.astype(int), labels)
        elif kind.has_labels:
            np.testing.assert_array_equal(opened.y, labels)
            assert opened.y.dtype == np.int64
        else:
            assert opened.labels is None


def test_names_do_not_matter(kind: Any, tmp_path: Path) -> None:
    np.testing.assert_array_equal(dense(open_data(kind.write(tmp_path / "wrong.png", X, Y)).X), X)


@pytest.mark.slow
def test_truncated_files_are_refused(kind: Any, written: Path) -> None:
    original = read_all(written)
    for file in kind.files(written):
        whole = file.read_bytes()
        for length in range(0, len(whole), 1 if len(whole) < 200 else 11):
            file.write_bytes(whole[:length])
            try:
                data = read_all(written)
            except DataError:
                continue
            # a text may lose its last lines without notice; other files what has no meaning, such as a checksum
            if kind.name == "CSV":
                assert data.rows.n_rows <= original.rows.n_rows
            else:
                assert data.fingerprint == original.fingerprint, f"{length} of {len(whole)} bytes of {file}"
        file.write_bytes(whole)


@given(st.data())
def test_changed_bytes_never_crash(kind: Any, written: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(kind.files(written)))
    whole = file.read_bytes()
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    try:
        assert read_all(written).rows.n_rows < 1000
    except DataError:
        pass
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0\0", b"%PDF-1.4", bytes(range(256)), b"only words\nin here\n", b"\n\n"]
)
def test_unknown_content_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.npy"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"empty|unsupported file format.*Parquet.*Zarr|is text, and not a table"):
        open_data(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file, folder or data set.*mnist"):
        open_data(tmp_path / "nothing")
    with pytest.raises(DataError, match="neither a file nor a folder"):
        open_data("/dev/null")
    with pytest.raises(DataError, match="no images"):
        open_data(tmp_path)


def test_a_name_wins_over_a_file_unless_written_as_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Path("digits").open("wb") as file:
        np.save(file, X)
    assert open_data("digits").rows.image_shape == (8, 8)
    for path in ("./digits", Path("digits")):
        np.testing.assert_array_equal(open_data(path).X, X)


@pytest.mark.parametrize("make", [list, np.asarray, sparse.csr_array, sparse.coo_matrix, pd.DataFrame, pl.DataFrame])
def test_what_is_in_memory(make: Any) -> None:
    data = open_data(make(X), labels=["a", None, "b", "b", "", float("nan")])
    np.testing.assert_array_equal(dense(data.X), X)
    assert data.y.tolist() == ["a", None, "b", "b", None, None]


def test_images_in_memory_become_rows(rng: np.random.Generator) -> None:
    images = rng.integers(0, 255, (5, 2, 3))
    for array in (images, np.asfortranarray(images), images[..., None], images.astype(">i4")):
        data = open_data(array)
        assert data.rows.image_shape == (2, 3)
        np.testing.assert_array_equal(data.X, images.reshape(5, 6))
        np.testing.assert_array_equal(np.concatenate(list(data.rows.blocks(2))), data.X)
        assert data.X.dtype.isnative


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame: Any) -> None:
    data = open_data(frame({"a": [1, 2], "b": [0.5, 3], "Target": ["x", None]}))
    assert data.rows.feature_names == ["a", "b"]
    assert data.X.tolist() == [[1, 0.5], [2, 3]]
    assert data.y.tolist() == ["x", None]
    assert "Target" in data.note
    for columns, message in (
        ({"a": [1], "b": ["x"], "c": ["y"]}, r"columns 'b', 'c' are not numeric.*label_column"),
        ({"a": [1, None]}, r"row 1 .* column 'a'"),
    ):
        mixed = open_data(frame(columns))
        assert mixed.rows.kind == "table"
        with pytest.raises(DataError, match=message):
            mixed.rows.load()
    assert open_data(frame({"a": [1], "b": ["x"]}), label_column="b").y.tolist() == ["x"]


@pytest.mark.parametrize(
    ("where", "how", "message"),
    [
        (np.empty((0, 3)), {}, "is empty|no rows"),
        (np.empty((3, 0)), {}, "is empty|no rows"),
        (sparse.csr_array((0, 3)), {}, "is empty|no rows"),
        (pd.DataFrame({"a": []}), {}, "is empty|no rows"),
        (np.arange(3), {}, "1 dimensions"),
        (np.zeros((2, 3, 4, 5)), {}, "4 dimensions"),
        ([["a"]], {}, "(save|convert) it (as|to) numbers"),
        ([[1], [1, 2]], {}, "not an array of numbers"),
        (np.eye(2), {"labels": [1, 2, 3]}, "labels of shape 3 for 2 rows"),
        (np.eye(2), {"labels": [0.5, 1]}, "0.5 is not an integer"),
        (np.eye(2), {"label_column": 0}, "label_column is for tables"),
        (np.eye(2), {"labels": [0, 1], "label_column": 0}, "not both"),
        ("digits", {"label_column": 0}, "data set with labels"),
    ],
)
def test_what_is_refused(where: Any, how: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(where, **how)


def test_label_files(kind: Any, tmp_path: Path) -> None:
    path = kind.write(tmp_path / "data", X, Y)
    labels = tmp_path / "labels.txt"
    labels.write_text("5\n\n3\n3\n\n1\n")
    data = open_data(path, labels=labels)
    assert data.y.tolist() == [5, None, 3, 3, None, 1]
    assert "labels from labels.txt" in data.note
    with pytest.raises(FileNotFoundError, match="no label file"):
        open_data(path, labels=tmp_path / "missing")


def test_fingerprints_differ_between_data(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        np.save(file, X)
    shutil.copy(tmp_path / "a", tmp_path / "b")
    assert open_data(tmp_path / "a").fingerprint == open_data(tmp_path / "b").fingerprint == open_data(X).fingerprint
    assert open_data(X[::-1]).fingerprint != open_data(X).fingerprint
    assert open_data(X.reshape(4, 6)).fingerprint != open_data(X).fingerprint
