"""Our results compared with those of other methods (the paper's Figs. 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tnesi.paper.protocol import paper_values
from tnesi.report.figures.canvas import (
    COLORS,
    INK,
    LINE,
    MUTED,
    PAGE,
    Picture,
    drawing,
    label,
    log_x,
    log_y,
    new_axes,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRAINING_LABELS = (100, 600, 1000, 3000)
_FEWEST_LABELS = 20
"""Of another method."""

_OURS, _PAPER = COLORS["first"][0], COLORS["second"][0]
_CLEAR = {"facecolor": PAGE, "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
"""Background of names, which covers the lines behind them."""


@dataclass
class System:
    """A method with its errors by number of training labels, and the number of additional labels for tuning.

    None is an unknown number of labels for tuning.
    """

    name: str
    tuning: int | None
    color: str
    error: dict[int, float] = field(default_factory=dict)

    @property
    def other(self) -> bool:
        return self.color == MUTED


def systems(rows: list[dict[str, Any]]) -> list[System]:
    """Return our results (`rows`, see `summarize`), the paper's networks, and the methods it compares them with.

    The networks need no labels for tuning beyond the 10 per class that they also learn from.
    """
    found: dict[str, System] = {}
    for row in rows:
        name = f"{row['method']}, ours"
        found.setdefault(name, System(name, 0, _OURS)).error[row["n_labels"]] = row["ours"]["mean"]
    for published in paper_values("mnist-table"):
        name = f"{published['method']}, paper"
        error = found.setdefault(name, System(name, 0, _PAPER)).error
        error[int(published["n_labels"])] = float(published["mean"])
    for system in found.values():
        system.error = {n: error for n, error in system.error.items() if n in TRAINING_LABELS}
    for other in paper_values("mnist-comparison"):
        errors = {n: float(other[str(n)]) for n in (_FEWEST_LABELS, *TRAINING_LABELS) if other[str(n)]}
        tuning = int(other["tuning_labels"]) if other["tuning_labels"] else None
        found[other["method"]] = System(other["method"], tuning, MUTED, errors)
    return [system for system in found.values() if system.error]


def bar_pictures(rows: list[dict[str, Any]]) -> list[Picture]:
    """Plot the methods from best to worst for each number of training labels (Fig. 5)."""
    return [_bars(n, systems(rows)) for n in TRAINING_LABELS]


def _bars(n_labels: int, every: list[System]) -> Picture:
    shown = sorted((s for s in every if n_labels in s.error), key=lambda s: s.error[n_labels])
    errors = [s.error[n_labels] for s in shown]
    with drawing():
        figure, axes = new_axes(4.8, 0.4 + 0.22 * len(shown), grid="none")
        bars = axes.barh(range(len(shown)), errors, color=[s.color for s in shown], height=0.72)
        axes.set_yticks(range(len(shown)), [label(s.name) for s in shown])
        for bar, tick, system in zip(bars, axes.get_yticklabels(), shown, strict=True):
            bar.set_alpha(0.45 if system.other else 1)
            tick.set(color=INK if system.other else system.color, fontweight="normal" if system.other else "bold")
        for i, (system, error) in enumerate(zip(shown, errors, strict=True)):
            axes.text(error + 0.02 * max(errors), i, f"{error:.2f}", va="center", color=INK)
            tuned = f"+ {system.tuning:,} labels" if system.tuning else ""
            axes.text(max(errors) * 1.65, i, tuned, va="center", ha="right", color=MUTED, fontsize=8)
        axes.set(xlim=(0, max(errors) * 1.65), ylim=(len(shown) - 0.4, -0.6))
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(length=0, labelbottom=False)
        title = f"{n_labels:,} training labels"
        figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=10, fontweight="bold")
    values = ", ".join(f"{s.name} {e:.2f} %" for s, e in zip(shown, errors, strict=True))
    return Picture(f"bars-{n_labels}", figure, f"Test error with {title}, best first: {values}.")


def scatter_pictures(rows: list[dict[str, Any]]) -> list[Picture]:
    """Plot the error against training labels, and against all labels that a method used (Fig. 6)."""
    every = systems(rows)
    known = [system for system in every if system.tuning is not None]
    return [_scatter("training-labels", every, False), _scatter("total-labels", known, True)]


def _scatter(name: str, every: list[System], total: bool) -> Picture:
    with drawing():
        figure, axes = new_axes(4.8, 4.2)
        for system in every:
            x, y = _points(system, total)
            published = system.color == _PAPER
            axes.plot(
                x, y, "D--" if published else "o-", color=system.color, linewidth=0.8 if system.other else 1.6,
                markersize=3 if system.other else 5, markerfacecolor=PAGE if published else system.color,
                zorder=2 if system.other else 3,
            )  # fmt: skip
        log_x(axes, (100, 1000, 10000) if total else (_FEWEST_LABELS, *TRAINING_LABELS))
        axes.set_xlim(*((6, 90000) if total else (7, 3800)))
        log_y(axes, [error for system in every for error in system.error.values()])
        what = "labels in total: training and tuning" if total else "training labels"
        axes.set(xlabel=what, ylabel="test error %")
        _name_lines(axes, every, total)
    caption = "All labels used: for training and for choosing parameters." if total else "Labels used in training."
    values = "; ".join(f"{s.name} {min(s.error.values()):.2f} to {max(s.error.values()):.2f} %" for s in every)
    alt = f"Test error against {what}, one line per method. Range of errors: {values}."
    return Picture(name, figure, alt, caption)


def _points(system: System, total: bool) -> tuple[list[int], list[float]]:
    n_labels = sorted(system.error)
    return [n + (system.tuning or 0) * total for n in n_labels], [system.error[n] for n in n_labels]


def _name_lines(axes: Axes, every: list[System], total: bool) -> None:
    """Write names where lines start, in columns where several start together."""
    if not total:
        _name_column(axes, [s for s in every if min(s.error) == TRAINING_LABELS[0]], total, right=False)
        for system in every:
            (x, *_), (y, *_) = _points(system, total)
            if x != TRAINING_LABELS[0]:
                above: dict[str, Any] = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center"}
                axes.annotate(label(system.name), (x, y), color=MUTED, bbox=_CLEAR, **above)
        return
    most = max(system.tuning or 0 for system in every)
    for tuning in {system.tuning for system in every}:
        _name_column(axes, [s for s in every if s.tuning == tuning], total, right=tuning == most)


def _name_column(axes: Axes, group: list[System], total: bool, *, right: bool) -> None:
    low, high = np.log(axes.get_ylim())
    points = [_points(system, total) for system in group]
    starts = [(x[0], y[0]) for x, y in points]
    at = 1.3 * max(x[-1] for x, _ in points) if right else 0.8 * min(x for x, _ in starts)
    levels = spread([(np.log(y) - low) / (high - low) for _, y in starts], 0.05)
    for system, start, level in zip(group, starts, levels, strict=True):
        axes.annotate(
            label(system.name), start, (at, level), textcoords=axes.get_xaxis_transform(), va="center",
            ha="left" if right else "right", color=system.color, fontsize=8.5, bbox=_CLEAR,
            fontweight="normal" if system.other else "bold",
            arrowprops={"arrowstyle": "-", "color": LINE, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip
