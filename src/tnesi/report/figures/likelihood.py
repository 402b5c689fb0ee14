"""Likelihood, free energy and test error over the iterations, by degree of truncation (the paper's Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tnesi.report.figures.canvas import COLORS, INK, Picture, drawing, label, log_x, log_y, new_axes, spread
from tnesi.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = dict[str, Any]
Curve = tuple[Array, Array]

_STEPS = [colors[0] for role, colors in COLORS.items() if role.startswith("step")]


def likelihood_pictures(records: list[Record], truncations: Sequence[object]) -> list[Picture]:
    """Plot the curves in the records; thin lines are single seeds, thick ones their means."""
    panels = (
        ("log-likelihood", "iteration", "log_likelihood", "Exact log-likelihood of a sample of training rows", False),
        ("log-likelihood-end", "iteration", "log_likelihood", "Mean log-likelihood in the last iterations", True),
        ("held-out", "iteration", "held_out", "Exact log-likelihood of the test rows", False),
        ("free-energy", "iteration", "free_energy", "Truncated free energy, which learning increases", False),
        ("free-energy-end", "iteration", "free_energy", "Mean free energy in the last iterations", True),
        ("error-iterations", "iteration", "error", "Test error over the iterations", False),
        ("error-seconds", "seconds", "error", "Test error over time", False),
    )
    pictures = []
    for name, x, y, caption, end in panels:
        curves = {c: [curve(r, x, y) for r in records if r["truncation"] == c] for c in truncations}
        curves = {c: [one for one in ones if len(one[0])] for c, ones in curves.items()}
        curves = {c: ones for c, ones in curves.items() if ones}
        if curves:
            pictures.append(_panel(name, x, y, caption, curves, end))
    return pictures


def curve(record: Record, x: str, y: str) -> Curve:
    """Return the points of a record that have both values."""
    points = [(point[x], point[y]) for point in record["curve"] if x in point and y in point]
    found = np.array(points, float).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def mean_curve(curves: list[Curve]) -> Curve:
    """Return the mean of curves over their common points; those of interrupted runs are shorter."""
    n = min(len(x) for x, _ in curves)
    return np.mean([x[:n] for x, _ in curves], axis=0), np.mean([y[:n] for _, y in curves], axis=0)


def _panel(name: str, x: str, y: str, caption: str, curves: dict[object, list[Curve]], end: bool) -> Picture:
    from matplotlib.ticker import MaxNLocator

    means = {c: mean_curve(ones) for c, ones in curves.items()}
    with drawing():
        figure, axes = new_axes()
        color = dict(zip(curves, _scale(len(curves)), strict=True))
        for c, ones in curves.items():
            for one in ones if len(ones) > 1 and not end else []:
                axes.plot(*one, color=color[c], linewidth=0.6, alpha=0.45)
            axes.plot(*means[c], color=color[c], linewidth=1.6, marker="." if len(means[c][0]) < 12 else "")
        if x == "seconds":
            _log_seconds(axes, np.concatenate([m[0] for m in means.values()]))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        if y == "error":
            log_y(axes, np.concatenate([one[1] for ones in curves.values() for one in ones]).tolist())
        _frame(axes, list(means.values()), end)
        axes.set(xlabel="seconds" if x == "seconds" else "iteration", ylabel=_UNIT[y])
        _name_lines(axes, means, color)
    values = ", ".join(f"C' = {c}: {m[1][-1]:.3f}" for c, m in means.items())
    return Picture(name, figure, f"{caption}, by truncation C'. Final values: {values}.", caption)


_UNIT = {
    "log_likelihood": "log-likelihood (nats)",
    "held_out": "log-likelihood (nats)",
    "free_energy": "free energy (nats)",
    "error": "test error %",
}


def _scale(n: int) -> list[str]:
    return [_STEPS[round(i * (len(_STEPS) - 1) / max(n - 1, 1))] for i in range(n)]


def _log_seconds(axes: Axes, seconds: Array) -> None:
    low, high = float(max(seconds.min(), 1e-3)), float(max(seconds.max(), 1e-2))
    ticks = [step * 10.0**e for e in range(-3, 7) for step in (1, 3)]
    log_x(axes, [tick for tick in ticks if low / 2 <= tick <= high * 2])


def _frame(axes: Axes, means: list[Curve], end: bool) -> None:
    """Set the limits: omit the start, far below the rest; with `end`, show the last gains of the best curve."""
    last = max(float(x[-1]) for x, _ in means)
    first = 0.6 * last if end else min(1.0, last)
    if "log" in (axes.get_xscale(), axes.get_yscale()) or last <= 0:
        return
    best = max((y[x >= first] for x, y in means if x[-1] >= first), key=lambda y: float(y[-1]))
    seen = best if end else np.concatenate([y[x >= first] for x, y in means])
    span = max(float(np.ptp(seen)), 1e-3)
    axes.set_ylim(seen.min() - (0.35 if end else 0.06) * span, seen.max() + 0.06 * span)
    axes.set_xlim(first if end else 0, last)


def _name_lines(axes: Axes, means: dict[object, Curve], color: dict[object, str]) -> None:
    """Write C' to the right of the lines, level with their ends as far as there is room."""
    low, high = axes.get_ylim()
    ends = [(float(x[-1]), float(np.clip(y[-1], low, high))) for x, y in means.values()]
    levels = axes.transAxes.inverted().transform(axes.transData.transform(ends))[:, 1]
    axes.annotate("C'", (1.05, 1.06), xycoords="axes fraction", color=INK, annotation_clip=False)
    for c, end, at in zip(means, ends, spread(levels, 0.062), strict=True):
        axes.annotate(
            label(c), end, (1.05, at), textcoords="axes fraction", va="center", color=color[c], fontweight="bold",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color[c], "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
