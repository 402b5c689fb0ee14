"""Rows of non-negative numbers from pictures on a canvas: histograms of oriented gradients, and of colors.

The canvas is covered by a grid of cells, at most eight along the longer side. Per cell there are

- eight signed orientations: which way it gets brighter, with the strength of the gradient;
- for shaded pictures (photographs, in contrast to drawings and writing), the same divided by the square root of the
  energy around the cell, and nine unsigned orientations, divided by that energy: outlines count alike in light and
  shade. Both parts have the same sum;
- for colored pictures, beside these, a histogram of eight colors (the corners of the color cube, of which each pixel is
  a mixture) over a coarser grid.

Whether pictures are shaded and colored, and how strong their gradients are, is measured on a sample without labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tnesi.encoders.canvas import Size
from tnesi.encoders.values import as_gray
from tnesi.kernels import color_histograms, oriented_gradients

Array = npt.NDArray[Any]
Boxes = npt.NDArray[np.int32] | None

_SIGNED, _UNSIGNED = 8, 9
"""Orientations."""
_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
"""Corners of the color cube in the order of the kernel."""
_COLOR_CELLS = 3
"""Along the longer side, at most."""
_WEAK, _SHADED = 0.2, 0.08
"""Pictures are shaded where gradients weaker than a fifth of the strong ones make up 8 % of all, or more."""
_COLORED = 0.02
"""Pictures are colored where the channels of a pixel differ by as much on average."""
_FLOOR = 0.1
"""Share of the usual energy, or of the usual sum of gradients, below which there is nothing but noise."""


@dataclass(frozen=True)
class Strength:
    """What gradients are usually like.

    Attributes
    ----------
    signed, unsigned : float
        Mean energy around a cell.
    total : float
        Mean sum of a picture's gradients.
    """

    signed: float
    unsigned: float
    total: float


@dataclass(frozen=True)
class PictureRows:
    """How pictures become rows.

    Attributes
    ----------
    canvas : (int, int)
        Height and width.
    colored, shaded : bool
    strength : Strength
    """

    canvas: Size
    colored: bool
    shaded: bool
    strength: Strength

    @property
    def cells(self) -> Size:
        """Rows and columns of cells for gradients."""
        return cells_for(self.canvas)

    @property
    def color_cells(self) -> Size:
        """Rows and columns of cells for colors."""
        return _grid(self.canvas, min(_COLOR_CELLS, max(self.cells)))

    @property
    def n_features(self) -> int:
        """Length of a row."""
        orientations = _SIGNED + _UNSIGNED if self.shaded else _SIGNED
        rows, columns = self.cells
        color_rows, color_columns = self.color_cells
        return rows * columns * orientations + (color_rows * color_columns * len(_COLORS) if self.colored else 0)

    def names(self) -> list[str]:
        """Return the names of the features."""
        kinds = [("direction", _SIGNED, 360), *([("outline", _UNSIGNED, 180)] if self.shaded else [])]
        found = [
            f"{kind}_{row}_{column}_{round(turn * orientation / n)}"
            for kind, n, turn in kinds
            for row, column in np.ndindex(self.cells)
            for orientation in range(n)
        ]
        if self.colored:
            found += [
                f"color_{row}_{column}_{color}" for row, column in np.ndindex(self.color_cells) for color in _COLORS
            ]
        return found

    def encode(self, pictures: Array, boxes: Boxes, n_threads: int) -> Array:
        """Return a row for each picture.

        Parameters
        ----------
        pictures : ndarray of shape (n, height, width, channels), float32
            One channel, or three where pictures are colored; from 0 (black) to 1 (white).
        boxes : ndarray of shape (n, 4) or None
            What each picture fills of its canvas, as in `tnesi.encoders.canvas`.
        """
        signed = _gradients(pictures, boxes, self.cells, True, n_threads)
        total = _sums(signed)
        if self.shaded:
            unsigned = _gradients(pictures, boxes, self.cells, False, n_threads)
            parts = [
                _share(_equalized(signed, self.strength.signed, 0.25)),
                _share(_equalized(unsigned, self.strength.unsigned, 0.5)),
            ]
            gradients = np.hstack(parts)
        else:
            gradients = signed.reshape(len(signed), -1)
        if not self.colored:
            return gradients
        # Flat pictures are all color: their noise would make up half of the row otherwise.
        weight = total / (total + np.float32(_FLOOR * self.strength.total + 1e-12))
        colors = np.empty((len(pictures), *self.color_cells, len(_COLORS)), np.float32)
        color_histograms(pictures, boxes, colors, n_threads)
        return np.hstack([_share(gradients) * weight[:, None], _share(colors)])


def cells_for(canvas: Size) -> Size:
    """Return rows and columns of cells: of two pixels in small pictures, at most eight in large ones.

    Examples
    --------
    >>> cells_for((8, 8)), cells_for((16, 16)), cells_for((28, 28)), cells_for((48, 64))
    ((4, 4), (8, 8), (7, 7), (6, 8))
    """
    longer = max(canvas)
    if longer <= 16:
        return _grid(canvas, max(1, longer // 2))
    return _grid(canvas, 7 if longer <= 30 else 8)


def measured(canvas: Size, colored: bool, sample: list[tuple[Array, Boxes]], n_threads: int) -> PictureRows:
    """Measure on a sample of pictures, in blocks, how they become rows.

    Every other statistic is a mean over the pictures, so equal pictures give equal results whatever the blocks are.
    """
    cells, weak = cells_for(canvas), []
    signed, unsigned, total = [], [], []
    for pictures, boxes in sample:
        weak.append(np.array(list(_weak_shares(pictures, boxes))))
        histograms = _gradients(pictures, boxes, cells, True, n_threads)
        total.append(_sums(histograms))
        signed.append(_energy(histograms).mean(axis=(1, 2)))
        unsigned.append(_energy(_gradients(pictures, boxes, cells, False, n_threads)).mean(axis=(1, 2)))
    means = [float(np.concatenate(values).mean(dtype=np.float64)) for values in (signed, unsigned, total)]
    shares = np.concatenate(weak)
    shaded = bool(shares.size and np.nanmean(np.append(shares, 0.0)) >= _SHADED)
    return PictureRows(canvas, colored, shaded, Strength(*means))


def is_colored(sample: list[tuple[Array, Boxes]]) -> bool:
    """Return whether the channels of pictures differ."""
    differences, pixels = 0.0, 0
    for pictures, boxes in sample:
        differences += float(np.ptp(pictures, axis=-1).sum(dtype=np.float64))
        height, width = pictures.shape[1:3]
        pixels += len(pictures) * height * width if boxes is None else int((boxes[:, 2] * boxes[:, 3]).sum())
    return differences >= _COLORED * max(pixels, 1)


def _weak_shares(pictures: Array, boxes: Boxes) -> Iterator[float]:
    """Yield for each picture with gradients which share of them is weak."""
    for n, picture in enumerate(pictures):
        top, left, height, width = (0, 0, *picture.shape[:2]) if boxes is None else boxes[n]
        roots = np.sqrt(np.maximum(as_gray(picture[top : top + height, left : left + width])[:, :, 0], 0))
        roots = np.pad(roots, 1, "edge")
        sizes = np.hypot(roots[1:-1, 2:] - roots[1:-1, :-2], roots[2:, 1:-1] - roots[:-2, 1:-1])
        if (all_of_them := sizes.sum(dtype=np.float64)) > 0:
            yield float(sizes[sizes < _WEAK * np.percentile(sizes, 99)].sum(dtype=np.float64) / all_of_them)


def _grid(canvas: Size, longer_side: int) -> Size:
    """Divide a canvas into cells that are as nearly square as possible."""
    cell = max(canvas) / longer_side
    return max(1, round(canvas[0] / cell)), max(1, round(canvas[1] / cell))


def _gradients(pictures: Array, boxes: Boxes, cells: Size, is_signed: bool, n_threads: int) -> Array:
    out = np.empty((len(pictures), *cells, _SIGNED if is_signed else _UNSIGNED), np.float32)
    oriented_gradients(pictures, boxes, is_signed, out, n_threads)
    return out


def _energy(histograms: Array) -> Array:
    """Return the sum of squares in each cell and the eight around it."""
    energy = np.pad(np.einsum("nyxo,nyxo->nyx", histograms, histograms), ((0, 0), (1, 1), (1, 1)))
    energy = energy[:, :-2] + energy[:, 1:-1] + energy[:, 2:]
    found: Array = energy[:, :, :-2] + energy[:, :, 1:-1] + energy[:, :, 2:]
    return found


def _equalized(histograms: Array, usual_energy: float, power: float) -> Array:
    """Divide each cell by a power of the energy around it."""
    energy = _energy(histograms) + np.float32(_FLOOR**2 * usual_energy + 1e-12)
    equalized: Array = histograms / (energy ** np.float32(power))[..., None]
    return equalized


def _sums(histograms: Array) -> Array:
    return histograms.reshape(len(histograms), -1).sum(axis=1)


def _share(histograms: Array) -> Array:
    """Return rows that sum to 1, or to 0."""
    rows = histograms.reshape(len(histograms), -1)
    sums = rows.sum(axis=1, keepdims=True)
    shares: Array = rows / np.where(sums > 0, sums, 1)
    return shares
