from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tnesi import PoissonMixture
from tnesi.data import DataError, open_data
from tnesi.data.source import ColumnsSource, Source

X = np.arange(24).reshape(4, 2, 3)


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version[0] == 1 else 4, "little") + text + content


def header(shape: str, descr: str = "'<f8'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


def test_files_are_mapped_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    data = open_data(tmp_path / "a.npy")
    assert isinstance(data.X, np.memmap)
    assert data.rows.image_shape == (2, 3)
    with pytest.raises(ValueError, match="read-only"):
        data.X[0] = 1


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">i4", "<f4", ">f8", "f2", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_order_and_type(tmp_path: Path, dtype: str, order: Any) -> None:
    values = np.array(X % 2 if dtype == "?" else X, dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    np.savez_compressed(tmp_path / "b.npz", X=values)
    for name in ("a.npy", "b.npz"):
        data = open_data(tmp_path / name)
        np.testing.assert_array_equal(data.X, values.reshape(4, 6))
        np.testing.assert_array_equal(np.concatenate(list(data.rows.blocks(3))), values.reshape(4, 6))
        assert data.X.dtype.isnative


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_versions_of_the_format(tmp_path: Path, version: tuple[int, int]) -> None:
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version=version)
    np.testing.assert_array_equal(open_data(tmp_path / "a.npy").X, X.reshape(4, 6))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy(header("(1000000000000, 784)"), b"few"), "header says 6272000000000000"),
        (npy(header("(9999999999999999999, 2)")), "is too large"),
        (npy(header("(1, 1, 1, 1, 1)"), bytes(8)), "is too large"),
        (npy(header("(1, 1)"), bytes(9)), "has 9 bytes of values, but its header says 8"),
        (npy(header("(0, 3)")), "is empty|no rows"),
        (npy(header("(1, -1)"), bytes(8)), "header is damaged"),
        (npy(header("(1, 1)", "[('a', '<f8')]"), bytes(8)), "header is damaged, or it is not an array"),
        (npy(header("(1, 1)", "'<c8'"), bytes(8)), "(save|convert) it (as|to) numbers"),
        (npy(header("(1, 1)", "'<M8'"), bytes(8)), "(save|convert) it (as|to) numbers"),
        (npy(header("(1, 1)", "'<U2'"), bytes(8)), "(save|convert) it (as|to) numbers"),
        (npy(header("(1, 1)", "'<f7'"), bytes(8)), "(save|convert) it (as|to) numbers"),
        (npy("(" * 9000), "header is damaged"),
        (npy(" " * 20_000), r"too long \(20000 bytes"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", r"too long \(4294967295 bytes"),
        (b"\x93NUMPY\x09\x00" + bytes(20), "supported version"),
    ],
)
def test_false_sizes_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError, match=message):
        open_data(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_pickles_are_refused_and_nothing_runs(tmp_path: Path, name: str) -> None:
    trap = tmp_path / "trap"
    values = np.array([[Trap(trap)]], object)
    (np.save if name == "a.npy" else np.savez)(tmp_path / name, values)
    pickle.loads(pickle.dumps(Trap(trap)))
    trap.unlink()  # it works
    for use in (open_data, lambda path: open_data([[1]], labels=path)):
        with pytest.raises(DataError, match="pickled Python objects"):
            use(tmp_path / name)
    assert not trap.exists()


def test_npz_with_a_test_part(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x_train=X, y_train=[1, 2, 1, 2], x_test=X[:2], y_test=[[2], [1]])
    data = open_data(tmp_path / "a.npz")
    assert data.test is not None
    assert (data.rows.image_shape, data.test.rows.image_shape) == ((2, 3), (2, 3))
    assert (data.y.tolist(), data.test.y.tolist()) == ([1, 2, 1, 2], [2, 1])
    np.savez(tmp_path / "b.npz", x_train=X, x_test=X[:, 0])
    with pytest.raises(DataError, match="same features"):
        open_data(tmp_path / "b.npz")


def test_names_in_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", spectra=X[0])
    assert open_data(tmp_path / "one.npz").X.shape == (2, 3)
    np.savez(tmp_path / "a.npz", data=X[0], kind=np.array(["a", "b"]))
    assert open_data(tmp_path / "a.npz").labels is None
    assert open_data(tmp_path / "a.npz", label_column="kind").y.tolist() == ["a", "b"]
    with pytest.raises(DataError, match="no array 'sort': choose one of data, kind"):
        open_data(tmp_path / "a.npz", label_column="sort")
    np.savez(tmp_path / "b.npz", foo=X, bar=X)
    with pytest.raises(DataError, match="has the arrays foo, bar: name the rows X"):
        open_data(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", X=X, y=[1, 2])
    with pytest.raises(DataError, match="labels of shape 2 for 4 rows"):
        open_data(tmp_path / "c.npz")


def write_zip(path: Path, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("X.npy", content)


def test_zip_bombs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    # an array that fits its header but not into memory: the size in the zip directory is forged
    write_zip(path, npy(header(f"({2**40}, 1)", "'|u1'"), bytes(1000)))
    forged = path.read_bytes()
    size = len(npy(header(f"({2**40}, 1)", "'|u1'"))) + 1000
    for wrong in (2**32 - 2, 2**31):
        path.write_bytes(forged.replace(size.to_bytes(4, "little"), wrong.to_bytes(4, "little")))
        with pytest.raises(DataError, match="header says 1099511627776 bytes of values, which"):
            open_data(path)
    # more follows than the header says
    write_zip(path, npy(header("(10, 1)", "'|u1'"), bytes(10**8)))
    with pytest.raises(DataError, match="header says 10"):
        open_data(path)


def test_honest_but_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 1000)))
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_array(([0.1], ([0], [0])), shape=(1000, 1000)))
    monkeypatch.setattr("tnesi.data.source.free_memory", lambda: 10**6)
    with pytest.raises(DataError, match=r"0\.0 GB of memory"):
        open_data(tmp_path / "a.npz")
    data = open_data(tmp_path / "b.npz")
    assert data.X.nnz == 1
    with pytest.raises(DataError, match="1000 x 1000 values needs"):
        Source.load(data.rows)
    assert sum(block.sum() for block in data.rows.blocks(10)) == 0.1


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path: Path, method: int) -> None:
    write_zip(tmp_path / "a.npz", npy(header("(1, 1)"), bytes(8)), method)
    with pytest.raises(DataError, match="unsupported compression"):
        open_data(tmp_path / "a.npz")


