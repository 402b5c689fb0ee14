"""ImageEncoder: images as rows of non-negative numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tnesi.encoders.canvas import Size
from tnesi.encoders.embedded_pictures import EmbeddedPictures, PictureModel, learn_pictures
from tnesi.encoders.embeddings import embeddings_folder, progress_printer
from tnesi.encoders.image_files import Problem
from tnesi.encoders.picture_input import ArrayPictures, Block, ListPictures, Loading, pictures_in
from tnesi.encoders.picture_rows import Boxes, PictureRows, is_colored, measure
from tnesi.encoders.states import new_state, parameters_of
from tnesi.encoders.values import as_gray, known_range, range_of
from tnesi.encoders.working_size import ENLARGED, FINEST, LOOKED_AT, SMALL, USUAL_SIZE, working_size
from tnesi.system.threads import resolve_threads
from tnesi.types import Array

LARGEST_SIZE = 512
"""Largest longer side of the canvas in pixels."""
_SIZE_FOR_MODELS = 336
"""Longer side to which larger pictures are scaled down for a pretrained model, which scales them further."""
SAMPLE = 1000
"""Maximum number of pictures that `fit` examines."""
_SAME_FORMAT = 0.9
"""Minimum share of pictures in portrait (or landscape) format for a canvas of that format."""
_LISTED = 5
"""Maximum number of problems in a message."""


class UnreadableImagesError(ValueError):
    """Pictures that cannot be read.

    Attributes
    ----------
    problems : list of Problem
        All of them.
    """

    def __init__(self, problems: list[Problem], n_images: int) -> None:
        self.problems = problems
        lines = [f"  {problem}" for problem in problems[:_LISTED]]
        if len(problems) > _LISTED:
            lines.append(f"  and {len(problems) - _LISTED} more")
        super().__init__(
            f"{len(problems)} of {n_images} pictures cannot be read:\n"
            + "\n".join(lines)
            + "\nRemove them, or use encode_files, which skips them."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unreadable, (self.problems, str(self))


def _unreadable(problems: list[Problem], message: str) -> UnreadableImagesError:
    error = UnreadableImagesError(problems, len(problems))
    error.args = (message,)
    return error


class ImageEncoder(TransformerMixin, BaseEstimator):
    """Encode pictures as histograms of oriented gradients and of colors, or as features of a pretrained model.

    Rows are non-negative, so that `SimpletronClassifier` can learn from them. Pictures may be gray or colored and of
    different sizes. They are scaled to fit on a canvas of one size, centered, with their proportions kept; the area
    around them is ignored.

    Parameters
    ----------
    shape : tuple of int, default=None
        Height and width, or height, width and channels (3 or 4), of pictures that are flat rows.
    size : int or "auto", default="auto"
        Longer side of the canvas in pixels, at most 512. "auto" is the median size of the pictures, at most 32: in
        larger pictures, outlines say more about the content than details do. It is up to 96 for pictures of fine
        textures and thin lines, which would be lost at 32. Pictures of 16 pixels or fewer are enlarged to 24, where
        directions of outlines are known better. With a model it is at most 336.
    color : bool or "auto", default="auto"
        Whether colors are encoded in addition to gradients. "auto" encodes them if a sample of the pictures has
        colors. Ignored with a model.
    model : str or path, default=None
        Name or folder of a sentence-transformers model that takes pictures, such as "clip-ViT-B-32". Pictures are then
        encoded as its embeddings, in the way of :class:`VectorEncoder`. Needs ``pip install 'tnesi[embed]'``.
    device : str or None, default=None
        Where a model runs, such as "cpu" or "cuda". None takes a GPU if there is one.
    cache : str, path or bool, default=True
        Folder for computed embeddings, so that no picture is embedded twice. True is ``tnesi/embeddings`` in the
        user's cache folder; False keeps none.
    verbose : int, default=0
        Show the progress of a model.
    n_jobs : int, default=None
        Number of threads. None and -1 use all processors. The result does not depend on it.

    Attributes
    ----------
    image_shape_ : (int, int)
        Height and width of the canvas.
    colored_ : bool
        Whether colors are encoded.
    shaded_ : bool
        Whether the pictures are shaded, like photographs, so that gradients are also encoded independently of contrast.
    n_features_in_ : int
        Number of features, if `fit` received flat rows.

    See Also
    --------
    SimpletronClassifier : Learns classes from the rows and a few labels.

    Notes
    -----
    `fit` examines at most 1,000 pictures. The canvas has the median proportions of the pictures if nine tenths of them
    are in landscape format, or in portrait format; otherwise it is square.

    Unsigned 8-bit and 16-bit integers are 0 for black and 255 or 65,535 for white. For other numbers, black is 0, or
    the smallest value in `fit` if that is negative; white is the first of 1, 255 and 65,535 that no value exceeds, or
    the largest value. Gray pictures are encoded independently of their brightness, colored ones nearly so.

    Files are rotated according to their EXIF orientation. Only the first picture of animations and of files with
    several pages is used. Transparent parts become white.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tnesi.encoders import ImageEncoder
    >>> images = load_digits().images
    >>> images.shape
    (1797, 8, 8)
    >>> ImageEncoder().fit_transform(images).shape
    (1797, 392)
    """

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        *,
        size: int | Literal["auto"] = "auto",
        color: bool | Literal["auto"] = "auto",
        model: str | Path | None = None,
        device: str | None = None,
        cache: str | Path | bool = True,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.shape = shape
        self.size = size
        self.color = color
        self.model = model
        self.device = device
        self.cache = cache
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: None = None) -> Self:
        """Choose the size of the canvas and the features.

        Parameters
        ----------
        X : array-like or list
            Pictures: an array of shape (n, height, width) or (n, height, width, 3 or 4), flat rows of the shape given
            in the constructor, or a list of paths of image files or of arrays of any size.
        y : None
            Ignored.

        Returns
        -------
        ImageEncoder
            This encoder.
        """
        self._check_parameters()
        given = pictures_in(X, self._shape())
        if len(given) == 0:
            raise ValueError("There are no pictures: pass at least one.")
        sample = np.unique(np.linspace(0, len(given) - 1, min(len(given), SAMPLE)).astype(np.int64))
        sizes = given.sizes(sample)
        levels = _levels_in(given, sample)
        canvas = self._canvas(given, sample, sizes, levels) if sizes else (1, 1)
        in_color = self.model is not None or (bool(self.color) and (self.color != "auto" or given.n_channels >= 3))
        loading = Loading(canvas, in_color, *levels, self._n_threads())
        blocks = given.blocks(sample, loading)
        if self.model is not None:
            embedded = learn_pictures(canvas, self._picture_model(), _readable(blocks, len(sample)))
            self._set(embedded, levels, given.n_flat)
            return self
        readable = list(_readable(blocks, len(sample)))
        if in_color and self.color == "auto" and not is_colored(readable):
            in_color = False
        pictures = [(part if in_color else as_gray(part), boxes) for part, boxes in readable]
        self._set(measure(canvas, in_color, pictures, loading.n_threads), levels, given.n_flat)
        return self

    def transform(self, X: Any) -> Array:
        """Return a row for each picture.

        Parameters
        ----------
        X : array-like or list
            Pictures, in any of the forms that `fit` accepts, and of any size.

        Returns
        -------
        ndarray of shape (n, n_features), float32

        Raises
        ------
        UnreadableImagesError
            If files in a list cannot be read; the error lists all of them.
        """
        rows, problems = self._encode(X)
        if problems:
            raise UnreadableImagesError(problems, len(rows) + len(problems))
        return rows

    def encode_files(self, paths: Sequence[str | PathLike[str]]) -> tuple[Array, list[Problem]]:
        """Return a row for each readable file, and the problems with the others.

        Parameters
        ----------
        paths : sequence of str or Path

        Returns
        -------
        rows : ndarray of shape (n_readable, n_features), float32
            In the order of `paths`.
        problems : list of Problem
            The other files: index in `paths`, name and reason.
        """
        return self._encode(list(paths))

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names of the features.

        Parameters
        ----------
        input_features : object
            Ignored.

        Returns
        -------
        ndarray of str
            Such as "direction_0_3_90": brightness increases downward in row 0 and column 3 of the cells.
        """
        check_is_fitted(self)
        return np.asarray(self._rows.names(), dtype=object)

    def get_state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values.

        Returns
        -------
        dict
            For `from_state`.
        """
        check_is_fitted(self)
        parameters: dict[str, Any] = {"shape": self._shape(), "size": self.size, "color": self.color}
        if self.model is not None:
            cache = fspath(self.cache) if isinstance(self.cache, Path) else self.cache
            parameters |= {"model": fspath(self.model), "device": self.device, "cache": cache, "verbose": self.verbose}
        return new_state("ImageEncoder", parameters) | {
            "rows": asdict(self._rows) if isinstance(self._rows, PictureRows) else self._rows.state(),
            "levels": list(self._levels),
            "n_features_in": getattr(self, "n_features_in_", None),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a fitted encoder.

        Parameters
        ----------
        state : mapping
            From `get_state`.

        Returns
        -------
        ImageEncoder
        """
        parameters = parameters_of(state, "ImageEncoder")
        try:
            shape = parameters["shape"]
            encoder = cls(**parameters | {"shape": None if shape is None else tuple(shape)})
            encoder._check_parameters()
            rows: PictureRows | EmbeddedPictures
            if encoder.model is None:
                rows = PictureRows(**{**state["rows"], "canvas": tuple(state["rows"]["canvas"])})
            else:
                rows = EmbeddedPictures.from_state(state["rows"], encoder._picture_model())
            if len(rows.canvas) != 2 or not all(
                _is_integer(side) and 1 <= side <= LARGEST_SIZE for side in rows.canvas
            ):
                raise ValueError(f"canvas is {rows.canvas!r}")
            if not (isinstance(rows.shaded, bool) and isinstance(rows.colored, bool)):
                raise TypeError("shaded and colored are not booleans")
            black, white = (float(level) for level in state["levels"])
            measures = [rows.energy, rows.hues, rows.color_weight] if isinstance(rows, PictureRows) else []
            numbers = np.array([*measures, black, white], dtype=np.float64)
            if not np.isfinite(numbers).all() or min(measures, default=0) < 0 or black >= white:
                raise ValueError(f"numbers are out of range: {numbers}")
            n_flat = state["n_features_in"]
            if n_flat is not None and not _is_integer(n_flat):
                raise TypeError(f"n_features_in is {n_flat!r}")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"This is not the state of an ImageEncoder ({error!r}): use what get_state returned."
            ) from error
        encoder._set(rows, (black, white), n_flat)
        return encoder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.shape is not None
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.no_validation = True
        return tags

    def _canvas(
        self, given: ArrayPictures | ListPictures, sample: Array, sizes: list[Size], levels: tuple[float, float]
    ) -> Size:
        """Choose height and width of the canvas from a sample of the pictures and their sizes."""
        longer = round(float(np.median(np.max(sizes, axis=1))))
        if self.model is not None:  # which scales pictures itself
            longer = min(_SIZE_FOR_MODELS, longer) if self.size == "auto" else int(self.size)
            return longer, longer
        if self.size != "auto":
            longer = int(self.size)
        elif longer <= SMALL:
            longer = ENLARGED
        elif longer > USUAL_SIZE:
            longer = min(longer, FINEST)
            fine = Loading((longer, longer), False, *levels, self._n_threads())
            looked_at = sample[:: -(-len(sample) // LOOKED_AT)]
            pictures = [picture for block in given.blocks(looked_at, fine) for picture in block.cut_out()]
            longer = working_size(pictures, longer)
        return _canvas_for(sizes, longer)

    def _check_parameters(self) -> None:
        if self.size != "auto" and not (_is_integer(self.size) and 1 <= self.size <= LARGEST_SIZE):
            raise ValueError(f"size={self.size!r}: pass 'auto' or a number of pixels from 1 to {LARGEST_SIZE}")
        if self.color != "auto" and not isinstance(self.color, bool | np.bool_):
            raise ValueError(f"color={self.color!r}: pass 'auto', True or False")
        self._shape()
        self._n_threads()

    def _shape(self) -> tuple[int, ...] | None:
        if self.shape is None:
            return None
        shape = tuple(self.shape)
        if not (len(shape) in (2, 3) and all(_is_integer(side) and side > 0 for side in shape)):
            raise ValueError(f"shape={self.shape!r}: pass (height, width), or (height, width, 3 or 4)")
        return shape

    def _picture_model(self) -> PictureModel:
        progress = progress_printer("pictures") if self.verbose else None
        return PictureModel(str(self.model), self.device, embeddings_folder(self.cache), progress)

    def _n_threads(self) -> int:
        if self.n_jobs is not None and not (_is_integer(self.n_jobs) and (self.n_jobs == -1 or self.n_jobs > 0)):
            raise ValueError(f"n_jobs={self.n_jobs!r}: pass None, -1 or a number of threads")
        return resolve_threads(None if self.n_jobs == -1 else self.n_jobs)

    def _set(
        self, rows: PictureRows | EmbeddedPictures, levels: tuple[float, float], n_features_in: int | None
    ) -> None:
        self._rows, self._levels = rows, levels
        self.image_shape_, self.colored_, self.shaded_ = rows.canvas, rows.colored, rows.shaded
        if n_features_in is not None:
            self.n_features_in_ = n_features_in
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_

    def _encode(self, X: Any) -> tuple[Array, list[Problem]]:
        check_is_fitted(self)
        given = pictures_in(X, self._shape())
        loading = Loading(self._rows.canvas, self._rows.colored, *self._levels, self._n_threads())
        rows = np.empty((len(given), self._rows.n_features), np.float32)
        problems: list[Problem] = []
        done = 0
        for block in given.blocks(np.arange(len(given)), loading):
            problems += block.problems
            if n := len(block.pictures):
                rows[done : done + n] = self._rows.encode(block.pictures, block.boxes, loading.n_threads)
                done += n
        return rows[:done], problems


def _readable(blocks: Iterator[Block], n_images: int) -> Iterator[tuple[Array, Boxes]]:
    """Yield the pictures in blocks; raise an error if there are none."""
    problems, found = [], False
    for block in blocks:
        problems += block.problems
        found |= len(block.pictures) > 0
        yield block.pictures, block.boxes
    if not found:
        raise UnreadableImagesError(problems, n_images)


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _canvas_for(sizes: list[Size], longer: int) -> Size:
    """Choose height and width of the canvas from the sizes of pictures."""
    heights, widths = np.array(sizes, dtype=np.float64).T
    proportions = float(np.median(widths / heights))
    if max((widths >= heights).mean(), (widths <= heights).mean()) < _SAME_FORMAT:
        proportions = 1.0
    if proportions >= 1:
        return max(1, round(longer / proportions)), longer
    return longer, max(1, round(longer * proportions))


def _levels_in(given: ArrayPictures | ListPictures, sample: Array) -> tuple[float, float]:
    """Return black and white of a sample of the pictures."""
    extremes = []
    for place in sample:
        values = given.values(np.array([place]))
        if values.size and known_range(values.dtype) is None:
            extremes += [values.min(), values.max()]
    return range_of(np.array(extremes, dtype=np.float64)) if extremes else (0.0, 255.0)
