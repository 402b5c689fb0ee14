from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tnesi.data import DataError, open_data


def save(path: Path, gray: Any, mode: str | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.asarray(gray, np.uint8)) if mode is None else gray
    image.save(path)


def png(width: int, height: int, content: bytes = b"") -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(content)) + chunk(b"IEND", b"")


def test_folders_are_labels(tmp_path: Path) -> None:
    for i, name in enumerate(["dog/b.png", "cat/a.png", "loose.png", "dog/a.png"]):
        save(tmp_path / name, np.full((2, 3), i))
    save(tmp_path / ".hidden.png", [[9]])
    (tmp_path / "Thumbs.db").write_bytes(b"anything")
    data = open_data(tmp_path)
    assert data.y.tolist() == ["cat", "dog", "dog", None]
    assert data.X[:, 0].tolist() == [1, 3, 0, 2]
    assert data.rows.image_shape == (2, 3)
    assert data.X.dtype == np.uint8


def test_loose_images_have_no_labels_and_numbers_are_numbers(tmp_path: Path) -> None:
    save(tmp_path / "a" / "x.png", [[1]])
    assert open_data(tmp_path / "a").labels is None
    assert open_data(tmp_path / "a" / "x.png").X.tolist() == [[1]]
    save(tmp_path / "b" / "3" / "x.png", [[1]])
    save(tmp_path / "b" / "x.png", [[1]])
    assert open_data(tmp_path / "b").y.tolist() == [3, None]


def test_train_and_test_folders(tmp_path: Path) -> None:
    save(tmp_path / "train" / "3" / "x.png", np.full((4, 4), 5))
    save(tmp_path / "test" / "3" / "x.png", np.full((8, 8), 5))
    data = open_data(tmp_path)
    assert data.test is not None
    assert data.X.tolist() == data.test.X.tolist() == [[5] * 16]
    assert data.y.tolist() == data.test.y.tolist() == [3]


def test_sizes_are_unified(tmp_path: Path) -> None:
    for i, shape in enumerate([(4, 6), (2, 2), (4, 6), (40, 60)]):
        save(tmp_path / f"{i}.png", np.full(shape, 10 * i))
    data = open_data(tmp_path)
    np.testing.assert_array_equal(data.X, np.repeat([[0], [10], [20], [30]], 24, axis=1))


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.bmp", "a.gif", "a.tif", "a.pgm", "a.webp"])
def test_formats(tmp_path: Path, name: str) -> None:
    save(tmp_path / name, np.full((8, 8), 77))
    (tmp_path / name).rename(tmp_path / "wrong.txt")
    for where in (tmp_path, tmp_path / "wrong.txt"):
        assert abs(open_data(where).X.astype(int) - 77).max() <= 1


@pytest.mark.parametrize(
    ("image", "gray"),
    [
        (Image.new("RGB", (1, 1), (255, 0, 0)), 76),
        (Image.new("RGBA", (1, 1), (0, 0, 0, 0)), 255),
        (Image.new("RGBA", (1, 1), (0, 0, 0, 255)), 0),
        (Image.new("LA", (1, 1), (100, 255)), 100),
        (Image.new("1", (1, 1), 1), 255),
        (Image.new("P", (1, 1)), 0),
        (Image.fromarray(np.array([[0x1234]], np.uint16)), 0x12),
    ],
)
def test_colors_become_gray(tmp_path: Path, image: Image.Image, gray: int) -> None:
    save(tmp_path / "a.png", image, image.mode)
    assert open_data(tmp_path).X.tolist() == [[gray]]


def test_bad_images_are_named(tmp_path: Path) -> None:
    save(tmp_path / "a.png", [[1]])
    for content, message in (
        (b"no image", r"bad\.png is not a picture in a known format"),
        (png(50_000, 50_000), r"bad\.png has too many pixels.*: scale it down"),
        (png(12_000, 9_000), r"bad\.png has 12000 x 9000 pixels, more than 64 million: scale it down"),
        (png(9_000, 9_000), r"bad\.png has 9000 x 9000 pixels, more than 64 million: scale it down"),
        (png(100, 100, b"short"), r"bad\.png is damaged"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n", r"bad\.png is not a picture"),
    ):
        (tmp_path / "bad.png").write_bytes(content)
        with pytest.raises(DataError, match=message):
            _ = open_data(tmp_path).X


def test_float_images_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0.5]], np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match="floating-point gray values"):
        _ = open_data(tmp_path).X


def test_deeper_folders_and_links(tmp_path: Path) -> None:
    save(tmp_path / "inside" / "a.png", [[1]])
    save(tmp_path / "outside" / "a.png", [[2]])
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "inside" / "loop.png").symlink_to(tmp_path / "inside" / "loop.png")
    os.mkfifo(tmp_path / "inside" / "pipe")
    assert open_data(tmp_path / "inside").X.tolist() == [[1]]
    save(tmp_path / "inside" / "a" / "b" / "c.png", [[1]])
    with pytest.raises(DataError, match="nested too deeply"):
        open_data(tmp_path / "inside")


def test_large_images_come_in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(5):
        save(tmp_path / f"{i}.png", np.full((10, 10), i))
    monkeypatch.setattr("tnesi.data.source._BLOCK_BYTES", 200)
    assert [len(block) for block in open_data(tmp_path).rows.blocks()] == [2, 2, 1]


def test_large_images_are_never_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    for suffix in ("png", "bmp", "gif", "tif", "jpg", "webp"):
        path = tmp_path / f"large.{suffix}"
        Image.new("L", (9_000, 1_000)).save(path)
        with monkeypatch.context() as patch:
            patch.setattr("tnesi.data.image_files.MOST_PIXELS", 10**6)
            with pytest.raises(DataError, match="has 9000 x 1000 pixels, more than 1 million"):
                open_data(path).rows.load()
        with monkeypatch.context() as patch:
            patch.setattr("tnesi.data.image_files.free_memory", lambda: 10**6)
            with pytest.raises(DataError, match=r"decoding needs 0\.1 GB of memory, only 0\.0 GB"):
                open_data(path).rows.load()


def test_lack_of_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "a.png", [[1, 2]])
    data = open_data(tmp_path / "a.png")

    def load(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    with pytest.raises(DataError, match=r"a\.png does not fit into memory"):
        _ = data.X
