"""ImageEncoder on arrays: any type, size and layout; learned attributes; scikit-learn's conventions."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, load_sample_images
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from tnesi import SimpletronClassifier
from tnesi.encoders import ImageEncoder


def shapes(n: int, size: int = 24, seed: int = 0) -> tuple[Any, Any]:
    """Return noisy disks and squares in random colors and places, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    across, down = np.meshgrid(np.arange(size), np.arange(size))
    images = np.empty((n, size, size, 3))
    for i in range(n):
        x0, y0 = size / 2 + rng.uniform(-2, 2, 2)
        dx, dy = np.abs(across - x0), np.abs(down - y0)
        inside = (np.hypot(dx, dy) if y[i] else np.maximum(dx, dy) * 1.15) < size / 3.2
        images[i] = np.where(inside[..., None], rng.uniform(150, 250, 3), rng.uniform(20, 90, 3))
    return (images + rng.normal(0, 4, images.shape)).clip(0, 255).astype(np.uint8), y


@pytest.fixture(scope="module")
def photographs() -> Any:
    """Return parts of the two photographs that come with scikit-learn, 256 x 192 pixels each."""
    parts = [
        photograph[top : top + 192, left : left + 256]
        for photograph in load_sample_images().images
        for top in range(0, 235, 60)
        for left in range(0, 384, 60)
    ]
    return np.stack(parts)


def test_rows_are_non_negative_and_of_the_announced_length(photographs: Any) -> None:
    for images in (load_digits().images, shapes(20)[0], photographs):
        encoder = ImageEncoder()
        rows = encoder.fit_transform(images)
        assert rows.dtype == np.float32
        assert rows.min() >= 0
        assert np.isfinite(rows).all()
        names = encoder.get_feature_names_out()
        assert rows.shape == (len(images), len(names))
        assert len(set(names)) == len(names)


def test_photographs_are_shaded_and_colored_and_digits_are_not(photographs: Any) -> None:
    encoder = ImageEncoder().fit(photographs)
    assert encoder.shaded_
    assert encoder.colored_
    assert encoder.image_shape_ == (24, 32)
    encoder = ImageEncoder().fit(load_digits().images)
    assert not encoder.shaded_
    assert not encoder.colored_
    assert encoder.image_shape_ == (24, 24)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, np.int64])
def test_the_type_of_the_values_does_not_matter(dtype: Any) -> None:
    images, _ = shapes(30)
    expected = ImageEncoder().fit_transform(images)
    scale = 257 if dtype is np.uint16 else 1
    rows = ImageEncoder().fit_transform((images.astype(np.float64) * scale).astype(dtype))
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-5)
    shares = ImageEncoder().fit_transform(images / 255)
    np.testing.assert_allclose(shares, expected, rtol=1e-4, atol=1e-5)


def test_booleans_are_black_and_white() -> None:
    images = load_digits().images > 7
    np.testing.assert_allclose(
        ImageEncoder().fit_transform(images), ImageEncoder().fit_transform(images * np.uint8(255)), rtol=1e-5
    )


def test_floats_around_zero_are_shifted() -> None:
    images = shapes(20)[0] / 255
    rows = ImageEncoder().fit_transform(images * 2 - 1)
    assert rows.min() >= 0
    expected = ImageEncoder().fit_transform((images - images.min()) / np.ptp(images))
    assert np.corrcoef(rows.ravel(), expected.ravel())[0, 1] > 0.99


def test_layouts_are_equivalent() -> None:
    digits = load_digits()
    expected = ImageEncoder().fit_transform(digits.images)
    for other in (digits.images[..., None], list(digits.images), digits.images.tolist()):
        np.testing.assert_allclose(ImageEncoder().fit_transform(other), expected, rtol=1e-5, atol=1e-6)
    for flat in (digits.data, pd.DataFrame(digits.data), csr_array(digits.data)):
        encoder = ImageEncoder(shape=(8, 8))
        np.testing.assert_array_equal(encoder.fit_transform(flat), expected)
        assert encoder.n_features_in_ == 64
    colored, _ = shapes(20)
    np.testing.assert_array_equal(
        ImageEncoder((24, 24, 3)).fit_transform(colored.reshape(20, -1)), ImageEncoder().fit_transform(colored)
    )


def test_gray_pictures_with_three_channels_are_gray() -> None:
    images = load_digits().images
    encoder = ImageEncoder().fit(np.repeat(images[..., None], 3, axis=3))
    assert not encoder.colored_
    np.testing.assert_allclose(
        encoder.transform(np.repeat(images[..., None], 3, axis=3)),
        ImageEncoder().fit_transform(images),
        rtol=1e-4,
        atol=1e-4,
    )


