"""Pictures as arrays, flat rows, or lists of files or arrays, placed on a canvas."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tnesi.data.image_files import ImageFileError
from tnesi.encoders.canvas import Size, box_for, fitted_size, resized
from tnesi.encoders.image_files import Problem, image_size, read_image
from tnesi.encoders.values import as_color, as_gray, known_range, on_white, scaled
from tnesi.types import Array

Path = str | PathLike[str]
_T = TypeVar("_T")

_BLOCK_VALUES = 2**22
"""Maximum number of values in a block."""


@dataclass(frozen=True)
class Loading:
    """How pictures are placed on a canvas.

    Attributes
    ----------
    canvas : (int, int)
        Height and width.
    in_color : bool
        Whether there are three channels, or one.
    black, white : float
        Range of arrays whose type does not define it.
    n_threads : int
    """

    canvas: Size
    in_color: bool
    black: float
    white: float
    n_threads: int

    @property
    def n_channels(self) -> int:
        return 3 if self.in_color else 1

    def of_array(self, x: Array) -> Array:
        """Return pictures of any size (n x height x width x channels) with values from 0 to 1, as many channels."""
        black, white = known_range(x.dtype) or (self.black, self.white)
        pictures = on_white(scaled(x, black, white))
        return as_color(pictures) if self.in_color else as_gray(pictures)


@dataclass(frozen=True)
class Block:
    """The readable pictures of a block of the input, on a canvas.

    Attributes
    ----------
    pictures : ndarray of shape (n, height, width, channels), float32
    boxes : ndarray of shape (n, 4) or None
    problems : list of Problem
    """

    pictures: Array
    boxes: npt.NDArray[np.int32] | None
    problems: list[Problem]

    def cut_out(self) -> Iterator[Array]:
        """Yield each picture without what is around it on the canvas."""
        for n, picture in enumerate(self.pictures):
            top, left, height, width = (0, 0, *picture.shape[:2]) if self.boxes is None else self.boxes[n]
            yield picture[top : top + height, left : left + width]


class ArrayPictures:
    """N pictures of one size: an array (N x H x W, or N x H x W x channels), or flat rows of a given shape."""

    def __init__(self, x: Any, shape: tuple[int, ...] | None) -> None:
        self._x, self._shape = x, shape if len(x.shape) == 2 else None
        whole = tuple(x.shape[1:]) if self._shape is None else self._shape
        if len(whole) not in (2, 3) or (len(whole) == 3 and whole[2] not in (1, 3, 4)):
            raise ValueError(
                f"X has shape {tuple(x.shape)}: pass pictures as (N, height, width) or (N, height, width, 3 or 4), or "
                "flat rows with shape=(height, width) or shape=(height, width, 3)"
            )
        if self._shape is not None and x.shape[1] != np.prod(self._shape):
            raise ValueError(
                f"X has {x.shape[1]} features, but shape={self._shape} needs {np.prod(self._shape)}: pass the height, "
                "width and channels of the pictures"
            )
        if 0 in whole:
            raise ValueError(f"X has shape {tuple(x.shape)}: the pictures have no pixels")
        if np.dtype(x.dtype).kind not in "buif":
            raise ValueError(f"X has values of type {x.dtype}: pass numbers")
        self.n_flat = None if self._shape is None else int(x.shape[1])
        self.size: Size = whole[0], whole[1]
        self.n_channels = whole[2] if len(whole) == 3 else 1

    def __len__(self) -> int:
        return int(self._x.shape[0])

    def values(self, index: Array | slice) -> Array:
        """Return pictures as they are (n x height x width x channels)."""
        part: Any = self._x[index]
        x: Array = np.asarray(part.toarray() if hasattr(part, "toarray") else part)  # sparse ones, too
        x = x.reshape(len(x), *self.size, self.n_channels)
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            raise ValueError("X contains NaN or infinity: every pixel needs a number")
        return x

    def sizes(self, index: Array) -> list[Size]:
        """Return the size of the pictures."""
        return [self.size]

    def blocks(self, index: Array, loading: Loading) -> Iterator[Block]:
        """Yield the pictures at the given places on a canvas."""
        of_whole = fitted_size(self.size, loading.canvas)
        box = box_for(of_whole, loading.canvas)
        per_picture = max(np.prod(self.size) * self.n_channels, np.prod(loading.canvas) * loading.n_channels)
        step = max(1, _BLOCK_VALUES // int(per_picture))
        for start in range(0, len(index), step):
            part = index[start : start + step]
            ordered = part[-1] - part[0] + 1 == len(part)
            pictures = loading.of_array(self.values(slice(int(part[0]), int(part[-1]) + 1) if ordered else part))
            pictures = resized(pictures, of_whole)
            if of_whole == loading.canvas:
                yield Block(pictures, None, [])
                continue
            top, left, height, width = box
            on_canvas = np.zeros((len(pictures), *loading.canvas, loading.n_channels), np.float32)
            on_canvas[:, top : top + height, left : left + width] = pictures
            yield Block(on_canvas, np.tile(np.array(box, np.int32), (len(pictures), 1)), [])


class ListPictures:
    """Files and arrays of any size."""

    n_channels = 3
    n_flat = None

    def __init__(self, items: Sequence[Path | Array]) -> None:
        self._items = items
        for place, item in enumerate(items):
            if not isinstance(item, str | PathLike | np.ndarray):
                raise TypeError(f"item {place} is a {type(item).__name__}: pass paths of files, or arrays")

    def __len__(self) -> int:
        return len(self._items)

    def values(self, index: Array) -> Array:
        """Return the values of the arrays whose type does not say which are black and white."""
        found = [item for item in (self._items[i] for i in index) if isinstance(item, np.ndarray)]
        found = [item for item in found if known_range(item.dtype) is None and _reason(item) is None]
        return np.concatenate([item.ravel() for item in found]) if found else np.empty(0, np.uint8)

    def sizes(self, index: Array) -> list[Size]:
        """Return the sizes of the pictures that can be read."""

        def size(place: int) -> Size:
            item = self._items[place]
            if not isinstance(item, np.ndarray):
                return image_size(item)
            if reason := _reason(item):
                raise ImageFileError(reason)
            return item.shape[0], item.shape[1]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about odd but readable files, and large ones
            found = [self._attempt(size, int(place)) for place in index]
        return [size for size in found if not isinstance(size, Problem)]

    def blocks(self, index: Array, loading: Loading) -> Iterator[Block]:
        """Yield the pictures at the given places on a canvas; what cannot be read is a problem instead."""

        def load(place: int) -> Array:
            item = self._items[place]
            if not isinstance(item, np.ndarray):
                return read_image(item, loading.canvas, loading.in_color)
            if reason := _reason(item):
                raise ImageFileError(reason)
            picture = loading.of_array(item.reshape(1, *item.shape[:2], -1))
            fitted: Array = resized(picture, fitted_size((item.shape[0], item.shape[1]), loading.canvas))[0]
            return fitted

        step = max(1, _BLOCK_VALUES // int(np.prod(loading.canvas) * loading.n_channels))
        with warnings.catch_warnings(), ThreadPoolExecutor(loading.n_threads) as pool:
            warnings.simplefilter("ignore")
            for start in range(0, len(index), step):
                part = [int(place) for place in index[start : start + step]]
                found = list(pool.map(lambda place: self._attempt(load, place), part))
                yield _on_canvas(
                    [picture for picture in found if not isinstance(picture, Problem)],
                    [problem for problem in found if isinstance(problem, Problem)],
                    loading,
                )

    def _attempt(self, use: Callable[[int], _T], place: int) -> _T | Problem:
        try:
            return use(place)
        except ImageFileError as error:
            item = self._items[place]
            name = f"array {place}" if isinstance(item, np.ndarray) else fspath(item)
            return Problem(place, name, str(error))


def pictures_in(x: Any, shape: tuple[int, ...] | None) -> ArrayPictures | ListPictures:
    """Return what was passed to an encoder as pictures."""
    if isinstance(x, str | PathLike):
        raise TypeError(f"{x!r} is one path: pass a list of paths")
    if isinstance(x, list | tuple):
        if all(isinstance(item, str | PathLike) or (isinstance(item, np.ndarray) and item.ndim > 1) for item in x):
            return ListPictures(x)
        x = np.asarray(x)
    elif not (hasattr(x, "shape") and hasattr(x, "dtype")):
        x = np.asarray(x)  # data frames among others
    if len(x.shape) == 1 and np.dtype(x.dtype).kind in "OUT":
        return ListPictures(x.tolist())
    if len(x.shape) == 2 and shape is None:
        raise ValueError(
            f"X has shape {tuple(x.shape)}, which could be pictures of many kinds: pass shape=(height, width), or "
            "shape=(height, width, 3) for rows with colors"
        )
    return ArrayPictures(x, shape)


def _reason(item: Array) -> str | None:
    """Return why an array is not a picture."""
    if item.ndim not in (2, 3) or (item.ndim == 3 and item.shape[2] not in (1, 3, 4)):
        return f"has shape {item.shape}: pass (height, width) or (height, width, 3 or 4)"
    if item.size == 0:
        return "has no pixels"
    if item.dtype.kind not in "buif":
        return f"has values of type {item.dtype}: pass numbers"
    if item.dtype.kind == "f" and not np.isfinite(item).all():
        return "contains NaN or infinity"
    return None


def _on_canvas(pictures: list[Array], problems: list[Problem], loading: Loading) -> Block:
    canvas = np.zeros((len(pictures), *loading.canvas, loading.n_channels), np.float32)
    boxes = np.array([box_for(picture.shape[:2], loading.canvas) for picture in pictures], np.int32).reshape(-1, 4)
    for on_it, (top, left, height, width), picture in zip(canvas, boxes, pictures, strict=True):
        on_it[top : top + height, left : left + width] = picture
    return Block(canvas, boxes, problems)
