from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from tnesi.data import DataError, open_data

X = np.arange(60, dtype=np.uint16).reshape(10, 6) + 1


def store(path: Path, values: Any = X, version: int = 3, **how: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"shape": values.shape, "dtype": values.dtype, "chunks": (4, *values.shape[1:]), **how}
        array = zarr.create_array(path, zarr_format=version, **how)
        array[:] = values
    return path


def sharded(inner: list[int], endian: str = "little") -> dict[str, Any]:
    index = [{"name": "bytes", "configuration": {"endian": endian}}, {"name": "crc32c"}]
    configuration = {"chunk_shape": inner, "codecs": [{"name": "bytes"}], "index_codecs": index}
    return {"name": "sharding_indexed", "configuration": configuration}


def change(path: Path, **changed: Any) -> None:
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | changed))


@pytest.mark.parametrize(
    ("version", "how"),
    [
        (2, {"compressors": None}),
        (2, {"compressors": {"id": "zlib", "level": 1}}),
        (2, {"compressors": {"id": "lz4", "acceleration": 1}}),
        (2, {"compressors": {"id": "bz2", "level": 1}}),
        (2, {"compressors": {"id": "lzma"}}),
        (2, {"compressors": {"id": "zstd", "level": 1}, "order": "F"}),
        (2, {"chunk_key_encoding": {"name": "v2", "separator": "/"}, "dtype": ">u2"}),
        (3, {"compressors": None}),
        (3, {"compressors": GzipCodec()}),
        (3, {"compressors": BloscCodec()}),
        (3, {"compressors": ZstdCodec(checksum=True), "chunk_key_encoding": {"name": "default", "separator": "."}}),
        (3, {"chunk_key_encoding": {"name": "v2", "separator": "."}, "dtype": ">u2"}),
        (3, {"chunks": (2, 3), "shards": (4, 6), "compressors": GzipCodec()}),
    ],
)
def test_ways_of_packing(tmp_path: Path, version: int, how: dict[str, Any]) -> None:
    if isinstance(how.get("compressors"), dict):
        import numcodecs

        how = {**how, "compressors": numcodecs.get_codec(how["compressors"])}
    data = open_data(store(tmp_path / "a", version=version, **how))
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype.isnative


def test_images_groups_and_test_parts(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "g", mode="w")
    for name, values in {"x_train": X.reshape(10, 2, 3), "y_train": np.zeros(10, int), "x_test": X[:3] + 1}.items():
        group.create_array(name, data=values)
    data = open_data(tmp_path / "g")
    assert data.rows.image_shape == (2, 3)
    assert data.test is not None
    np.testing.assert_array_equal(data.test.X, X[:3] + 1)
    assert data.y.tolist() == [0] * 10  # whose only chunk is not stored


def test_chunks_that_are_empty_may_be_missing_but_not_rows(tmp_path: Path) -> None:
    values = X * (np.arange(6) < 3)
    path = store(tmp_path / "a", values, chunks=(4, 3))
    assert len(list(path.rglob("c/*/*"))) == 3
    np.testing.assert_array_equal(open_data(path).X, values)
    values = X * (np.arange(10) < 4)[:, None]
    with pytest.raises(DataError, match="only 1 of 3 bands of chunks"):
        open_data(store(tmp_path / "b", values))


@pytest.mark.parametrize("version", [2, 3])
def test_false_sizes_are_refused(tmp_path: Path, version: int) -> None:
    path = store(tmp_path / "a", version=version)
    about = path / (".zarray" if version == 2 else "zarr.json")
    for shape, message in (
        ([10**12, 6], "1000000000000 rows"),
        ([10, 10**15], "GB of memory"),
        ([0, 6], "is empty|no rows"),
        ([10], "damaged"),
        ([-1, 6], "damaged"),
        ([10.5, 6], "damaged"),
        ("many", "damaged"),
    ):
        change(about, shape=shape)
        with pytest.raises(DataError, match=message):
            open_data(path)
    change(about, shape=[10, 6])
    huge = [10**9, 6]
    grid = {"name": "regular", "configuration": {"chunk_shape": huge}}
    change(about, **({"chunks": huge} if version == 2 else {"chunk_grid": grid}))
    with pytest.raises(DataError, match=r"chunks of 12\.0 GB"):
        open_data(path)


