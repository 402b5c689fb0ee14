"""Test error by number of labels, compared with the paper."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from tnesi.report.figures.canvas import (
    INK,
    MUTED,
    PAGE,
    SERIES,
    Picture,
    drawing,
    label,
    log_x,
    log_y,
    new_axes,
    new_panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]

_BESIDE = 1.07
"""Factor that moves the paper's values to the right of ours, which they would hide."""


def error_by_labels(name: str, title: str, rows: list[Row], records: list[Row]) -> Picture:
    """Plot means with standard errors, single runs as faint dots, and the paper's results as open diamonds.

    Parameters
    ----------
    rows : list of dict
        The settings of a task, from `tnesi.paper.summary.summarize`.
    records : list of dict
        The runs of the task.
    """
    with drawing():
        figure, axes = new_axes(4.8, 3.4)
        methods = list(dict.fromkeys(row["method"] for row in rows))
        drawn: list[float] = []
        for i, method in enumerate(methods):
            mine = sorted((row for row in rows if row["method"] == method), key=lambda row: row["n_labels"])
            runs = [(r["n_labels"], r["error"]) for r in records if r["method"] == method]
            drawn += _series(axes, method, SERIES[i % len(SERIES)], mine, runs)
        for i, name in enumerate(dict.fromkeys(row["paper_method"] for row in rows if row["paper"])):
            drawn += _published(axes, name, (INK, MUTED)[i % 2], rows)
        ticks = sorted({row["n_labels"] for row in rows})
        log_x(axes, ticks)
        if _crowded(ticks):
            for text in axes.get_xticklabels():
                text.set(rotation=40, ha="right", rotation_mode="anchor")
        log_y(axes, drawn)
        axes.set(xlabel="labels in total", ylabel="test error %")
        axes.legend(frameon=False, labelcolor="linecolor", loc="upper right", handlelength=1.6)
    values = "; ".join(f"{row['method']}, {row['n_labels']:,} labels: {row['ours']['mean']:.2f} %" for row in rows)
    caption = (
        "Mean and standard error of the runs; faint dots are single runs. Lower is better; both axes are logarithmic."
    )
    if any(row["paper"] for row in rows):
        caption += " Open diamonds: the paper."
    return Picture(f"error-{name}", figure, f"{title}: test error by number of labels. {values}.", caption)


def error_by_method(titles: dict[str, str], rows: list[Row]) -> Picture:
    """Plot the error by labels per class, with a panel per task and a line per method."""
    tasks, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("task", "method"))
    ticks = sorted({row["labels_per_class"] for row in rows})
    with drawing():
        if len(tasks) > 1:
            figure, panels = new_panels(len(tasks), columns=3)
        else:
            figure, axes = new_axes(4.8, 3.4)
            panels = [axes]
        for task, axes in zip(tasks, panels, strict=True):
            mine = [row for row in rows if row["task"] == task]
            for i, method in enumerate(methods):
                of = [row for row in mine if row["method"] == method]
                axes.errorbar(
                    [row["labels_per_class"] for row in of], [row["ours"]["mean"] for row in of],
                    yerr=_bars(of, "ours"), fmt="-" + "osD^"[i % 4], color=SERIES[i % len(SERIES)], label=label(method),
                    linewidth=1.2, markersize=3.5, capsize=1.5, alpha=0.9,
                )  # fmt: skip
            log_x(axes, ticks)
            axes.set_xlim(0.8 * ticks[0], 1.25 * ticks[-1])
            means = [row["ours"]["mean"] for row in mine]
            log_y(axes, [*means, *(mean + bar for mean, bar in zip(means, _bars(mine, "ours"), strict=True))])
            axes.set_title(label(titles[task], 36), fontsize=9, color=INK)
        figure.supxlabel("labels per class", fontsize=9, color=INK)
        figure.supylabel("test error %", fontsize=9, color=INK)
        handles = panels[0].get_legend_handles_labels()
        look: dict[str, Any] = {"frameon": False, "labelcolor": "linecolor"}
        if len(tasks) > 1:
            figure.legend(*handles, loc="outside upper left", ncols=len(methods), **look)
        else:
            panels[0].legend(*handles, loc="upper right", **look)
    values = "; ".join(
        f"{titles[row['task']]}, {row['method']}, {row['labels_per_class']}: {row['ours']['mean']:.2f} %"
        for row in rows
    )
    alt = f"Test error by number of labels per class, with a panel per task and a line per method. {values}."
    caption = "Mean and standard error over the draws of labels. Both axes are logarithmic and differ between panels."
    return Picture("error-by-method", figure, alt, caption, wide=True)


def _series(axes: Axes, method: str, color: str, rows: list[Row], runs: list[tuple[int, float]]) -> list[float]:
    """Plot one network; return all errors that were plotted."""
    jitter = np.exp(np.random.default_rng(0).uniform(-0.12, 0.12, len(runs)))
    x, y = np.array(runs, float).reshape(-1, 2).T
    axes.plot(x * jitter, y, "o", color=color, alpha=0.3, markersize=3, markeredgewidth=0)
    axes.errorbar(
        [row["n_labels"] for row in rows], [row["ours"]["mean"] for row in rows], yerr=_bars(rows, "ours"), fmt="-o",
        color=color, linewidth=1.4, markersize=5, capsize=2, label=f"{label(method)}, ours",
    )  # fmt: skip
    return [*y.tolist(), *(row["ours"]["mean"] for row in rows)]


def _published(axes: Axes, method: str, color: str, rows: list[Row]) -> list[float]:
    """Plot one network of the paper; return its errors."""
    found = {row["n_labels"]: row for row in rows if row["paper"] and row["paper_method"] == method}
    mine = [found[n] for n in sorted(found)]
    axes.errorbar(
        [_BESIDE * row["n_labels"] for row in mine], [row["paper"]["mean"] for row in mine],
        yerr=_bars(mine, "paper"), fmt="--D", color=color, linewidth=0.8, markersize=5.5,
        markerfacecolor=PAGE, capsize=2, label=f"{label(method)}, paper",
    )  # fmt: skip
    return [row["paper"]["mean"] for row in mine]


def _bars(rows: list[Row], key: str) -> list[float]:
    sems = [row[key]["sem"] for row in rows]
    return [0.0 if sem is None or isnan(sem) else sem for sem in sems]


def _crowded(ticks: list[int]) -> bool:
    return len(ticks) > 1 and bool(np.diff(np.log10(ticks)).min() < 0.1 * np.log10(ticks[-1] / ticks[0]))