def test_color_can_be_chosen() -> None:
    images, _ = shapes(20)
    with_color, without = ImageEncoder(color=True).fit(images), ImageEncoder(color=False).fit(images)
    assert with_color.colored_
    assert not without.colored_
    assert with_color.transform(images).shape[1] > without.transform(images).shape[1]
    gray = images.mean(axis=3)
    assert with_color.transform(gray).shape == with_color.transform(images).shape
    assert ImageEncoder(color=True).fit(gray).colored_


def test_transparent_parts_are_white() -> None:
    images, _ = shapes(20)
    hidden = np.zeros((20, 24, 24, 1), np.uint8)
    hidden[:, 4:20, 4:20] = 255
    on_white = np.where(hidden > 0, images, 255).astype(np.uint8)
    encoder = ImageEncoder().fit(on_white)
    np.testing.assert_allclose(
        encoder.transform(np.concatenate([images, hidden], axis=3)), encoder.transform(on_white), rtol=1e-4, atol=1e-6
    )


def test_gray_pictures_do_not_depend_on_brightness() -> None:
    images = load_digits().images
    encoder = ImageEncoder().fit(images)
    bright, dark = encoder.transform(images), encoder.transform(images / 3)
    np.testing.assert_allclose(
        dark / dark.sum(axis=1, keepdims=True), bright / bright.sum(axis=1, keepdims=True), atol=1e-5
    )


def test_blank_pictures_are_all_zero() -> None:
    images = load_digits().images.copy()
    images[:3] = 0
    images[3:5] = 9
    rows = ImageEncoder().fit_transform(images)
    np.testing.assert_array_equal(rows[:5], 0)
    assert (rows[5:].sum(axis=1) > 0).all()


@pytest.mark.parametrize("noise", [0, 3])
def test_red_and_green_squares_differ(noise: float) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    images = np.zeros((60, 20, 20, 3))
    images[np.arange(60), :, :, y] = rng.uniform(120, 255, 60)[:, None, None]
    images = (images + rng.normal(0, noise, images.shape)).clip(0, 255).astype(np.uint8)
    rows = ImageEncoder().fit_transform(images)
    labels = np.full(60, -1)
    labels[:2] = y[:2]
    found = SimpletronClassifier(random_state=0).fit(rows, labels).predict(rows)
    np.testing.assert_array_equal(found, y)


def test_black_and_white_squares_among_colored_ones_differ() -> None:
    images = np.zeros((4, 10, 10, 3), np.uint8)
    images[1] = 255
    images[2, :, :, 0] = images[3, :, :, 2] = 200
    rows = ImageEncoder().fit_transform(images)
    shares = rows / rows.sum(axis=1, keepdims=True)
    distances = np.abs(shares[:, None] - shares).sum(axis=2)
    assert distances[~np.eye(4, dtype=bool)].min() > 1


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (2, 2), (3, 5), (8, 8), (200, 100), (7, 300)])
def test_any_size(size: tuple[int, int]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, *size, 3), dtype=np.uint8)
    encoder = ImageEncoder().fit(images)
    rows = encoder.transform(images)
    longer = 24 if max(size) <= 16 else min(max(size), 96)  # small ones are enlarged; noise has nothing but details
    assert max(encoder.image_shape_) == longer
    assert rows.shape == (5, len(encoder.get_feature_names_out()))
    assert np.isfinite(rows).all()


def test_larger_copies_have_nearly_the_same_rows(photographs: Any) -> None:
    encoder = ImageEncoder(size=32).fit(photographs)
    small = encoder.transform(photographs)
    large = encoder.transform(photographs.repeat(3, axis=1).repeat(3, axis=2))
    assert np.abs(small - large).sum() < 0.1 * small.sum()


def test_a_frame_of_nothing_has_no_edges() -> None:
    """A flat portrait picture on a square canvas: all zero, also at its borders."""
    flat = np.full((30, 20), 200, np.uint8)
    textured = np.random.default_rng(0).integers(0, 256, (30, 30), dtype=np.uint8)
    encoder = ImageEncoder().fit([textured, flat, flat.T])
    assert encoder.image_shape_ == (30, 30)
    np.testing.assert_array_equal(encoder.transform([flat, flat.T]), 0)


def test_the_canvas_has_the_format_of_most_pictures() -> None:
    wide, tall = np.zeros((14, 28), np.uint8), np.zeros((28, 14), np.uint8)
    assert ImageEncoder().fit([wide] * 20).image_shape_ == (14, 28)
    assert ImageEncoder().fit([wide] * 19 + [tall]).image_shape_ == (14, 28)
    assert ImageEncoder().fit([wide, tall] * 10).image_shape_ == (28, 28)
    assert ImageEncoder(size=16).fit([wide] * 20).image_shape_ == (8, 16)


@given(st.integers(1, 5), st.integers(0, 2**32))
def test_rows_depend_neither_on_threads_nor_on_other_rows(n_jobs: int, seed: int) -> None:
    images, _ = shapes(12, 17, seed)
    encoder = ImageEncoder(n_jobs=1).fit(images)
    expected = encoder.transform(images)
    np.testing.assert_array_equal(encoder.set_params(n_jobs=n_jobs).transform(images), expected)
    np.testing.assert_array_equal(np.concatenate([encoder.transform(images[i : i + 5]) for i in (0, 5, 10)]), expected)
    state = clone(encoder).fit(images).get_state()
    assert state == encoder.get_state()


