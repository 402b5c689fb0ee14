from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from tnesi.data.datasets import nist
from tnesi.data.datasets.named import describe, load_named
from tnesi.data.datasets.nist import preprocess
from tnesi.data.source import DataError


def scan(top: int, left: int, height: int, width: int) -> Any:
    image = np.full((128, 128), 255, np.uint8)
    image[top : top + height, left : left + width] = 0
    return image


def write_tree(folder: Path) -> None:
    """Write five digits, two letters, and files to skip."""
    digits = ["30/hsf_0/a", "30/hsf_4/b", "31/hsf_7/c", "31/hsf_0/d", "39/hsf_4/e"]
    for i, place in enumerate([*digits, "5a/hsf_1/f", "61/hsf_4/g", "30/train_30/h"]):
        path = folder / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(scan(20, 30, 40, 4 * (i + 1))).convert("RGB").save(path)
    (folder / "30" / "hsf_0" / "hsf_0.mit").write_text("a list")
    (folder / "30" / "hsf_0.mit").write_text("a list")


def zip_tree(tree: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(tree.rglob("*")):
            file.write(path, f"by_class/{path.relative_to(tree)}")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TNESI_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "nist" / "by_class"
    write_tree(folder)
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_digits_and_letters(tree: Path, packed: bool) -> None:
    if packed:
        zip_tree(tree, tree.with_name("by_class.zip"))
        tree.rename(tree.with_name("elsewhere"))
    digits, letters = load_named("nist-digits", download=False), load_named("nist-letters", download=False)
    assert digits.test
    assert letters.test
    assert (sorted(digits.y.tolist()), sorted(digits.test.y.tolist())) == ([0, 1, 1], [0, 9])
    assert (letters.y.tolist(), letters.test.y.tolist()) == (["Z"], ["a"])
    assert digits.rows.image_shape == digits.test.rows.image_shape == (28, 28)
    expected = preprocess(scan(20, 30, 40, 24)).ravel()
    np.testing.assert_array_equal(letters.X[0], expected)
    assert describe("nist-digits").found


def test_kept_after_the_first_time(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Any, ...]] = []
    first = load_named("nist-digits", progress=lambda *args: told.append(args))
    assert told[-1] == ("nist-digits: preparing images", 5, 5)
    told.clear()
    again = load_named("nist-digits", progress=lambda *args: told.append(args))
    assert not told
    assert again.fingerprint == first.fingerprint
    np.testing.assert_array_equal(again.y, first.y)
    Image.fromarray(scan(1, 1, 9, 9)).save(tree / "30" / "hsf_1.png")
    (tree / "32" / "hsf_1").mkdir(parents=True)
    Image.fromarray(scan(1, 1, 9, 9)).save(tree / "32" / "hsf_1" / "new.png")
    assert sorted(load_named("nist-digits").y.tolist()) == [0, 1, 1, 2], "another tree is prepared anew"
    monkeypatch.setattr(nist, "_VERSION", nist._VERSION + 1)
    load_named("nist-digits", progress=lambda *args: told.append(args))
    assert told


def test_a_damaged_cache_is_rewritten(tree: Path, tmp_path: Path) -> None:
    first = load_named("nist-letters")
    (kept,) = (tmp_path / "cache" / "tnesi" / "nist").glob("*.npz")
    kept.write_bytes(kept.read_bytes()[:-50])
    assert load_named("nist-letters").fingerprint == first.fingerprint
    kept.write_bytes(b"rubbish")
    assert load_named("nist-letters").fingerprint == first.fingerprint


def test_without_a_test_part(tree: Path) -> None:
    (tree / "61" / "hsf_4" / "g.png").unlink()
    with pytest.raises(DataError, match=r"no test images .*unpack by_class\.zip again"):
        load_named("nist-letters")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n" + bytes(50), b"GIF89a"])
def test_damaged_images_are_named(tree: Path, content: bytes) -> None:
    (tree / "30" / "hsf_0" / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=r"30/hsf_0/a\.png in .*download"):
        load_named("nist-digits")


def test_images_of_another_size_are_refused(tree: Path) -> None:
    Image.new("L", (3000, 3000)).save(tree / "30" / "hsf_0" / "a.png")
    with pytest.raises(DataError, match="3000 x 3000 pixels instead of 128 x 128"):
        load_named("nist-digits")


def test_a_file_that_is_not_a_zip_archive(tree: Path) -> None:
    tree.rename(tree.with_name("elsewhere"))
    tree.with_name("by_class.zip").write_bytes(b"PK rubbish")
    with pytest.raises(DataError, match=r"by_class\.zip is damaged"):
        load_named("nist-digits")


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 28), st.integers(0, 28))
def test_only_the_shape_of_the_ink_counts(height: int, width: int, top: int, left: int) -> None:
    small = preprocess(scan(top, left, height, width))
    np.testing.assert_array_equal(small, preprocess(scan(0, 0, height, width)))
    rows, columns = np.nonzero(small)
    tall, wide = np.ptp(rows) + 1, np.ptp(columns) + 1
    assert max(tall, wide) == 20
    assert abs(tall / 20 - height / max(height, width)) <= 0.05
    assert abs(wide / 20 - width / max(height, width)) <= 0.05
    assert abs(np.average(rows, weights=small[rows, columns]) - 13.5) <= 0.51
    assert abs(np.average(columns, weights=small[rows, columns]) - 13.5) <= 0.51


@given(arrays(np.uint8, (40, 30), elements=st.sampled_from([0, 255, 255, 255])))
def test_center_of_mass_and_no_ink_lost(image: Any) -> None:
    small = preprocess(image)
    assert small.shape == (28, 28)
    assert bool(small.any()) == bool((image == 0).any())
    if small.any():
        rows, columns = np.nonzero(small)
        center = [np.average(found, weights=small[rows, columns]) for found in (rows, columns)]
        at_the_edge = [found.min() == 0 or found.max() == 27 for found in (rows, columns)]
        assert all(abs(c - 13.5) <= 0.51 or edge for c, edge in zip(center, at_the_edge, strict=True))


def test_antialiased() -> None:
    y, x = np.mgrid[:128, :128]
    circle = np.where((y - 60) ** 2 + (x - 50) ** 2 < 900, 0, 255).astype(np.uint8)
    small = preprocess(circle)
    assert np.unique(small).size > 10
    np.testing.assert_allclose(small.sum() / 255, np.pi * 100, rtol=0.05)
