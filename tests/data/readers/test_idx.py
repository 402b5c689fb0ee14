from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from tnesi.data import DataError, open_data, read_idx

IMAGES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
FILE = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in IMAGES.shape) + IMAGES.tobytes()
LABELS = b"\0\0\x08\x01\0\0\0\x02\x07\x09"


@pytest.mark.parametrize("packed", [False, True])
def test_round_trip(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "any-name"
    path.write_bytes(gzip.compress(FILE, mtime=0) if packed else FILE)
    np.testing.assert_array_equal(read_idx(path), IMAGES)
    assert open_data(path).rows.image_shape == (3, 4)


@pytest.mark.parametrize(("code", "dtype"), [(9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")])
def test_other_numbers(tmp_path: Path, code: int, dtype: str) -> None:
    values = np.arange(-3, 3).astype(dtype).reshape(2, 3)
    (tmp_path / "idx").write_bytes(bytes([0, 0, code, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + values.tobytes())
    data = open_data(tmp_path / "idx")
    np.testing.assert_array_equal(data.X, values)
    assert data.X.dtype.isnative


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"PNG!", "not an IDX file"),
        (b"\0\0\x0a\x01" + bytes(8), "unsupported IDX file"),
        (FILE[:9], "ends within its header"),
        (FILE[:-1], "fewer values"),
        (FILE + b"!", "more values"),
        (b"\0\0\x08\x02" + b"\xff" * 8, "fewer values than its header says .4294967295 x 4294967295"),
        (b"\0\0\x08\x02" + b"\0\0\xff\xff" * 2 + b"tiny", "fewer values"),
        (gzip.compress(b"\0\0\x08\x02" + b"\0\0\xff\xff" * 2 + b"tiny", mtime=0), "fewer values"),
        (gzip.compress(FILE + b"!", mtime=0), "more values"),
        (gzip.compress(FILE, mtime=0)[:-6], "damaged or incomplete"),
        (gzip.compress(FILE, mtime=0)[:20] + b"rubbish" + gzip.compress(FILE)[27:], "damaged or incomplete|values"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_idx(path)


@pytest.mark.parametrize("packed", [False, True])
def test_labels_beside_the_images_are_found(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(FILE)
    assert open_data(path).labels is None
    beside = tmp_path / ("train-labels-idx1-ubyte" + ".gz" * packed)
    beside.write_bytes(gzip.compress(LABELS, mtime=0) if packed else LABELS)
    data = open_data(path)
    assert data.y.tolist() == [7, 9]
    assert beside.name in data.note
    beside.write_bytes(b"damaged")
    with pytest.raises(DataError):
        open_data(path)
    assert open_data(path, labels=[1, 2]).y.tolist() == [1, 2]
