from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tnesi.data import DataNotFoundError, load_mnist, read_idx
from tnesi.data.named import few_labels

IMAGES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
FILE = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in IMAGES.shape) + IMAGES.tobytes()


@pytest.mark.parametrize("packed", [False, True])
def test_round_trip(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "any-name"
    path.write_bytes(gzip.compress(FILE) if packed else FILE)
    np.testing.assert_array_equal(read_idx(path), IMAGES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"PNG!", "not an IDX file"),
        (b"\0\0\x0d\x01" + bytes(8), "only IDX files of bytes"),
        (FILE[:9], "ends within its header"),
        (FILE[:-1], "fewer values"),
        (FILE + b"!", "more values"),
        (b"\0\0\x08\x02" + b"\xff" * 8, "more than can be meant"),
        (b"\0\0\x08\x02" + b"\0\0\xff\xff" * 2 + b"tiny", "fewer values"),
        (gzip.compress(FILE)[:-6], "damaged or incomplete"),
        (gzip.compress(FILE)[:20] + b"rubbish" + gzip.compress(FILE)[27:], "damaged or incomplete|values"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_idx(path)


def test_missing_data_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TNESI_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataNotFoundError, match=r"train-images-idx3-ubyte\.gz.*TNESI_DATA"):
        load_mnist()


def test_few_labels(rng: np.random.Generator) -> None:
    y = np.repeat([0, 1, 2], 20)
    few = few_labels(y, 4, rng)
    assert [(few == k).sum() for k in (-1, 0, 1, 2)] == [48, 4, 4, 4]
    assert (few[few >= 0] == y[few >= 0]).all()
