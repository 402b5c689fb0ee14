from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.report.figures.canvas import COLORS, INK, Picture, drawing, label, log_y, new_axes, spread, to_svg


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0.001, 0.2))
def test_spread_keeps_the_order_the_bounds_and_the_distances(at: list[float], gap: float) -> None:
    placed = spread(at, gap)
    assert placed.shape == (len(at),)
    in_order = placed[np.argsort(at, kind="stable")]
    assert np.all(np.diff(in_order) >= min(gap, 1 / max(len(at) - 1, 1)) - 1e-9)
    assert np.all((placed >= -1e-9) & (placed <= 1 + 1e-9))
    if len(at) > 1 and np.diff(np.sort(at)).min() > gap:
        np.testing.assert_allclose(placed, at)


HOSTILE = '<script>alert(1)</script> $\\frac{ "&\x00\ud800'


def test_svg_takes_colors_and_names_from_the_page() -> None:
    with drawing():
        figure, axes = new_axes()
        axes.plot([1, 2], [3, 4], color=INK, label=label(HOSTILE))
        axes.imshow([[1, 2]])
        axes.legend()
    svg = to_svg(Picture("name", figure, HOSTILE.encode("utf-8", "replace").decode().replace("\x00", "")))
    root = ET.fromstring(svg)
    assert root.tag == "svg"
    assert "<script" not in svg
    assert "http" not in svg
    for light, _ in COLORS.values():
        assert light not in svg
    assert "var(--ink)" in svg
    identifiers = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(identifiers) == len(set(identifiers))
    assert all(i.startswith("name-") for i in identifiers if i)
    used = re.findall(r"url\(#([^)]*)\)", svg) + [e.get("href", "")[1:] for e in root.iter("use")]
    assert used
    assert set(used) <= set(identifiers)


def test_an_error_of_zero_has_no_logarithm() -> None:
    with drawing():
        _, axes = new_axes()
        log_y(axes, [0.0, 3.0])
        assert axes.get_yscale() == "linear"
        log_y(axes, [1.0, 30.0])
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1", "2", "5", "10", "20"]


@pytest.mark.parametrize("role", [role for role in COLORS if role not in ("line", "page")])
def test_colors_are_readable_on_both_pages(role: str) -> None:
    def luminance(color: str) -> float:
        parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for color, page in zip(COLORS[role], COLORS["page"], strict=True):
        dark, light = sorted((luminance(color), luminance(page)))
        needed = 2.2 if role.startswith("step") else 4.5  # steps are lines with bold names, the others text
        assert (light + 0.05) / (dark + 0.05) >= needed, (role, color)
