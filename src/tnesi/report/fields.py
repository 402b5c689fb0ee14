"""Plot learned fields as images next to their classes (as in Fig. 3 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.model.mixture_model import MixtureModel
from tnesi.report.figures.canvas import drawing, label
from tnesi.report.labels import class_names
from tnesi.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Shape = tuple[int, int]

_INCHES = 0.62
"""Height of a tile; lengths below are in units of it."""
_GAP, _COLUMN, _TEXT = 0.14, 0.17, 0.34
_MOST_COLORS = 20
_MOST_BARS = 256


def plot_fields(
    model: SimpletronClassifier | PoissonMixture,
    *,
    shape: Shape | None = None,
    n_fields: int = 60,
    n_columns: int = 12,
    random_state: int = 0,
) -> Figure:
    """Draw a random subset of the fields (of all mixtures of a committee), ordered by class.

    Next to each field of a classifier is a column with a cell per class, the first class at the top; colored cells are
    the classes of the field. With more than 20 classes the cells are gray, and the name of the strongest
    class is below the field. The fields of a mixture, or of a classifier without labels, have no classes.

    Parameters
    ----------
    model : SimpletronClassifier or PoissonMixture
        Fitted.
    shape : (int, int), optional
        Height and width of the images. By default they are square; features that make no square are drawn as a profile.
    n_fields, n_columns : int
        Number of fields to draw (at most), and number of them side by side.
    random_state : int
        Seed for the choice of fields.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Save it with ``figure.savefig("fields.png")``.
    """
    if isinstance(model, PoissonMixture) or not model.settle().classes_.size:
        mixture = model if isinstance(model, PoissonMixture) else model.mixture_
        order = np.random.default_rng(random_state).permutation(mixture.n_components_)
        return _Sheet(mixture.means_[np.sort(order[:n_fields])] - 1, shape, n_columns).figure
    r = model.class_weights_ * (1 if model.class_sizes_ is None else model.class_sizes_[:, None])
    share = r / np.maximum(r.max(axis=0), 1e-30)
    assert model.model_.layer is not None
    share **= model.model_.layer.classes.sharpness  # as in predictions
    share /= np.maximum(share.sum(axis=0), 1e-30)
    order = np.random.default_rng(random_state).permutation(r.shape[1])
    drawn = order[r.sum(axis=0)[order] > 0][:n_fields]
    drawn = drawn[np.lexsort((-share[:, drawn].max(axis=0), share[:, drawn].argmax(axis=0)))]
    classes, few = [label(k, 12) for k in class_names(model)], len(r) <= _MOST_COLORS
    names = None if few else [classes[k] for k in share[:, drawn].argmax(axis=0)]
    sheet = _Sheet(fields_of(model.model_.mixtures, drawn) - 1, shape, n_columns, names, _COLUMN)
    colors = _colors(len(r)) if few else np.zeros((len(r), 3))
    for i, c in enumerate(drawn):
        sheet.column(i, 1 - share[:, c, None] * (1 - colors))
    if few:
        sheet.legend(colors, classes)
    return sheet.figure


def fields_of(mixtures: Sequence[MixtureModel], numbers: Array) -> Array:
    """Return fields by their numbers, which are consecutive across mixtures."""
    ends = np.cumsum([mixture.n_fields for mixture in mixtures])
    found = np.empty((len(numbers), mixtures[0].n_features), np.float32)
    for mixture, end in zip(mixtures, ends, strict=True):
        own = (numbers < end) & (numbers >= end - mixture.n_fields)
        found[own] = mixture.fields.w[numbers[own] - (end - mixture.n_fields)]
    return found


def plot_rows(
    rows: npt.ArrayLike, *, shape: Shape | None = None, n_columns: int = 10, titles: Sequence[object] | None = None
) -> Figure:
    """Draw rows of data as images, or as profiles (a bar per feature).

    Parameters
    ----------
    rows : array of shape (n_rows, n_features)
    shape : (int, int), optional
        Height and width of the images. By default they are square; features that make no square are drawn as a profile.
    n_columns : int
        Number of rows of data side by side.
    titles : sequence, optional
        Text below each row.

    Returns
    -------
    figure : matplotlib.figure.Figure

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> plot_rows(load_digits().data[:30]).savefig("digits.png")  # doctest: +SKIP
    """
    return _Sheet(np.atleast_2d(np.asarray(rows)), shape, n_columns, titles).figure


def _image_shape(n_features: int, shape: Shape | None) -> Shape | None:
    """Return height and width, or None if the rows are not images."""
    if shape is None:
        side = math.isqrt(n_features)
        shape = (side, side) if side * side == n_features else (1, n_features)
    if shape[0] * shape[1] != n_features:
        raise ValueError(f"shape={shape} does not fit {n_features} features")
    return None if 1 in shape else shape


def _colors(n_classes: int) -> Array:
    import matplotlib as mpl

    return mpl.colormaps["tab10" if n_classes <= 10 else "tab20"](np.arange(n_classes))[:, :3]


class _Sheet:
    """Tiles side by side and below one another, in one pair of axes: thousands are drawn in seconds."""

    def __init__(
        self, rows: Array, shape: Shape | None, n_columns: int, names: Sequence[object] | None = None, column: float = 0
    ) -> None:
        image = _image_shape(rows.shape[1], shape)
        self._n_columns = max(1, min(n_columns, len(rows)))
        self._width = min(max(image[1] / image[0], 0.3), 4) if image else 1.8
        self._column = column and column + 0.04
        self._pitch = self._width + self._column + _GAP, 1 + _GAP + (_TEXT if names is not None else 0)
        size = self._n_columns * self._pitch[0] + _GAP, max(-(-len(rows) // self._n_columns), 1) * self._pitch[1] + _GAP
        with drawing():
            self._new_figure(*size)
            for i, row in enumerate(rows):
                self._tile(i, row, image)
            for i, name in enumerate(names if names is not None else ()):
                x, y = self._corner(i)
                self._axes.text(x + self._width / 2, y + 1.06, label(name), ha="center", va="top", fontsize=6.5)

    def _new_figure(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width * _INCHES, height * _INCHES), dpi=150, facecolor="white")
        self._axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set_axis_off()
        self._axes.set(xlim=(0, width), ylim=(height, 0))

    def _corner(self, i: int) -> tuple[float, float]:
        row, column = divmod(i, self._n_columns)
        return _GAP + column * self._pitch[0], _GAP + row * self._pitch[1]

    def _picture(self, x: float, y: float, width: float, values: Array, edge: str, **options: Any) -> None:
        from matplotlib.patches import Rectangle

        self._axes.imshow(values, extent=(x, x + width, y + 1, y), aspect="auto", interpolation="nearest", **options)
        self._axes.add_patch(Rectangle((x, y), width, 1, fill=False, edgecolor=edge, linewidth=0.5))

    def _tile(self, i: int, row: Array, image: Shape | None) -> None:
        x, y = self._corner(i)
        top = max(float(row.max()), 1e-30)  # a row of zeros is drawn empty
        if image:
            self._picture(x, y, self._width, row.reshape(image), "#cccccc", cmap="gray_r", vmin=0, vmax=top)
            return
        if row.size > _MOST_BARS:  # draw the largest of neighboring bars
            row = np.maximum.reduceat(row, np.linspace(0, row.size, _MOST_BARS, endpoint=False).astype(int))
        edges = np.linspace(x, x + self._width, row.size + 1)
        heights = y + 1 - np.maximum(row, 0) / top
        self._axes.stairs(heights, edges, baseline=y + 1, fill=True, color="#444444", linewidth=0)
        self._axes.plot([x, x + self._width], [y + 1, y + 1], color="#888888", linewidth=0.5)

    def column(self, i: int, colors: Array) -> None:
        """Draw the classes of a tile next to it."""
        x, y = self._corner(i)
        self._picture(x + self._width + 0.04, y, self._column - 0.04, colors[:, None, :], "#888888")

    def legend(self, colors: Array, classes: list[str]) -> None:
        """Draw a legend of the classes below the tiles."""
        from matplotlib.patches import Patch

        width, height = self.figure.get_size_inches()
        longest = max(map(len, classes), default=1)
        n_columns = max(1, min(len(classes), int(width / (0.3 + 0.075 * longest))))
        below = 0.12 + 0.17 * -(-len(classes) // n_columns)
        self.figure.set_size_inches(width, height + below)
        self._axes.set_position((0, below / (height + below), 1, height / (height + below)))
        patches = [Patch(color=color, label=k) for color, k in zip(colors, classes, strict=True)]
        with drawing():
            self.figure.legend(
                handles=patches, loc="lower center", ncols=n_columns, fontsize=8, frameon=False, handlelength=1,
                columnspacing=1.2, borderaxespad=0.2,
            )  # fmt: skip
