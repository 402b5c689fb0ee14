"""Histograms of gradients and colors: native and reference agree, and both have the symmetries of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi import kernels
from tnesi.kernels import reference

if kernels.NATIVE:
    from tnesi.kernels import _native  # type: ignore[attr-defined]

    BACKENDS = [_native, reference]
else:
    BACKENDS = [reference]

backends = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.__name__.rsplit(".", 1)[1])


def gradients(backend: Any, x: Any, cells: Any, n: int = 8, is_signed: bool = True, boxes: Any = None) -> Any:
    out = np.full((len(x), *cells, n), np.nan, np.float32)
    backend.oriented_gradients(x, boxes, is_signed, out, 1)
    return out


def colors(backend: Any, x: Any, cells: Any, boxes: Any = None) -> Any:
    out = np.full((len(x), *cells, 8), np.nan, np.float32)
    backend.color_histograms(x, boxes, out, 1)
    return out


@st.composite
def pictures(draw: st.DrawFn, channels: Any = None) -> tuple[Any, Any, tuple[int, int]]:
    """Pictures of any size, smooth or noisy, with boxes or without, and a grid of cells, even finer than the pixels."""
    n, height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from([2, 5, 10_000]))
    shape = (n, height, width, channels or draw(st.sampled_from([1, 3])))
    x = (rng.integers(0, levels, shape) / (levels - 1)).astype(np.float32)
    boxes = None
    if draw(st.booleans()):
        size = rng.integers(1, [height + 1, width + 1], (n, 2))
        boxes = np.hstack([rng.integers(0, [height, width] - size + 1), size]).astype(np.int32)
    return x, boxes, (draw(st.integers(1, 9)), draw(st.integers(1, 9)))


@pytest.mark.skipif(not kernels.NATIVE, reason="the NumPy kernels are in use")
@given(pictures(), st.integers(2, 12), st.booleans())
def test_native_gradients_are_those_of_the_reference(p: Any, n_orientations: int, is_signed: bool) -> None:
    x, boxes, cells = p
    native = gradients(_native, x, cells, n_orientations, is_signed, boxes)
    expected = gradients(reference, x, cells, n_orientations, is_signed, boxes)
    np.testing.assert_allclose(native, expected, atol=3e-5 * (1 + x[0].size))


@pytest.mark.skipif(not kernels.NATIVE, reason="the NumPy kernels are in use")
@given(pictures(3))
def test_native_colors_are_those_of_the_reference(p: Any) -> None:
    x, boxes, cells = p
    native, expected = (colors(backend, x, cells, boxes) for backend in (_native, reference))
    np.testing.assert_allclose(native, expected, atol=1e-6 * x[0].size)


@pytest.mark.skipif(not kernels.NATIVE, reason="the NumPy kernels are in use")
@given(pictures(3), st.integers(2, 5))
def test_the_number_of_threads_changes_no_bit(p: Any, n_threads: int) -> None:
    x, boxes, cells = p
    x = np.concatenate([x] * 4)
    boxes = None if boxes is None else np.concatenate([boxes] * 4)
    out = np.empty((2, len(x), *cells, 8), np.float32)
    for i, threads in enumerate((1, n_threads)):
        kernels.oriented_gradients(x, boxes, True, out[i], threads)
    np.testing.assert_array_equal(out[0], out[1])
    for i, threads in enumerate((1, n_threads)):
        kernels.color_histograms(x, boxes, out[i], threads)
    np.testing.assert_array_equal(out[0], out[1])


@backends
@given(st.integers(0, 2**32), st.sampled_from([4, 8, 12]))
def test_a_quarter_turn_permutes_orientations(backend: Any, seed: int, n_orientations: int) -> None:
    x = np.random.default_rng(seed).random((2, 12, 12, 1), dtype=np.float32)
    upright = gradients(backend, x, (3, 3), n_orientations)
    turned = gradients(backend, np.ascontiguousarray(np.rot90(x, axes=(2, 1))), (3, 3), n_orientations)
    expected = np.roll(np.rot90(upright, axes=(2, 1)), n_orientations // 4, axis=3)
    np.testing.assert_allclose(turned, expected, atol=2e-4)


@backends
@given(st.integers(0, 2**32))
def test_moving_by_a_cell_moves_the_histograms(backend: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.zeros((2, 24, 24, 1), np.float32)
    x[0, 6:14, 6:14] = rng.random((8, 8, 1))
    x[1, 6:14, 10:18] = x[0, 6:14, 6:14]
    here, there = gradients(backend, x, (6, 6))
    np.testing.assert_allclose(there[:, 1:], here[:, :-1], atol=1e-5)


@backends
@given(st.integers(0, 2**32), st.floats(0.01, 100))
def test_brightness_scales_gradients_by_a_power(backend: Any, seed: int, factor: float) -> None:
    x = np.random.default_rng(seed).random((1, 9, 9, 1), dtype=np.float32)
    bright = gradients(backend, x * np.float32(factor), (2, 2))
    np.testing.assert_allclose(bright, factor**0.75 * gradients(backend, x, (2, 2)), rtol=2e-4, atol=1e-4)


@backends
@given(st.integers(0, 2**32))
def test_opposite_directions_are_one_orientation(backend: Any, seed: int) -> None:
    x = np.random.default_rng(seed).random((1, 9, 9, 1), dtype=np.float32)
    directions, orientations = gradients(backend, x, (2, 2), 8), gradients(backend, x, (2, 2), 4, False)
    np.testing.assert_allclose(directions[..., :4] + directions[..., 4:], orientations, atol=1e-4)


@backends
def test_flat_pictures_have_no_gradients(backend: Any) -> None:
    x = np.full((3, 7, 7, 3), 0.3, np.float32)
    np.testing.assert_array_equal(gradients(backend, x, (2, 2)), 0)


@backends
def test_infinite_pixels_spoil_their_picture_only(backend: Any) -> None:
    x = np.zeros((2, 8, 8, 1), np.float32)
    x[0, 3, 4] = x[0, 4, 3] = np.inf  # the direction at (3, 3) is not a number
    x[1, 3, 3] = 1
    with np.errstate(invalid="ignore"):
        own = gradients(backend, x, (2, 2))
    np.testing.assert_array_equal(own[1], gradients(backend, x[1:], (2, 2))[0])


@backends
def test_the_direction_is_where_it_gets_brighter(backend: Any) -> None:
    ramp = np.linspace(0, 1, 9, dtype=np.float32) ** (4 / 3)  # of which x^(3/4) has equal differences
    x = np.stack([np.tile(ramp, (9, 1)), np.tile(ramp[:, None], (1, 9)), np.tile(ramp[::-1], (9, 1))])[..., None]
    found = gradients(backend, x, (1, 1)).reshape(3, 8)
    np.testing.assert_array_equal(found.argmax(axis=1), [0, 2, 4])
    np.testing.assert_allclose(found.max(axis=1), found.sum(axis=1), rtol=1e-4)


@backends
def test_the_strongest_channel_counts(backend: Any) -> None:
    gray = np.random.default_rng(0).random((1, 8, 8, 1), dtype=np.float32)
    x = np.concatenate([0.01 * gray, gray, 0.5 * np.ones_like(gray)], axis=3)
    np.testing.assert_allclose(gradients(backend, x, (2, 2)), gradients(backend, gray, (2, 2)), atol=1e-4)


@backends
@given(pictures(3))
def test_what_is_outside_of_the_box_does_not_count(backend: Any, p: Any) -> None:
    x, boxes, cells = p
    boxes = np.tile(np.array([0, 0, *x.shape[1:3]], np.int32), (len(x), 1)) if boxes is None else boxes
    other = np.random.default_rng(0).random(x.shape, dtype=np.float32)
    for n, (top, left, height, width) in enumerate(boxes):
        other[n, top : top + height, left : left + width] = x[n, top : top + height, left : left + width]
    np.testing.assert_array_equal(
        gradients(backend, x, cells, boxes=boxes), gradients(backend, other, cells, boxes=boxes)
    )
    np.testing.assert_array_equal(colors(backend, x, cells, boxes), colors(backend, other, cells, boxes))


@backends
def test_corners_of_the_color_cube(backend: Any) -> None:
    x = np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)], np.float32).reshape(8, 1, 1, 3)
    x = np.tile(x, (1, 4, 4, 1))
    np.testing.assert_allclose(colors(backend, x, (1, 1)).reshape(8, 8) / 9, np.eye(8), atol=1e-6)


@backends
@given(pictures(3))
def test_colors_of_a_pixel_sum_to_one(backend: Any, p: Any) -> None:
    x, _, _ = p
    inner = np.pad(x, ((0, 0), (x.shape[1], x.shape[1]), (x.shape[2], x.shape[2]), (0, 0)))
    found = colors(backend, inner, (3, 3))
    np.testing.assert_allclose(found.sum(axis=3), colors(backend, np.zeros_like(inner), (3, 3)).sum(axis=3), rtol=1e-4)


@pytest.mark.skipif(not kernels.NATIVE, reason="the NumPy kernels are in use")
@pytest.mark.parametrize("box", [(0, 0, 5, 4), (-1, 0, 2, 2), (0, 0, 0, 2), (2, 0, 3, 1), (2**31 - 1, 0, 2**31 - 1, 1)])
def test_boxes_beyond_the_canvas_are_refused(box: tuple[int, ...]) -> None:
    x, out = np.zeros((1, 4, 4, 3), np.float32), np.empty((1, 2, 2, 8), np.float32)
    with pytest.raises(ValueError, match="boxes within the canvas"):
        kernels.oriented_gradients(x, np.array([box], np.int32), True, out, 1)
    with pytest.raises(ValueError, match="boxes within the canvas"):
        kernels.color_histograms(x, np.array([box], np.int32), out, 1)
