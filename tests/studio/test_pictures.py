"""Rows as a person sees them: whatever their numbers are, there is something to show."""

from __future__ import annotations

import io
import json

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from tnesi.data import open_data
from tnesi.studio.pictures import LARGEST_SIDE, Shown

rows = arrays(np.float64, (3, 6), elements=st.floats(0, np.finfo(np.float64).max, allow_subnormal=True))


@given(rows)
def test_details_are_json_and_finite(X: npt.NDArray[np.float64]) -> None:
    for row in X:
        details = Shown(open_data(X)).details(row)
        json.dumps(details, allow_nan=False)
        assert np.allclose(np.minimum(row, 1e300), details["profile"], rtol=1e-3)


@given(rows, st.integers(1, LARGEST_SIDE))
def test_pictures_of_any_numbers(X: npt.NDArray[np.float64], size: int) -> None:
    image = Shown(open_data(X.reshape(3, 2, 3)))
    assert image.kind == "image"
    large = Image.open(io.BytesIO(image.large(1, size)))
    assert max(large.size) <= max(size, 3)
    sheet = Image.open(io.BytesIO(image.rows_sheet([0, 2])))
    assert sheet.size == (2 * image.tile[1], image.tile[0])


@pytest.mark.parametrize("largest", [1.0, 1e-300, 1.7e308])
def test_the_darkest_pixel_is_the_largest_value(largest: float) -> None:
    X = np.zeros((2, 2, 3))
    X[:, 1, 1] = largest
    pixels = np.asarray(Image.open(io.BytesIO(Shown(open_data(X)).large(0, 3))))
    assert pixels.tolist() == [[255, 255, 255], [255, 0, 255]]
