"""Rows that are shown as pictures: numbers (as images or bars), encoded images, and image files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from tnesi.data.image_files import ImageFileError
from tnesi.encoders.image_files import image_size, read_image
from tnesi.model.rows import Matrix, dense
from tnesi.report.examples import PROFILE_SHAPE, gray_picture, png
from tnesi.studio.first_layer import FirstLayer
from tnesi.studio.shown import MOST_WORDS, Features, Json, Kind, Shown, ShownPictures, summable
from tnesi.types import Array

SHEET_COLUMNS = 16
_TILE = 64
"""Pixels of the longer side of a tile, at most."""
_MOST_BARS = 256
_COMPRESS = 4
_QUALITY = 90
_KEPT_TILES = 4096
_UNREADABLE = 128
"""Gray level of a tile whose file is gone."""


class NumberRows(ShownPictures):
    """Rows as the model sees them: images in gray, or bars."""

    draws_fields = True

    def __init__(self, values: Matrix, image_shape: tuple[int, int] | None, names: Sequence[str] | None) -> None:
        self.n_rows, n_features = values.shape
        self._values, self._names = values, names
        self.kind = "image" if is_drawn(image_shape) else "profile"
        self._shape = image_shape if is_drawn(image_shape) and image_shape else (1, n_features)
        self.features = None if names is None else Features(names)
        height, width = self._shape if self.kind == "image" else PROFILE_SHAPE
        factor = min(1.0, _TILE / max(height, width))
        self.tile = max(1, round(height * factor)), max(1, round(width * factor))

    def values(self, rows: Sequence[int]) -> Array:
        """Return some rows, dense."""
        return dense(self._values[np.asarray(rows, dtype=np.int64)])

    def details(self, row: int, *, whole: bool = False) -> Json:
        return self._described(self.values([row]))

    def field_details(self, layer: FirstLayer, field: int) -> Json:
        return self._described(layer.fields(np.array([field])))

    def _described(self, values: Array) -> Json:
        values = summable(values)
        if self.kind == "image":
            return {"profile": None, "profile_names": None, "words": None}
        return {
            "profile": self._profile(values),
            "profile_names": self._names if values.size <= _MOST_BARS else None,
            "words": None if self.features is None else self.features.telling(values, MOST_WORDS),
        }

    def _profile(self, values: Array) -> list[float]:
        if values.size > _MOST_BARS:
            starts = np.linspace(0, values.size, _MOST_BARS, endpoint=False).astype(int)
            values = np.maximum.reduceat(values, starts)
        return [float(f"{value:.4g}") for value in values]

    def printed(self, rows: Sequence[int]) -> tuple[Array, tuple[int, int]]:
        return self.values(rows), self._shape

    def rows_sheet(self, rows: Sequence[int]) -> bytes:
        return self._sheet(self.values(rows), SHEET_COLUMNS)

    def fields_sheet(self, layer: FirstLayer, fields: Array, columns: int) -> bytes:
        return self._sheet(layer.fields(fields), columns)

    def _sheet(self, values: Array, columns: int) -> bytes:
        """Return a sheet on which each picture has its own scale of gray."""
        return _sheet((self._tile_of(row) for row in values), len(values), columns, self.tile)

    def _tile_of(self, values: Array) -> Array:
        from PIL import Image

        picture = gray_picture(values, self._shape)
        if picture.shape != self.tile:
            height, width = self.tile
            picture = np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BOX))
        return picture

    def large(self, row: int, size: int) -> tuple[bytes, str]:
        """Return a row as a large picture; pixels of small ones become squares."""
        from PIL import Image

        (values,) = self.values([row])
        picture = Image.fromarray(gray_picture(values, self._shape))
        longest = max(picture.size)
        if size >= 2 * longest:
            factor = min(size, 1024) // longest
            picture = picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
        elif size < longest:
            picture.thumbnail((size, size))
        return png(np.asarray(picture), compress_level=_COMPRESS), "image/png"


class EncodedImages(NumberRows):
    """Images of an array whose encoding cannot be drawn: the most typical image stands for a field."""

    draws_fields = False

    def field_details(self, layer: FirstLayer, field: int) -> Json:
        return Shown.field_details(self, layer, field)

    def fields_sheet(self, layer: FirstLayer, fields: Array, columns: int) -> bytes:
        return self._sheet(self.values(layer.typical(fields).tolist()), columns)


class ImageFiles(ShownPictures):
    """Image files in color and upright, read from disk when they are shown. The most typical one stands for a field."""

    kind: Kind = "image"
    photos = True
    tile = (_TILE, _TILE)

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths, self.n_rows = paths, len(paths)
        self._tile_of = lru_cache(_KEPT_TILES)(self._read_tile)

    def details(self, row: int, *, whole: bool = False) -> Json:
        return {}

    def printed(self, rows: Sequence[int]) -> tuple[Array, tuple[int, int]]:
        return np.stack([255 - self._tile_of(row)[..., :3].mean(axis=2).ravel() for row in rows]), self.tile

    def rows_sheet(self, rows: Sequence[int]) -> bytes:
        return _sheet((self._tile_of(row) for row in rows), len(rows), SHEET_COLUMNS, self.tile)

    def fields_sheet(self, layer: FirstLayer, fields: Array, columns: int) -> bytes:
        return _sheet((self._tile_of(row) for row in layer.typical(fields).tolist()), len(fields), columns, self.tile)

    def large(self, row: int, size: int) -> tuple[bytes, str]:
        """Return a row as a JPEG that fits into a square; only very small pictures are enlarged."""
        from PIL import Image

        pixels = self._read(row, size)
        if max(pixels.shape[:2]) <= _TILE and (factor := min(size, 512) // max(pixels.shape[:2])) > 1:
            pixels = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
        with io.BytesIO() as out:
            Image.fromarray(pixels).save(out, format="JPEG", quality=_QUALITY)
            return out.getvalue(), "image/jpeg"

    def _read(self, row: int, size: int) -> Array:
        size = min(size, max(image_size(self._paths[row])))
        values = read_image(self._paths[row], (size, size), in_color=True)
        pixels: Array = np.round(255 * values).astype(np.uint8)
        return pixels

    def _read_tile(self, row: int) -> Array:
        """Return a tile with the whole picture; around it the tile is transparent."""
        tile = np.full((_TILE, _TILE, 4), _UNREADABLE, np.uint8)
        try:
            pixels = self._read(row, _TILE)
        except ImageFileError:
            return tile
        factor = max(1, _TILE // max(pixels.shape[:2]))
        pixels = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
        height, width = pixels.shape[:2]
        top, left = (_TILE - height) // 2, (_TILE - width) // 2
        tile[:] = (255, 255, 255, 0)
        tile[top : top + height, left : left + width, :3] = pixels
        tile[top : top + height, left : left + width, 3] = 255
        return tile


def is_drawn(image_shape: tuple[int, int] | None) -> bool:
    """Whether rows of this shape are shown as images; those of a single line of pixels are bars."""
    return image_shape is not None and 1 not in image_shape


def _sheet(tiles: Iterable[Array], n: int, columns: int, tile: tuple[int, int]) -> bytes:
    """Return tiles side by side, as a PNG."""
    height, width = tile
    columns = max(1, min(columns, n))
    sheet: Array | None = None
    for i, picture in enumerate(tiles):
        if sheet is None:
            sheet = np.full((-(-n // columns) * height, columns * width, *picture.shape[2:]), 255, np.uint8)
        y, x = divmod(i, columns)
        sheet[y * height : (y + 1) * height, x * width : (x + 1) * width] = picture
    assert sheet is not None
    return png(sheet, compress_level=_COMPRESS)
