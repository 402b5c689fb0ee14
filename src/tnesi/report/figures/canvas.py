"""Colors, axes and SVG output, shared by all figures.

Figures are drawn in the colors of the light theme. In SVG output, colors become CSS variables of the page, so that one
drawing serves both themes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from tnesi.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Grid = Literal["both", "none"]

WIDTH, HEIGHT = 4.4, 3.3
"""Inches. The width is 317 SVG units, about that of a phone in pixels, so that text is not scaled down."""

COLORS = {
    "ink": ("#1c2024", "#e6e8ea"),
    "muted": ("#626a73", "#9ba4ae"),
    "line": ("#d4d8dd", "#3a4149"),
    "page": ("#fffffe", "#14171a"),
    "first": ("#0b62a8", "#6cb6f5"),
    "second": ("#b0480e", "#f59b5c"),
    "third": ("#1e7a3c", "#6fcf8a"),
    "fourth": ("#7a3aa8", "#c596ee"),
    "step0": ("#c2a40a", "#fff0a1"),
    "step1": ("#8fa31c", "#d3e67b"),
    "step2": ("#3d9a4c", "#93d67c"),
    "step3": ("#12857a", "#52c4a8"),
    "step4": ("#1f6b96", "#4ea6cf"),
    "step5": ("#3a4a97", "#7f8ae0"),
    "step6": ("#4c1d70", "#b07be0"),
}
"""Light and dark color of each role; the steps are an ordered scale."""

SERIES = [COLORS[role][0] for role in ("first", "second", "third", "fourth")]
INK, MUTED, LINE, PAGE = (COLORS[role][0] for role in ("ink", "muted", "line", "page"))


class Picture(NamedTuple):
    """A figure with its caption and alternative text."""

    name: str
    figure: Figure
    alt: str
    caption: str = ""
    wide: bool = False


def variables(dark: bool) -> str:
    """Return the colors as CSS variables."""
    return "".join(f"--{role}:{pair[dark]};" for role, pair in COLORS.items())


@contextmanager
def drawing() -> Iterator[None]:
    """Configure Matplotlib for the block: no math in labels, and text in SVG files remains text."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'tnesi[plot]'") from error
    settings: dict[Any, Any] = {
        "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "tnesi", "font.size": 9,
        "axes.formatter.useoffset": False,
    }  # fmt: skip
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # browsers have more fonts than Matplotlib
        yield


def new_axes(width: float = WIDTH, height: float = HEIGHT, grid: Grid = "both") -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes, two spines and a faint grid."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor=PAGE)
    return figure, _styled(figure.add_subplot(facecolor="none"), grid)


def new_panels(n: int, columns: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n` pairs of axes, row by row."""
    from matplotlib.figure import Figure

    columns, rows = min(n, columns), -(-n // columns)
    figure = Figure(figsize=(0.6 + 2.6 * columns, 0.8 + 2.1 * rows), layout="constrained", facecolor=PAGE)
    return figure, [_styled(figure.add_subplot(rows, columns, 1 + i, facecolor="none"), "both") for i in range(n)]


def _styled(axes: Axes, grid: Grid) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.tick_params(which="both", colors=INK, width=0.6, length=3)
    axes.tick_params(which="minor", length=0)
    if grid != "none":
        axes.grid(axis=grid, color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    return axes


def log_y(axes: Axes, values: Sequence[float]) -> None:
    """Make the y axis logarithmic with plain numbers at the ticks, unless a value is not positive."""
    low, high = min(values), max(values)
    if low <= 0:
        axes.set_ylim(bottom=0)
        return
    low, high = low / 1.12, high * 1.12
    axes.set_yscale("log")
    wide, coarse, medium, fine = (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), np.arange(1, 10, 0.5), np.arange(1, 10, 0.2)
    steps = next(step for ratio, step in ((12, wide), (2.5, coarse), (1.6, medium), (0, fine)) if high / low > ratio)
    ticks = [step * 10.0**e for e in range(-9, 10) for step in steps]
    set_ticks(axes.yaxis, [tick for tick in ticks if low <= tick <= high])
    axes.set_ylim(low, high)


def log_x(axes: Axes, ticks: Sequence[float]) -> None:
    """Make the x axis logarithmic, with plain numbers at the ticks."""
    axes.set_xscale("log")
    set_ticks(axes.xaxis, ticks)


def set_ticks(axis: Axis, values: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axis.set_ticks(list(values), labels=[f"{value:,.10g}" for value in values])
    axis.set_minor_locator(NullLocator())


def label(text: object, most: int = 28) -> str:
    """Return text for a label: printable, on one line, shortened."""
    short = "".join(c if c.isprintable() else "\ufffd" for c in str(text))
    return short if len(short) <= most else short[: most - 1] + "\u2026"


def spread(at: npt.ArrayLike, gap: float) -> Array:
    """Move positions between 0 and 1 apart so that neighbors differ by at least `gap`, if there is room.

    Examples
    --------
    >>> spread([0.5, 0.51, 0.9, 1.0], 0.1).round(3)
    array([0.455, 0.555, 0.9  , 1.   ])
    """
    order = np.argsort(np.asarray(at), kind="stable")
    gap = min(gap, 1 / max(len(order) - 1, 1))
    blocks: list[tuple[float, int]] = []  # center and number of adjacent positions

    def within(middle: float, n: int) -> tuple[float, int]:
        half = gap * (n - 1) / 2
        return min(max(middle, half), 1 - half), n

    for value in np.asarray(at, float)[order]:
        blocks.append(within(float(value), 1))
        while len(blocks) > 1 and blocks[-1][0] - blocks[-2][0] < gap * (blocks[-1][1] + blocks[-2][1]) / 2:
            (middle, n), (other, m) = blocks.pop(), blocks.pop()
            blocks.append(within((middle * n + other * m) / (n + m), n + m))
    placed = np.empty(len(order))
    placed[order] = [middle + gap * (i - (n - 1) / 2) for middle, n in blocks for i in range(n)]
    return placed


def to_png(figure: Figure, dpi: int) -> bytes:
    with drawing(), io.BytesIO() as out:
        figure.savefig(out, format="png", dpi=dpi)
        figure.set_layout_engine("none")  # the layout is done
        return out.getvalue()


def to_svg(picture: Picture) -> str:
    """Return a figure as an element of an HTML page, with the colors of the page and unique identifiers."""
    with drawing(), io.BytesIO() as out:
        picture.figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        root = ET.fromstring(out.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        for key, value in element.attrib.items():
            element.set(key, _themed(key, value, picture.name))
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": picture.alt}
    return ET.tostring(root, encoding="unicode")


_ROLE = {light: role for role, (light, _) in COLORS.items()}


def _themed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and not value.startswith("#"):
        return value  # an image within the SVG
    if key == "href":
        return f"#{name}-{value[1:]}"
    value = value.replace("url(#", f"url(#{name}-")
    value = re.sub(r"#[0-9a-f]{6}", lambda found: f"var(--{_ROLE[found[0]]})" if found[0] in _ROLE else found[0], value)
    return re.sub(r"font-family: [^;]*;? ?", "", value) if key == "style" else value