@pytest.mark.parametrize(
    "changed",
    [
        {"compressor": {"id": "pickle"}},
        {"compressor": {"id": "json2"}},
        {"compressor": {"id": ["zlib"]}},
        {"filters": [{"id": "pickle"}]},
        {"filters": [{"id": "delta", "dtype": "u2"}]},
        {"dtype": "|O"},
        {"dtype": "<U3"},
        {"dtype": "<M8[s]"},
        {"dtype": [["a", "<u2"]]},
        {"dimension_separator": "\\"},
        {"compressor": 3},
        {"chunks": [0, 6]},
        {"chunks": [4]},
        {"shape": [10] * 40, "chunks": [1] * 40},
        {"fill_value": "A" * 500_000},
        {"dtype": "|O", "filters": [{"id": "pickle"}]},
        {"dtype": "<U999999999"},
    ],
)
def test_format_2_that_is_not_known_to_be_safe(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = store(tmp_path / "a", version=2)
    change(path / ".zarray", **changed)
    with pytest.raises(DataError) as refused:
        open_data(path)
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize(
    "changed",
    [
        {"data_type": "string"},
        {"data_type": "complex64"},
        {"data_type": {"name": "numpy.datetime64"}},
        {"codecs": []},
        {"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]},
        {"codecs": [{"name": "vlen-utf8"}]},
        {"codecs": [{"name": "bytes"}, {"name": "gzip"}, {"name": "zstd"}]},
        {"codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 6]}}]},
        {"codecs": [sharded([3, 5])]},
        {"codecs": [sharded([0, 0])]},
        {"codecs": [sharded([1, 1], "big")]},
        {"shape": [2**70, 6]},
        {"storage_transformers": [{"name": "anything"}]},
        {"chunk_grid": {"name": "rectangular"}},
        {"chunk_key_encoding": {"name": "mine"}},
    ],
)
def test_format_3_that_is_not_known_to_be_safe(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = store(tmp_path / "a")
    change(path / "zarr.json", **changed)
    with pytest.raises(DataError):
        _ = open_data(path).X


@pytest.mark.parametrize("sharded", [False, True])
def test_bombs_in_chunks_are_refused(tmp_path: Path, sharded: bool) -> None:
    how = {"chunks": (2, 6), "shards": (4, 6)} if sharded else {}
    path = store(tmp_path / "a", compressors=GzipCodec(), **how)
    bomb = gzip.compress(bytes(10**7))
    if sharded:
        index = np.array([[0, len(bomb)], [2**64 - 1] * 2], "<u8").tobytes()
        import google_crc32c

        bomb += index + google_crc32c.value(index).to_bytes(4, "little")
    (path / "c/1/0").write_bytes(bomb)
    with pytest.raises(DataError, match="does not hold the expected"):
        _ = open_data(path).X


def test_links_are_refused(tmp_path: Path) -> None:
    path = store(tmp_path / "a")
    (path / "c/1/0").rename(tmp_path / "elsewhere")
    (path / "c/1/0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="symbolic link"):
        open_data(path)


def test_descriptions_that_are_none(tmp_path: Path) -> None:
    path = store(tmp_path / "a")
    for text in ("", "[]", "{}", "{" * 10_000, "[" * 100_000, " " * 2**21):
        (path / "zarr.json").write_text(text)
        with pytest.raises(DataError):
            open_data(path)
    group = tmp_path / "g"
    store(group / "foo")
    store(group / "bar")
    (group / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))
    with pytest.raises(DataError, match="has the arrays bar, foo: name the rows X"):
        open_data(group)
    with pytest.raises(DataError, match="single array"):
        open_data(group / "foo", label_column="y")
