"""Pictures of rows, for any values."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from tnesi.data import open_data
from tnesi.data.image_files import ImageFileError
from tnesi.studio.originals import shown_rows
from tnesi.studio.pictures import ImageFiles, NumberRows
from tnesi.studio.shown import LARGEST_SIDE

rows = arrays(np.float64, (3, 6), elements=st.floats(0, np.finfo(np.float64).max, allow_subnormal=True))


def of_numbers(X: npt.NDArray[np.float64]) -> NumberRows:
    shown = shown_rows(open_data(X), None)
    assert isinstance(shown, NumberRows)
    return shown


@given(rows)
def test_details_are_json_and_finite(X: npt.NDArray[np.float64]) -> None:
    for i, row in enumerate(X):
        details = of_numbers(X).details(i)
        json.dumps(details, allow_nan=False)
        assert np.allclose(np.minimum(row, 1e300), details["profile"], rtol=1e-3)


@given(rows, st.integers(1, LARGEST_SIDE))
def test_pictures_of_any_numbers(X: npt.NDArray[np.float64], size: int) -> None:
    image = of_numbers(X.reshape(3, 2, 3))
    assert image.kind == "image"
    large = Image.open(io.BytesIO(image.large(1, size)[0]))
    assert max(large.size) <= max(size, 3)
    sheet = Image.open(io.BytesIO(image.rows_sheet([0, 2])))
    assert sheet.size == (2 * image.tile[1], image.tile[0])


@pytest.mark.parametrize("largest", [1.0, 1e-300, 1.7e308])
def test_the_darkest_pixel_is_the_largest_value(largest: float) -> None:
    X = np.zeros((2, 2, 3))
    X[:, 1, 1] = largest
    pixels = np.asarray(Image.open(io.BytesIO(of_numbers(X).large(0, 3)[0])))
    assert pixels.tolist() == [[255, 255, 255], [255, 0, 255]]


def test_image_files_are_upright_in_color_and_fit(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6  # the picture has to be turned to the right
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, :100] = (200, 0, 0)
    pixels[:, 100:] = (0, 0, 200)
    Image.fromarray(pixels).save(tmp_path / "phone.jpg", exif=turned, quality=95)
    Image.fromarray(pixels[:4, 98:102]).save(tmp_path / "tiny.png")
    (tmp_path / "gone.png").write_bytes(b"")
    shown = ImageFiles([tmp_path / name for name in ("phone.jpg", "tiny.png", "gone.png")])
    content, media_type = shown.large(0, 64)
    assert media_type == "image/jpeg"
    large = np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)
    assert large.shape == (64, 32, 3)
    assert large[:24, :, 0].min() > 150 > 50 > large[-24:, :, 0].max()  # red above, blue below
    assert Image.open(io.BytesIO(shown.large(0, LARGEST_SIDE)[0])).size == (100, 200)  # at most its own size
    assert Image.open(io.BytesIO(shown.large(1, 280)[0])).size == (280, 280)  # pixels as squares
    sheet = np.asarray(Image.open(io.BytesIO(shown.rows_sheet([0, 1, 2])))).astype(int)
    assert sheet.shape == (64, 192, 4)
    assert sheet[32, 0, 3] == 0 < sheet[32, 32, 3]  # transparent beside a picture in portrait format
    assert sheet[8, 32, 0] > 150 > sheet[56, 32, 0]
    assert np.ptp(sheet[:, 128:]) == 0  # an unreadable file is a gray tile
    with pytest.raises(ImageFileError, match="is empty"):
        shown.large(2, 64)
