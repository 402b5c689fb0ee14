"""Folders of images: ``class_name/*.png`` are labeled by the folder; files outside of such folders are unlabeled.

Images are converted to 8-bit gray values and scaled to their most common size. Transparent pixels become white,
and only the first frame of an animation is used. Images are decoded block by block. Hidden files and links to folders
are ignored.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tnesi.data.image_files import ImageFileError, opened, pillow
from tnesi.data.label_values import parse_labels
from tnesi.data.source import BLOCK_ROWS, Data, DataError, Source, rows_at_a_time
from tnesi.types import Array

T = TypeVar("T")

_LOOKED_AT = 1000
_SEVERAL = (b"GIF8", b"II*\0", b"MM\0*", b"RIFF", b"\x89PNG")
"""First bytes of files that may hold several pictures."""
_NO_IMAGES = ("Thumbs.db", "desktop.ini")
_PARTS = ({"train", "test"}, {"training", "testing"})


class ImageSource(Source):
    """Gray values (0 to 255) of image files, scaled to their most common size.

    Encoders read the files themselves (`items`); files are opened here only for gray values.

    Attributes
    ----------
    paths : list of Path
        Files of the rows.
    """

    dtype = np.dtype(np.uint8)
    kind = "images"

    def __init__(
        self, paths: list[Path], image_shape: tuple[int, int] | None = None, *, like: ImageSource | None = None
    ) -> None:
        self.paths, self.n_rows, self._shape, self._like = paths, len(paths), image_shape, like

    @cached_property
    def image_shape(self) -> tuple[int, int]:  # type: ignore[override]
        if self._like is not None:
            return self._like.image_shape
        if self._shape is not None:
            return self._shape
        sizes = Counter(_open_each(self.paths, lambda image: (image.height, image.width)))
        return sizes.most_common(1)[0][0]

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.image_shape[0] * self.image_shape[1]

    def items(self, size: int = BLOCK_ROWS) -> Iterator[list[Path]]:
        for start in range(0, self.n_rows, size):
            yield self.paths[start : start + size]

    def with_several_pictures(self) -> Path | None:
        """Return the first of a sample of the files that is animated or has several pages."""
        for path in self.paths[:: max(1, self.n_rows // _LOOKED_AT)]:
            with warnings.catch_warnings(), suppress(Exception):  # what cannot be read is reported elsewhere
                warnings.simplefilter("ignore")
                with path.open("rb") as file:
                    if not file.read(4).startswith(_SEVERAL):
                        continue
                with opened(path) as image:
                    if getattr(image, "is_animated", False):
                        return path
        return None

    def blocks(self, size: int = BLOCK_ROWS) -> Iterator[Array]:
        size = rows_at_a_time(size, self.n_features, self.dtype)
        for start in range(0, self.n_rows, size):
            gray = _open_each(self.paths[start : start + size], self._gray)
            yield np.stack(gray).reshape(len(gray), self.n_features)

    def _gray(self, image: Any) -> Array:
        if image.mode == "F":
            raise ImageFileError("has floating-point gray values: save it as an 8-bit image")
        if image.mode.startswith("I"):  # 16 bits
            image = image.convert("I").point(lambda value: value / 256)
        elif image.has_transparency_data:
            white = pillow().new("RGBA", image.size, "white")
            image = pillow().alpha_composite(white, image.convert("RGBA"))
        gray = image.convert("L")
        height, width = self.image_shape
        if gray.size != (width, height):
            gray = gray.resize((width, height), pillow().Resampling.BILINEAR)
        return np.asarray(gray)


def read_images(path: Path, image_shape: tuple[int, int] | None = None) -> Data:
    """Open a folder of images or a single image as data.

    A folder that contains only the folders ``train`` and ``test`` (or ``training`` and ``testing``) has a test part.
    """
    if path.is_file():
        return Data(ImageSource([path], image_shape), name=path.name)
    if parts := parts_of(path):
        data = _read_folder(parts[0], image_shape)
        assert isinstance(data.rows, ImageSource)
        test = _read_folder(parts[1], like=data.rows)
        return Data(data.rows, data.labels, test, path.name, data.note)
    return _read_folder(path, image_shape)


def parts_of(folder: Path) -> tuple[Path, Path] | None:
    """Return the folders of training and test data, if a folder has nothing but them."""
    entries = _visible(folder)
    names = sorted(entry.name for entry in entries)
    if set(names) not in _PARTS or not all(entry.is_dir(follow_symlinks=False) for entry in entries):
        return None
    return folder / names[1], folder / names[0]


def _read_folder(folder: Path, image_shape: tuple[int, int] | None = None, like: ImageSource | None = None) -> Data:
    paths, names = files_by_class(folder)
    if not paths:
        raise DataError(f"{folder} has no images", advice="put them there or into one folder per class")
    rows = ImageSource(paths, image_shape, like=like)
    return Data(rows, parse_labels(names, folder) if any(names) else None, name=folder.name)


def files_by_class(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the files in a folder and its subfolders, and the name of the subfolder of each ("" if none)."""
    paths, names = [], []
    for entry in _visible(folder):
        if entry.is_dir(follow_symlinks=False):
            members = _visible(Path(entry.path))
            if deeper := next((member for member in members if member.is_dir()), None):
                raise DataError(
                    f"{deeper.path} is nested too deeply",
                    advice=f"put files into {folder} or into one folder per class there",
                )
            paths += [Path(member.path) for member in members]
            names += [entry.name] * len(members)
        else:
            paths.append(Path(entry.path))
            names.append("")
    return paths, names


def _visible(folder: Path) -> list[os.DirEntry[str]]:
    """Return files and folders in `folder` by name, without hidden ones and links to folders."""
    with os.scandir(folder) as entries:
        kept = [
            entry
            for entry in entries
            if not entry.name.startswith(".")
            and entry.name not in _NO_IMAGES
            and (Path(entry.path).is_file() or entry.is_dir(follow_symlinks=False))
        ]
    return sorted(kept, key=lambda entry: entry.name)


def _open_each(paths: list[Path], use: Callable[[Any], T]) -> list[T]:
    """Return ``use(image)`` of each file; errors name the file."""
    used = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unusual but readable files, and large ones
        for path in paths:
            try:
                with opened(path) as image:
                    used.append(use(image))
            except ImageFileError as error:
                raise DataError(f"{path} {error}") from error
    return used
