"""Confusion matrices that emphasize mistakes, for 2 to 52 classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tnesi.report.figures.canvas import COLORS, INK, LINE, Picture, drawing, label, new_axes
from tnesi.types import Array

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap


MANY = 16
"""Largest number of classes with numbers in the cells."""


def mean_confusion(records: list[dict[str, Any]]) -> Array:
    """Return the mean confusion matrix of runs, in percent of each true class (rows)."""
    counts = np.array([record["confusion"] for record in records], float)
    share: Array = 100 * counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
    return np.asarray(share.mean(axis=0))


def worst_pairs(share: Array, classes: list[str], n: int = 6) -> list[tuple[str, str, float]]:
    """Return the most frequent mistakes: true class, predicted class, percent of the true class.

    Examples
    --------
    >>> worst_pairs(np.array([[90.0, 10.0], [0.0, 100.0]]), ["a", "b"])
    [('a', 'b', 10.0)]
    """
    mistakes = share * ~np.eye(len(share), dtype=bool)
    found = [divmod(int(i), len(share)) for i in np.argsort(-mistakes, axis=None, kind="stable")[:n]]
    return [(classes[i], classes[j], float(mistakes[i, j])) for i, j in found if mistakes[i, j] > 0]


def plot_confusion(name: str, share: Array, classes: list[str], caption: str) -> Picture:
    """Plot a matrix of percentages; mistakes have their own color scale."""
    from matplotlib.colors import PowerNorm

    k, many = len(share), len(share) > MANY
    diagonal = np.eye(k, dtype=bool)
    mistakes = np.where(diagonal, np.nan, share)
    largest = max(float(np.max(share, where=~diagonal, initial=0)), 1e-9)
    with drawing():
        size = 7.6 if many else 3.7
        figure, axes = new_axes(size, size, grid="none")
        axes.spines[:].set(visible=True, color=LINE)
        axes.imshow(np.where(diagonal, share, np.nan), cmap=_fading("first"), vmin=0, vmax=160, interpolation="none")
        axes.imshow(mistakes, cmap=_fading("second"), norm=PowerNorm(0.5, 0, largest), interpolation="none")
        names = [label(c, 3 if many else 8) for c in classes]
        axes.set_xticks(range(k), names, fontsize=6 if many else 9)
        axes.set_yticks(range(k), names, fontsize=6 if many else 9)
        axes.tick_params(length=0, labeltop=many, labelright=many, pad=2)
        axes.set(xlabel="predicted class", ylabel="true class")
        if not many:
            for (i, j), value in np.ndenumerate(share):
                if value >= 0.05:
                    text = f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
                    cell = axes.text(j, i, text, ha="center", va="center", fontsize=7, color=INK)
                    cell.set_in_layout(False)  # measuring many cells is slow
    right = float(np.mean(np.diagonal(share)))
    worst = ", ".join(f"{t} as {p} {value:.1f} %" for t, p, value in worst_pairs(share, classes, 4))
    alt = f"Confusion matrix, {caption}: {right:.1f} % correct, mean over classes. Main mistakes: {worst or 'none'}."
    return Picture(name, figure, alt, caption, wide=many)


def _fading(role: str) -> ListedColormap:
    """Return a color map from transparent to a color that is visible on light and dark pages."""
    from matplotlib.colors import ListedColormap, to_rgb

    light, dark = (np.array(to_rgb(color)) for color in COLORS[role])
    alpha = np.linspace(0, 0.9, 256)[:, None]
    return ListedColormap(np.hstack([np.tile((light + dark) / 2, (256, 1)), alpha]))
