"""What an estimator has learned, as HTML for notebooks: fields as small pictures, classes, method and confidence.

All text that comes from users, such as class names, is escaped.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from tnesi.labeling.alarms import class_shares
from tnesi.model.classifier_model import ClassifierModel
from tnesi.model.mixture_model import MixtureModel
from tnesi.types import Array

_MOST_CLASSES, _MOST_FIELDS, _PER_CLASS = 20, 24, 6
_HEIGHT = 28
"""Height of a picture in pixels of the page."""
_MOST_BARS = 128


def mixture_summary(model: MixtureModel, n_iterations: int) -> str:
    """Return the summary of a mixture."""
    few = np.linspace(0, model.n_fields - 1, min(model.n_fields, _MOST_FIELDS)).astype(int)
    return _block([_first_layer([model], n_iterations)], _pictures(model.fields.w[few] - 1))


def classifier_summary(model: ClassifierModel, n_iterations: int, confidence: Array | None) -> str:
    """Return the summary of a classifier; `confidence` is that of the names of the classes."""
    lines, layer = [_first_layer(model.mixtures, n_iterations)], model.layer
    if layer is None:
        return _block([*lines, "No labels yet."], "")
    methods = [f"{vote.method} {100 * vote.share:.0f} %" for vote in layer.votes] or [layer.method or "supervised"]
    lines.append(f"{layer.classes.n_classes} classes, learned by {escape(', '.join(methods))}.")
    if layer.accuracy is not None:
        lines.append(f"Expected accuracy {100 * layer.accuracy:.0f} %.")
    shares = None if model.rows is None or model.label is None else class_shares(model)
    return _block(lines, "".join(_table(model, shares, confidence)))


def _table(model: ClassifierModel, shares: Array | None, confidence: Array | None) -> Iterator[str]:
    """Yield a row for each class: its name, share of the rows, confidence and most typical fields."""
    assert model.layer is not None
    layer = model.layer
    weights = layer.classes.weights
    owner = weights.argmax(axis=0)
    columns = ["class", *(["rows"] if shares is not None else []), *(["confidence"] if confidence is not None else [])]
    yield '<table style="border-collapse:collapse;margin:0"><tr>'
    yield "".join(f'<th style="text-align:left;padding:0 1em 0 0">{name}</th>' for name in [*columns, "fields"])
    yield "</tr>"
    first = model.mixtures[0]
    for k, name in enumerate(layer.names[:_MOST_CLASSES].tolist()):
        texts = [escape(str(name))]
        texts += [] if shares is None else [f"{100 * shares[k]:.1f} %"]
        texts += [] if confidence is None else [f"{100 * confidence[k]:.0f} %" if k < len(confidence) else ""]
        own = np.flatnonzero((owner == k) & (weights[k] > 0))
        own = own[own < first.n_fields]  # of a committee, those of its first mixture
        most = own[np.argsort(-weights[k, own], kind="stable")[:_PER_CLASS]]
        cells = [*texts, _pictures(first.fields.w[most] - 1) if most.size else ""]
        yield (
            "<tr>"
            + "".join(f'<td style="text-align:left;padding:2px 1em 2px 0">{cell}</td>' for cell in cells)
            + "</tr>"
        )
    yield "</table>"
    if (left := layer.classes.n_classes - _MOST_CLASSES) > 0:
        yield f"<p>and {left:,} more classes</p>"


def _first_layer(mixtures: Sequence[MixtureModel], n_iterations: int) -> str:
    fields = " + ".join(f"{mixture.n_fields:,}" for mixture in mixtures)
    return f"{fields} fields of {mixtures[0].n_features:,} features, {n_iterations} iterations."


def _block(lines: list[str], content: str) -> str:
    paragraph = f'<p style="margin:0.3em 0">{" ".join(lines)}</p>' if lines else ""
    return f'<div class="tnesi-learned" style="font-size:0.9em;overflow-x:auto">{paragraph}{content}</div>'


def _pictures(rows: Array) -> str:
    """Return rows as one picture, side by side: images if they are square, else profiles."""
    side = math.isqrt(rows.shape[1])
    tiles = [_image(row.reshape(side, side)) if side * side == row.size else _profile(row) for row in rows]
    gap = np.full((tiles[0].shape[0], max(1, tiles[0].shape[0] // 8)), 255, np.uint8)
    picture = np.hstack([part for tile in tiles for part in (tile, gap)][:-1])
    width = round(_HEIGHT * picture.shape[1] / picture.shape[0])
    data = base64.b64encode(_png(picture)).decode()
    return (
        f'<img alt="{len(rows)} fields" width="{width}" height="{_HEIGHT}" '
        f'style="image-rendering:pixelated;vertical-align:middle" src="data:image/png;base64,{data}">'
    )


def _image(values: Array) -> Array:
    """Return values as gray levels, the largest as black."""
    return np.asarray(255 - np.round(255 * values / max(float(values.max()), 1e-30)), np.uint8)


def _profile(row: Array) -> Array:
    """Return a row as bars; of wide rows, each bar is the largest of several features."""
    starts = np.linspace(0, row.size, min(row.size, _MOST_BARS), endpoint=False).astype(int)
    bars = np.maximum.reduceat(row, starts)
    level = np.round(_HEIGHT * bars / max(float(bars.max()), 1e-30))
    filled = np.arange(_HEIGHT, 0, -1)[:, None] <= level[None]
    return np.where(filled, 60, 235).astype(np.uint8)


def _png(gray: Array) -> bytes:
    """Return a PNG file of gray levels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = gray.shape
    lines = np.hstack([np.zeros((height, 1), np.uint8), gray]).tobytes()  # each line starts with its filter: none
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
