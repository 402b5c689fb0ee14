"""Reliability plot: the accuracy of predictions by their probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tnesi.paper.statistics import calibration_error
from tnesi.report.figures.canvas import INK, MUTED, PAGE, SERIES, drawing, new_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_FEW = 10


def plot_reliability(
    results: dict[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, n_bins: int = 15, n_columns: int = 3
) -> Figure:
    """Plot the share of correct predictions by their probability.

    Parameters
    ----------
    results : dict of str to (probability, right)
        The probabilities of the predicted classes, and whether these are correct. Each entry is a panel.
    n_bins : int
        Number of bins of equal width. The area of a point grows with the number of predictions in its bin; points
        of fewer than ten are hollow.
    n_columns : int
        Number of panels side by side.

    Returns
    -------
    figure : matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_reliability({"made up": ([0.8, 0.8, 0.9, 0.4], [True, False, True, False])})
    >>> print(figure.axes[0].get_title())
    made up
    calibration error 27.5 %
    """
    with drawing():
        figure, panels = new_panels(len(results), n_columns)
        for axes, (name, (given, correct)) in zip(panels, results.items(), strict=True):
            probability, right = np.asarray(given, float), np.asarray(correct, float)
            bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
            count = np.bincount(bins, minlength=n_bins)
            used = count > 0
            mean = np.bincount(bins, probability, n_bins)[used] / count[used]
            share = np.bincount(bins, right, n_bins)[used] / count[used]
            axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8)
            many = count[used] >= _FEW
            axes.plot(mean[many], share[many], color=SERIES[0], linewidth=1)
            area = 6 + 200 * count[used] / count.sum()
            axes.scatter(
                mean, share, area, edgecolor=SERIES[0], facecolor=np.where(many, SERIES[0], PAGE), linewidth=0.8
            )
            axes.set_xlim(0, 1.05)
            axes.set_ylim(0, 1.05)
            error = f"calibration error {100 * calibration_error(probability, right):.1f} %"
            axes.set_title(f"{name}\n{error}", color=INK, fontsize=9)
            axes.set_xlabel("predicted probability")
            axes.set_ylabel("share of correct predictions")
        return figure
