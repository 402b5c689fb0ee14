"""Rows of non-negative numbers from pictures on a canvas: histograms of oriented gradients, and of colors.

The canvas is covered by a grid of cells, at most eight along the longer side. Each cell has a histogram of gradients:

- In drawings and writing, eight directions: where it gets brighter.
- In shaded pictures such as photographs, nine orientations of outlines, be they darker or brighter than what is behind
  them, divided by a power of the energy around the cell: outlines count almost alike in light and shade.

Colored pictures also have a histogram of colors on a coarser grid. A pixel is a mixture of black, white, and at most
two of six hues. Hues count by their share of a picture's hues, so that muted colors are seen; where a picture has
hardly any, they count less. Background colors would drown shapes if both parts had the same sum, because the model
finds them easier to predict. The weight of the colors makes the information in them a fixed share of the information
in the gradients (mean Kullback-Leibler divergence of a row from the mean row).

Whether pictures are shaded and colored, and the weights, are measured on a sample without labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from tnesi.encoders.canvas import Size
from tnesi.encoders.values import as_gray
from tnesi.kernels import color_histograms, oriented_gradients
from tnesi.types import Array

Boxes = npt.NDArray[np.int32] | None

_DIRECTIONS, _OUTLINES = 8, 9
_WEAK, _SHADED = 0.2, 0.08
"""Pictures are shaded where gradients weaker than a fifth of the strong ones make up 8 % of all, or more."""
_POWER, _LEAST_ENERGY = 0.375, 0.01
"""Of the energy by which cells are divided; and what is added to it, as a share of the mean."""

_CORNERS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
"""Corners of the color cube in the order of the kernel."""
_HUES = slice(1, 7)
_COLOR_CELLS = 3
"""Along the longer side, at most."""
_COLORED = 0.02
"""Pictures are colored where the channels of a pixel differ by as much on average."""
_MUTED = 0.5
"""Share of the mean amount of hues at which the hues of a picture count two thirds."""
_BLACK_AND_WHITE = 0.3
"""Weight of black and white beside the hues."""
_COLOR_INFORMATION = 0.4
"""Information in the colors as a share of that in the gradients."""
_COLOR_WEIGHTS = (0.2, 1.0)
"""Least and most."""
_NOISE = 0.02
"""Mean gradient at which the gradients of a colored picture count half: fewer are noise, and the color is what counts.
Photographs have 0.05 to 0.1."""


@dataclass(frozen=True)
class PictureRows:
    """How pictures become rows.

    Attributes
    ----------
    canvas : (int, int)
        Height and width.
    shaded, colored : bool
    energy : float
        Mean energy of the gradients around a cell.
    hues : float
        Mean share of the hues in a picture.
    color_weight : float
        Sum of the colors beside gradients that sum to 1.
    """

    canvas: Size
    shaded: bool
    colored: bool
    energy: float
    hues: float
    color_weight: float

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
        rows, columns = self.cells
        color_rows, color_columns = self.color_cells if self.colored else (0, 0)
        return rows * columns * (_OUTLINES if self.shaded else _DIRECTIONS) + color_rows * color_columns * len(_CORNERS)

    def names(self) -> list[str]:
        """Return the names of the features."""
        kind, n, turn = ("outline", _OUTLINES, 180) if self.shaded else ("direction", _DIRECTIONS, 360)
        angles = [f"{turn * orientation // n}" for orientation in range(n)]
        found = [f"{kind}_{row}_{column}_{angle}" for row, column in np.ndindex(self.cells) for angle in angles]
        if self.colored:
            places = list(np.ndindex(self.color_cells))
            found += [f"color_{row}_{column}_{color}" for row, column in places for color in _CORNERS]
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
        gradients, strength = self.gradients(pictures, boxes, n_threads)
        if not self.colored:
            return gradients
        colors = self.colors(pictures, boxes, n_threads)
        seen = (strength**2 / (strength**2 + np.float32(_NOISE**2)))[:, None]
        return np.hstack([_shares(gradients) * seen, np.float32(self.color_weight) * colors])

    def gradients(self, pictures: Array, boxes: Boxes, n_threads: int) -> tuple[Array, Array]:
        """Return rows of gradients and the mean gradient of each picture."""
        histograms = _histograms(pictures, boxes, self.cells, self.shaded, n_threads)
        strength = histograms.reshape(len(pictures), -1).sum(axis=1) / _areas(pictures, boxes)
        if self.shaded:
            energy = _energy(histograms) + np.float32(_LEAST_ENERGY * self.energy + 1e-12)
            histograms /= (energy ** np.float32(_POWER))[..., None]
        return histograms.reshape(len(pictures), -1), strength

    def colors(self, pictures: Array, boxes: Boxes, n_threads: int) -> Array:
        """Return rows of colors, with a sum near 1."""
        histograms = _color_histograms(pictures, boxes, self.color_cells, n_threads)
        hues = histograms[..., _HUES].sum(axis=(1, 2, 3))[:, None, None, None]
        histograms *= np.float32(_BLACK_AND_WHITE)
        histograms[..., _HUES] /= np.float32(_BLACK_AND_WHITE) * (hues + np.float32(_MUTED * self.hues + 1e-12))
        return histograms.reshape(len(pictures), -1)


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


def measure(canvas: Size, colored: bool, sample: list[tuple[Array, Boxes]], n_threads: int) -> PictureRows:
    """Measure on a sample of pictures, in blocks, how they become rows."""
    weak = [share for pictures, boxes in sample for share in _weak_shares(pictures, boxes)]
    shaded = bool(weak) and float(np.mean(weak)) >= _SHADED
    found = PictureRows(canvas, shaded, colored, 0.0, 0.0, 0.0)
    if shaded:
        energies = [_energy(_histograms(*block, found.cells, shaded, n_threads)).mean(axis=(1, 2)) for block in sample]
        found = replace(found, energy=_mean(energies))
    if colored:
        histograms = [_color_histograms(*block, found.color_cells, n_threads) for block in sample]
        found = replace(found, hues=_mean([part[..., _HUES].sum(axis=(1, 2, 3)) for part in histograms]))
        gradients = np.concatenate([found.gradients(*block, n_threads)[0] for block in sample])
        colors = np.concatenate([found.colors(*block, n_threads) for block in sample])
        weight = _COLOR_INFORMATION * _information(gradients) / max(_information(colors), 1e-6)
        found = replace(found, color_weight=float(np.clip(weight, *_COLOR_WEIGHTS)))
    return found


def is_colored(sample: list[tuple[Array, Boxes]]) -> bool:
    """Return whether the channels of pictures differ."""
    differences = sum(float(np.ptp(pictures, axis=-1).sum(dtype=np.float64)) for pictures, _ in sample)
    return differences >= _COLORED * sum(float(_areas(*block).sum(dtype=np.float64)) for block in sample)


def _weak_shares(pictures: Array, boxes: Boxes) -> Iterator[float]:
    """Yield for each picture that has gradients which share of them is weak."""
    for n, picture in enumerate(pictures):
        top, left, height, width = (0, 0, *picture.shape[:2]) if boxes is None else boxes[n]
        tones = np.maximum(as_gray(picture[top : top + height, left : left + width])[:, :, 0], 0) ** np.float32(0.75)
        tones = np.pad(tones, 1, "edge")
        sizes = np.hypot(tones[1:-1, 2:] - tones[1:-1, :-2], tones[2:, 1:-1] - tones[:-2, 1:-1])
        if (total := sizes.sum(dtype=np.float64)) > 0:
            yield float(sizes[sizes < _WEAK * np.percentile(sizes, 99)].sum(dtype=np.float64) / total)


def _grid(canvas: Size, longer_side: int) -> Size:
    """Divide a canvas into cells that are as nearly square as possible."""
    cell = max(canvas) / longer_side
    return max(1, round(canvas[0] / cell)), max(1, round(canvas[1] / cell))


def _histograms(pictures: Array, boxes: Boxes, cells: Size, shaded: bool, n_threads: int) -> Array:
    out = np.empty((len(pictures), *cells, _OUTLINES if shaded else _DIRECTIONS), np.float32)
    oriented_gradients(pictures, boxes, not shaded, out, n_threads)
    return out


def _color_histograms(pictures: Array, boxes: Boxes, cells: Size, n_threads: int) -> Array:
    """Return the share of each color in each cell; they sum to 1, or to a little less where cells end."""
    out = np.empty((len(pictures), *cells, len(_CORNERS)), np.float32)
    color_histograms(pictures, boxes, out, n_threads)
    out /= _areas(pictures, boxes)[:, None, None, None]
    return out


def _areas(pictures: Array, boxes: Boxes) -> Array:
    """Return the number of pixels of each picture."""
    if boxes is None:
        return np.full(len(pictures), np.float32(pictures.shape[1] * pictures.shape[2]))
    return (boxes[:, 2] * boxes[:, 3]).astype(np.float32)


def _energy(histograms: Array) -> Array:
    """Return the sum of squares in each cell and the eight around it."""
    energy = np.pad(np.einsum("nyxo,nyxo->nyx", histograms, histograms), ((0, 0), (1, 1), (1, 1)))
    energy = energy[:, :-2] + energy[:, 1:-1] + energy[:, 2:]
    around: Array = energy[:, :, :-2] + energy[:, :, 1:-1] + energy[:, :, 2:]
    return around


def _shares(rows: Array) -> Array:
    """Return rows that sum to 1, or to 0."""
    sums = rows.sum(axis=1, keepdims=True)
    shares: Array = rows / np.where(sums > 0, sums, 1)
    return shares


def _information(rows: Array) -> float:
    """Return the mean Kullback-Leibler divergence of rows from their mean."""
    shares = _shares(rows.astype(np.float64))
    mean = shares.mean(axis=0)
    return float(rel_entr(shares, np.where(mean > 0, mean, 1)).sum(axis=1).mean())


def _mean(parts: list[Array]) -> float:
    return float(np.concatenate(parts).mean(dtype=np.float64))
