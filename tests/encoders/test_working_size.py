"""The working size of pictures, chosen without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

from tnesi import SimpletronClassifier
from tnesi.encoders import ImageEncoder
from tnesi.encoders.working_size import working_size

Y, X = np.mgrid[:128, :128].astype(np.float32)


def stripes(n: int, period: float) -> tuple[Any, Any]:
    """Return pictures of stripes in two directions, with uneven light and noise."""
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 2
    wave = np.sin(2 * np.pi / period * np.where(kind[:, None, None], X, Y) + rng.uniform(0, 6, (n, 1, 1)))
    light = rng.uniform(-40, 40, (n, 1, 1)) * X / 128
    return (128 + 40 * wave + light + rng.normal(0, 8, wave.shape)).clip(0, 255).astype(np.uint8), kind


def crops() -> list[Any]:
    """Return parts of two photographs, a quarter to a third of each."""
    rng = np.random.default_rng(0)
    photographs = [photograph for photograph in load_sample_images().images for _ in range(10)]
    corners = rng.integers(0, (227, 440), (20, 2)).tolist()
    return [photograph[y : y + 200, x : x + 200] for photograph, (y, x) in zip(photographs, corners, strict=True)]


def test_coarse_pictures_and_photographs_are_scaled_down() -> None:
    assert ImageEncoder().fit(stripes(40, 40)[0]).image_shape_ == (32, 32)
    assert ImageEncoder().fit(crops()).image_shape_ == (32, 32)


@pytest.mark.parametrize("period", [5, 7])
def test_fine_textures_are_kept(period: float) -> None:
    images, kind = stripes(60, period)
    labels = np.where(np.arange(60) < 4, kind, -1)
    rows = ImageEncoder().fit_transform(images)
    np.testing.assert_array_equal(SimpletronClassifier(random_state=0).fit(rows, labels).predict(rows), kind)
    assert max(ImageEncoder().fit(images).image_shape_) > 32


def test_files_are_measured_as_arrays_are(tmp_path: Path) -> None:
    images, _ = stripes(20, 6)
    for i, image in enumerate(images):
        Image.fromarray(image[:96]).save(tmp_path / f"{i:02}.png")
    paths = sorted(tmp_path.iterdir())
    assert ImageEncoder().fit(paths).image_shape_ == ImageEncoder().fit(images[:, :96]).image_shape_


def test_a_few_fine_pictures_among_others_do_not_count() -> None:
    coarse, fine = stripes(40, 40)[0], stripes(40, 5)[0]
    assert ImageEncoder().fit([*coarse[:38], *fine[:2]]).image_shape_ == (32, 32)
    assert max(ImageEncoder().fit([*coarse[:20], *fine[:20]]).image_shape_) > 32


def test_small_pictures_are_not_scaled() -> None:
    images = np.random.default_rng(0).integers(0, 255, (20, 40, 40), dtype=np.uint8)
    assert ImageEncoder().fit(images).image_shape_ == (40, 40)
    assert ImageEncoder().fit(images[:, :28, :28]).image_shape_ == (28, 28)


def test_empty_pictures_lose_nothing() -> None:
    assert working_size([np.zeros((64, 128, 1), np.float32)], 128) == 32
