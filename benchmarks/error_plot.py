"""Plot the error against the number of labels, for several ways to choose them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from tnesi.report.figures.canvas import INK, SERIES, drawing, log_x, log_y, new_panels

Array = npt.NDArray[Any]
Panel = tuple[str, Sequence[int], Mapping[str, Array]]
"""A title, numbers of labels, and the errors (runs x numbers) for each way to choose."""


def plot_errors(shown: Sequence[Panel], x_label: str) -> Any:
    """Return a figure with a panel per data set: means, and bands from the best to the worst."""
    with drawing():
        figure, panels = new_panels(len(shown), 2)
        for axes, (title, numbers, ways) in zip(panels, shown, strict=True):
            for (way, errors), color in zip(ways.items(), SERIES, strict=False):
                mean, low, high = errors.mean(axis=0), errors.min(axis=0), errors.max(axis=0)
                axes.plot(numbers, mean, color=color, marker="o", markersize=3, linewidth=1.2, label=way)
                axes.fill_between(numbers, low, high, color=color, alpha=0.12, linewidth=0)
            log_x(axes, numbers)
            log_y(axes, [error for errors in ways.values() for error in errors.ravel().tolist()])
            axes.set_title(title, color=INK)
            axes.set_xlabel(x_label)
        panels[0].set_ylabel("test error (%)")
        panels[0].legend(frameon=False, labelcolor=INK)
        return figure
