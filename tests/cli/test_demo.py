"""``tnesi demo``: one table, one plot, and the next steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image


def test_demo(run: Any, tmp_path: Path) -> None:
    plot = tmp_path / "new" / "plot.png"
    printed = run("demo", "--draws", 1, "-o", plot, "--quiet").stdout
    for name in ("tnesi", "LogisticRegression", "SelfTrainingClassifier", "LabelSpreading", "labels per class"):
        assert name in printed
    assert printed.splitlines()[-1].endswith("label digits")
    with Image.open(plot) as image:
        assert image.width > 600


def test_demo_for_programs(run_json: Any, tmp_path: Path) -> None:
    told = run_json("demo", "--draws", 1, "-o", tmp_path / "plot.png")
    assert {row["labels_per_class"] for row in told["rows"]} == {1, 2, 5, 10}
