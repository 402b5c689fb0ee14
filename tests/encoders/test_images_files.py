"""ImageEncoder on files: any format, mode, size and orientation; broken ones among good ones."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from PIL import Image

from tnesi.data import image_files as module
from tnesi.data.image_files import ImageFileError
from tnesi.encoders import ImageEncoder
from tnesi.encoders.image_files import image_size, read_image
from tnesi.encoders.images import UnreadableImagesError

CANVAS = (48, 64)


def scene(height: int = 48, width: int = 64, seed: int = 0) -> Any:
    """Return a smooth colored picture without any symmetry."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    return np.asarray(small.resize((width, height), Image.Resampling.BICUBIC))


@pytest.fixture
def picture() -> Any:
    return scene()


def save(path: Path, values: Any, **options: Any) -> Path:
    Image.fromarray(values).save(path, **options)
    return path


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "ppm", "webp"])
def test_formats_without_loss_give_the_same_pixels(tmp_path: Path, picture: Any, suffix: str) -> None:
    options = {"lossless": True} if suffix == "webp" else {}
    path = save(tmp_path / f"picture.{suffix}", picture, **options)
    np.testing.assert_allclose(read_image(path, CANVAS, True), picture / 255, atol=1e-6)


@pytest.mark.parametrize("suffix", ["jpg", "gif"])
def test_formats_with_loss_give_nearly_the_same_pixels(tmp_path: Path, picture: Any, suffix: str) -> None:
    path = save(tmp_path / f"picture.{suffix}", picture)
    assert np.abs(read_image(path, CANVAS, True) - picture / 255).mean() < 0.05


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "png", "tif"])
def test_exif_orientation(tmp_path: Path, picture: Any, orientation: int, suffix: str) -> None:
    """The file holds the sensor's view; viewers and encoders turn it upright."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    back = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Pillow's numbers of the inverse transposition
    image = Image.fromarray(picture)
    if orientation > 1:
        image = image.transpose(Image.Transpose(back[orientation]))
    path = tmp_path / f"picture.{suffix}"
    image.save(path, exif=exif, **({"quality": 95} if suffix == "jpg" else {}))
    assert image_size(path) == (48, 64)
    for in_color, expected in ((True, picture / 255), (False, picture @ [0.299, 0.587, 0.114] / 255)):
        found = read_image(path, CANVAS, in_color)
        assert found.shape == (48, 64, 3 if in_color else 1)
        assert np.abs(found.squeeze() - expected).mean() < 0.02


def test_damaged_exif_data_do_not_matter(tmp_path: Path, picture: Any) -> None:
    path = save(tmp_path / "picture.jpg", picture, exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    rows, problems = ImageEncoder().fit([path]).encode_files([path])
    assert len(rows) == 1
    assert not problems


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I", "I;16", "F"])
def test_modes(tmp_path: Path, picture: Any, mode: str) -> None:
    gray = Image.fromarray(picture).convert("L")
    if mode == "I;16":
        image = Image.fromarray(np.asarray(gray).astype(np.uint16) * 257)
    elif mode in ("I", "F"):
        image = Image.fromarray(np.asarray(gray).astype(np.int32 if mode == "I" else np.float32) * 257)
    elif mode == "1":
        image = gray.point(lambda value: 255 * (value > 127)).convert("1")
        gray = image.convert("L")
    else:
        image = gray.convert(mode)
    path = tmp_path / ("picture.jpg" if mode == "YCbCr" else "picture.tif")
    image.save(path)
    for in_color in (False, True):
        found = read_image(path, CANVAS, in_color)
        assert np.abs(found - np.asarray(gray)[:, :, None] / 255).mean() < 0.02


def test_sixteen_bits_keep_their_precision(tmp_path: Path) -> None:
    ramp = np.tile(np.linspace(30_000, 30_200, 64), (48, 1)).astype(np.uint16)
    path = save(tmp_path / "ramp.png", ramp)
    np.testing.assert_allclose(read_image(path, CANVAS, False)[:, :, 0], ramp / 65535, atol=1e-6)
    rows = ImageEncoder().fit_transform([path])
    assert rows.sum() > 0


def test_transparent_parts_are_white(tmp_path: Path, picture: Any) -> None:
    opacity = np.zeros((48, 64, 1), np.uint8)
    opacity[10:40, 10:40] = 255
    path = save(tmp_path / "picture.png", np.concatenate([picture, opacity], axis=2))
    np.testing.assert_allclose(read_image(path, CANVAS, True), np.where(opacity > 0, picture, 255) / 255, atol=1e-6)


def test_the_first_picture_of_many_counts(tmp_path: Path, picture: Any) -> None:
    others = [Image.fromarray(scene(seed=seed)) for seed in (1, 2)]
    for suffix in ("gif", "tif", "webp", "png"):
        path = save(tmp_path / f"many.{suffix}", picture, save_all=True, append_images=others)
        with Image.open(path) as image:
            assert image.n_frames == 3
        assert np.abs(read_image(path, CANVAS, True) - picture / 255).mean() < 0.05


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_large_pictures_are_scaled_without_aliasing(tmp_path: Path, suffix: str) -> None:
    small = scene(30, 40)
    large = np.asarray(Image.fromarray(small).resize((1600, 1200), Image.Resampling.BICUBIC)).astype(np.int16)
    stripes = 40 * (np.indices((1200, 1600)).sum(axis=0) % 2)[..., None] - 20
    path = save(tmp_path / f"large.{suffix}", (large + stripes).clip(0, 255).astype(np.uint8))
    found = read_image(path, (30, 40), True)
    assert np.abs(found - small / 255).mean() < 0.03


def test_files_and_arrays_have_nearly_the_same_rows(tmp_path: Path) -> None:
    pictures = [scene(60 + 10 * i, 80 + 7 * i, i) for i in range(6)]
    paths = [save(tmp_path / f"{i}.png", picture) for i, picture in enumerate(pictures)]
    encoder = ImageEncoder().fit(paths)
    of_files, of_arrays = encoder.transform(paths), encoder.transform(pictures)
    assert np.abs(of_files - of_arrays).sum() < 0.02 * of_files.sum()
    mixed = encoder.transform([paths[0], pictures[1], str(paths[2])])
    np.testing.assert_array_equal(mixed, np.stack([of_files[0], of_arrays[1], of_files[2]]))
    np.testing.assert_array_equal(encoder.transform(np.array([str(path) for path in paths])), of_files)


def test_the_number_of_threads_does_not_matter(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{i}.jpg", scene(100 + i, 150, i)) for i in range(20)]
    encoders = [ImageEncoder(n_jobs=n_jobs).fit(paths) for n_jobs in (1, 4)]
    np.testing.assert_array_equal(*[encoder.transform(paths) for encoder in encoders])
    assert encoders[0].get_state() == encoders[1].get_state()


@pytest.fixture
def folder(tmp_path: Path) -> tuple[list[Path], dict[str, str]]:
    """Return 24 paths, every fourth of an unreadable file, and the reasons."""
    paths = [save(tmp_path / f"{i:02}.png", scene(seed=i)) for i in range(18)]
    whole = (tmp_path / "00.png").read_bytes()
    header = whole[12:16] + (60_000).to_bytes(4, "big") * 2 + whole[24:29]
    bad = {
        "empty.png": (b"", "is empty"),
        "notes.txt": (b"notes", "is not a picture in a known format"),
        "torn.png": (whole[: len(whole) // 2], "is damaged"),
        "huge.png": (whole[:12] + header + crc32(header).to_bytes(4, "big") + whole[33:], "pixels"),
    }
    for name, (content, _) in bad.items():
        (tmp_path / name).write_bytes(content)
    reasons = {name: reason for name, (_, reason) in bad.items()}
    (tmp_path / "folder.png").mkdir()
    reasons |= {"folder.png": "is a folder", "missing.png": "does not exist"}
    for i, name in enumerate(reasons):
        paths.insert(4 * i, tmp_path / name)
    return paths, reasons


def test_bad_files_are_left_out_and_listed(folder: tuple[list[Path], dict[str, str]]) -> None:
    paths, reasons = folder
    encoder = ImageEncoder().fit(paths)
    rows, problems = encoder.encode_files(paths)
    assert [problem.index for problem in problems] == [0, 4, 8, 12, 16, 20]
    for problem in problems:
        assert problem.name == str(paths[problem.index])
        assert reasons[paths[problem.index].name] in problem.reason
    bad = {problem.index for problem in problems}
    good = [path for i, path in enumerate(paths) if i not in bad]
    np.testing.assert_array_equal(rows, encoder.transform(good))


def test_transform_lists_all_bad_files(folder: tuple[list[Path], dict[str, str]]) -> None:
    paths, _ = folder
    encoder = ImageEncoder().fit(paths)
    with pytest.raises(UnreadableImagesError, match=r"6 of 24 pictures cannot be read:(.|\n)*and 1 more") as caught:
        encoder.transform(paths)
    assert len(caught.value.problems) == 6
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


def test_nothing_but_bad_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(UnreadableImagesError, match=r"1 of 1 pictures cannot be read:\n.*notes.txt is not a picture"):
        ImageEncoder().fit([tmp_path / "notes.txt"])


def test_bad_arrays_are_problems_too() -> None:
    good = scene()
    bad: list[Any] = [np.zeros((3, 0)), np.full((4, 4), np.inf), np.zeros((4, 4, 5)), np.full((2, 2), "a")]
    encoder = ImageEncoder().fit([good, *bad])
    with pytest.raises(UnreadableImagesError, match="array 1 has no pixels") as caught:
        encoder.transform([good, *bad])
    assert [problem.index for problem in caught.value.problems] == [1, 2, 3, 4]


def test_the_bound_on_pixels_is_checked_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "picture.png", scene())
    monkeypatch.setattr(module, "MOST_PIXELS", 1000)
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(ImageFileError, match="64 x 48 pixels"):
        read_image(path, CANVAS, True)


def test_memory_is_checked_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "picture.png", np.zeros((3000, 2000), np.uint8))
    monkeypatch.setattr(module, "free_memory", lambda: 10**7)
    with pytest.raises(ImageFileError, match="decoding needs"):
        read_image(path, CANVAS, True)


def test_warnings_of_decoders_are_silent(tmp_path: Path) -> None:
    path = save(tmp_path / "picture.png", scene(20, 20))
    truncated_palette = tmp_path / "large.png"
    save(truncated_palette, np.zeros((9500, 9500), np.uint8))  # Pillow warns of 90 million pixels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = ImageEncoder().fit([path, truncated_palette])
        rows, problems = encoder.encode_files([path, truncated_palette])
    assert len(rows) == 1
    assert "more than 64 million" in problems[0].reason


def test_other_items_are_refused() -> None:
    with pytest.raises(TypeError, match="one path"):
        ImageEncoder().fit(Path("photo.jpg"))
