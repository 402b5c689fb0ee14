"""The learned fields as images, each with the column of its classes beside it (as in the paper's Fig. 3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tnesi.classifier import SimpletronClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]


def _square(n_features: int) -> tuple[int, int]:
    side = math.isqrt(n_features)
    if side * side != n_features:
        raise ValueError(f"{n_features} features are not a square image: pass shape=(height, width)")
    return side, side


def plot_fields(
    classifier: SimpletronClassifier,
    *,
    shape: tuple[int, int] | None = None,
    n_fields: int = 60,
    n_columns: int = 12,
    random_state: int = 0,
) -> Figure:
    """Draw a random subset of the fields, ordered by class.

    Parameters
    ----------
    classifier : SimpletronClassifier
        Fitted.
    shape : (int, int), optional
        Height and width of the images; by default they are square.
    n_fields, n_columns : int
        How many fields to draw, and how many in a row.
    random_state : int
        Decides which fields are drawn.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Save it with ``figure.savefig("fields.png")``.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install tnesi[plot]") from error

    w, r = classifier.mixture_.weights_, classifier.class_weights_
    height, width = shape or _square(w.shape[1])
    if height * width != w.shape[1]:
        raise ValueError(f"shape={shape} does not fit {w.shape[1]} features")
    share = r / np.maximum(r.sum(axis=0), 1e-30)
    reached = np.flatnonzero(r.sum(axis=0) > 0)
    drawn = np.random.default_rng(random_state).permutation(reached)[:n_fields]
    drawn = drawn[np.lexsort((-share[:, drawn].max(axis=0), share[:, drawn].argmax(axis=0)))]

    colours = mpl.colormaps["tab10" if len(r) <= 10 else "tab20"](np.arange(len(r)) % 20)[:, :3]
    n_rows = -(-len(drawn) // n_columns)
    figure = Figure(figsize=(n_columns * 0.75, n_rows * 0.68 + 0.5), dpi=150, facecolor="white")
    grid = figure.add_gridspec(
        n_rows, 2 * n_columns, width_ratios=[6, 1] * n_columns, wspace=0.12, hspace=0.16, left=0.01, right=0.99,
        top=0.99, bottom=0.4 / (n_rows * 0.68 + 0.5),
    )  # fmt: skip
    for i, c in enumerate(drawn):
        row, column = divmod(i, n_columns)
        image = figure.add_subplot(grid[row, 2 * column])
        bar = figure.add_subplot(grid[row, 2 * column + 1])
        image.imshow(w[c].reshape(height, width) - 1, cmap="gray_r", vmin=0, interpolation="nearest")
        column_of_classes = 1 - share[:, c, None, None] * (1 - colours[:, None, :])
        bar.imshow(column_of_classes, aspect="auto", interpolation="nearest")
        for axes, edge in ((image, "#cccccc"), (bar, "#888888")):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(color=edge, linewidth=0.5)
    patches = [
        mpl.patches.Patch(color=colour, label=str(k)) for colour, k in zip(colours, classifier.classes_, strict=True)
    ]
    figure.legend(
        handles=patches, loc="lower center", ncols=min(len(patches), 13), fontsize=8, frameon=False, handlelength=1,
        columnspacing=1.2,
    )  # fmt: skip
    return figure