def test_damage_within_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=X)
    content = bytearray(path.read_bytes())
    at = content.index(X.tobytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="CRC"):
        open_data(path)


def parts(**changed: Any) -> dict[str, Any]:
    matrix = sparse.csr_array(np.array([[0, 3, 0], [1, 0, 2]]))
    whole = {"format": b"csr", "shape": matrix.shape, "data": matrix.data}
    whole |= {"indices": matrix.indices, "indptr": matrix.indptr}
    return {k: np.asarray(v) for k, v in (whole | changed).items() if v is not None}


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_formats(tmp_path: Path, form: str, rng: np.random.Generator) -> None:
    dense = rng.poisson(0.3, (20, 7))
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(dense).asformat(form))
    data = open_data(tmp_path / "a.npz")
    assert data.rows.dtype == np.uint8
    assert data.rows.csr.format == "csr"  # type: ignore[attr-defined]
    assert data.X.format == "csr"
    assert data.X.dtype == np.uint8
    np.testing.assert_array_equal(data.X.toarray(), dense)
    np.testing.assert_array_equal(np.concatenate(list(data.rows.blocks(6))), dense)
    np.testing.assert_array_equal(sparse.vstack(list(data.rows.parts(6))).toarray(), dense)
    some = ColumnsSource(data.rows, [4, 0])
    np.testing.assert_array_equal(sparse.vstack(list(some.parts(6))).toarray(), dense[:, [4, 0]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": [0, 1, 3]}, "damaged"),
        ({"indices": [0, -1, 2]}, "damaged"),
        ({"indptr": [0, 5, 3]}, "damaged"),
        ({"indptr": [1, 1, 3]}, "damaged"),
        ({"indptr": [0, 1, 2]}, "do not fit together"),
        ({"indptr": [0, 3]}, "do not fit together"),
        ({"data": [1, 2]}, "do not fit together"),
        ({"data": [[1, 2, 3]]}, "not lists of numbers"),
        ({"indices": [0.0, 1.0, 2.0]}, "not lists of numbers"),
        ({"data": ["a", "b", "c"]}, "save it as numbers|damaged"),
        ({"data": None}, "without data"),
        ({"shape": [2, 3, 4]}, "no valid shape"),
        ({"shape": [10**12, 3]}, "do not fit together"),
        ({"shape": [3, 10**12], "format": b"csc"}, "do not fit together"),
        ({"shape": [10**12, 2], "format": b"csc"}, "1000000000000 rows"),
        ({"shape": [10**12, 3], "format": b"coo", "row": [0, 1, 1], "col": [0, 1, 2]}, "1000000000000 rows"),
        ({"shape": [1, 3], "format": b"coo", "row": [0, 1, 1], "col": [0, 1, 2]}, "damaged"),
        ({"shape": [0, 3], "indptr": [0], "indices": np.empty(0, int), "data": []}, "is empty|no rows"),
        ({"format": b"dia"}, r"convert it with \.tocsr"),
    ],
)
def test_sparse_parts_are_checked(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "a.npz", **parts(**changed))
    with pytest.raises(DataError, match=message):
        open_data(tmp_path / "a.npz")


def test_very_wide_sparse_rows_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **parts(shape=[2, 10**14]))
    data = open_data(tmp_path / "a.npz")
    with pytest.raises(DataError, match="a single row of 100000000000000 values"):
        next(iter(data.rows.blocks()))
    with pytest.raises(ValueError, match="X has 100000000000000 features"):
        PoissonMixture().fit(data.X)


def test_duplicate_entries_are_summed() -> None:
    matrix = sparse.coo_array(([200, 100], ([0, 0], [1, 1])), shape=(1, 2))
    assert open_data(matrix).X.toarray().tolist() == [[0, 300]]