def test_scaled_rows_depend_neither_on_threads_nor_on_other_rows() -> None:
    pictures = [np.random.default_rng(i).integers(0, 256, (60 + 9 * i, 80 + 7 * i, 3), np.uint8) for i in range(8)]
    encoder = ImageEncoder(n_jobs=1).fit(pictures)
    expected = encoder.transform(pictures)
    for n_jobs in (1, 2, 5):
        encoder.set_params(n_jobs=n_jobs)
        np.testing.assert_array_equal(encoder.transform(pictures), expected)
        np.testing.assert_array_equal(encoder.transform(pictures[3:5]), expected[3:5])


def test_mapped_arrays_are_read_in_parts(tmp_path: Any) -> None:
    images, _ = shapes(50)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    np.testing.assert_array_equal(ImageEncoder().fit_transform(mapped), ImageEncoder().fit_transform(images))


def test_state_survives_json_and_pickle(photographs: Any) -> None:
    for encoder, images in [
        (ImageEncoder(), photographs),
        (ImageEncoder((8, 8), size=8, color=False), load_digits().data),
        (ImageEncoder(), shapes(10)[0] / 128 - 1),
    ]:
        rows = encoder.fit_transform(images)
        state = json.loads(json.dumps(encoder.get_state()))
        restored = ImageEncoder.from_state(state)
        np.testing.assert_array_equal(restored.transform(images), rows)
        assert restored.get_params() == encoder.get_params()
        assert list(restored.get_feature_names_out()) == list(encoder.get_feature_names_out())
        assert restored.get_state() == encoder.get_state()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(images), rows)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("encoder", "TextEncoder"),
        ("version", 0),
        ("parameters", None),
        ("parameters.shape", [0, 8]),
        ("parameters.size", 100_000),
        ("rows", {}),
        ("rows.canvas", [10**9, 10**9]),
        ("rows.canvas", [8]),
        ("rows.energy", float("nan")),
        ("rows.energy", "much"),
        ("rows.shaded", 1),
        ("rows.unknown", 1),
        ("levels", [1, 0]),
        ("n_features_in", "all"),
    ],
)
def test_a_damaged_state_is_refused(key: str, value: Any) -> None:
    state = ImageEncoder().fit(load_digits().images).get_state()
    part = state
    *groups, name = key.split(".")
    for group in groups:
        part = part[group]
    part[name] = value
    with pytest.raises(ValueError, match="ImageEncoder"):
        ImageEncoder.from_state(state)


def test_scikit_learn_conventions() -> None:
    digits = load_digits()
    encoder = ImageEncoder((8, 8))
    assert clone(encoder).get_params() == encoder.get_params()
    with pytest.raises(NotFittedError):
        encoder.transform(digits.data)
    frame = clone(encoder).set_output(transform="pandas").fit_transform(digits.data)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns[0] == "direction_0_0_0"
    labels = np.where(np.arange(len(digits.target)) < 300, digits.target, -1)
    model = make_pipeline(encoder, SimpletronClassifier(random_state=0)).fit(digits.data, labels)
    assert model.score(digits.data[300:], digits.target[300:]) > 0.9


def test_shapes_are_found_whatever_their_colors() -> None:
    images, y = shapes(300)
    labels = np.where(np.arange(300) < 20, y, -1)
    rows = ImageEncoder().fit_transform(images)
    found = SimpletronClassifier(random_state=0).fit(rows, labels).predict(rows)
    assert np.mean(found != y) < 0.1


@pytest.mark.parametrize(
    ("images", "parameters", "message"),
    [
        (np.zeros((3, 64)), {}, "pass shape="),
        (np.zeros((3, 64)), {"shape": (8, 9)}, "64 features, but"),
        (np.zeros((3, 64)), {"shape": (8,)}, "shape="),
        (np.zeros((3, 8, 8, 2)), {}, "pass pictures as"),
        (np.zeros((3, 0, 8)), {}, "no pixels"),
        (np.zeros((0, 8, 8)), {}, "no pictures"),
        ([], {}, "pass"),
        (np.full((3, 8, 8), np.nan), {}, "NaN or infinity"),
        (np.full((3, 8, 8), 1j), {}, "pass numbers"),
        (np.zeros((3, 8, 8)), {"size": 0}, "size=0"),
        (np.zeros((3, 8, 8)), {"color": "yes"}, "color='yes'"),
        (np.zeros((3, 8, 8)), {"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_errors(images: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ImageEncoder(**parameters).fit(images)


def test_a_single_path_is_not_a_list() -> None:
    with pytest.raises(TypeError, match="list of paths"):
        ImageEncoder().fit("photo.jpg")
