"""The picture of the peers benchmark: error against labels per class for a few data sets.

Methods that learn from test rows, or know the sizes of the classes, are left out: they know more than a user does.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from peers_cells import LOGISTIC, OURS, Cells, Where
from peers_report import TITLES

from tnesi.report.figures.canvas import to_png
from tnesi.report.figures.errors import error_by_method
from tnesi.system.files import replacing

SHOWN = ("mnist", "fashion-mnist", "emnist-letters", "bbc", "bbc-minilm", "breast-cancer-wisconsin")
SPREADING = "label spreading"
BEST = "best of the others"


def draw(cells: Cells, path: Path) -> str:
    """Draw the errors on encoded features of the data that there are, and return a text that says the same."""
    data = [name for name in SHOWN if any(where[:2] == (name, "encoded") and OURS in cells[where] for where in cells)]
    if not data:
        raise SystemExit(f"No results of tnesi on encoded features of {', '.join(SHOWN)}.")
    rows = [row for name in data for row in _rows(cells, name)]
    picture = error_by_method({name: TITLES[name] for name in data}, rows)
    drawn = to_png(picture.figure, dpi=160)
    with replacing(path) as temporary:
        temporary.write_bytes(drawn)
    return picture.alt


def _rows(cells: Cells, name: str) -> list[dict[str, Any]]:
    """Return means and standard errors; the best of the other methods is another one in each cell."""
    rows = []
    for method in (OURS, LOGISTIC, SPREADING, BEST):
        for where, cell in cells.items():
            if where[:2] != (name, "encoded"):
                continue
            named = (OURS, LOGISTIC, SPREADING)
            others = [o for key, o in cell.items() if key not in named and not (o.sees_test or o.told_sizes)]
            outcome = min(others, key=lambda o: o.error.mean, default=None) if method == BEST else cell.get(method)
            if outcome is not None:
                rows.append(_row(where, method, asdict(outcome.error)))
    return sorted(rows, key=lambda row: (row["method"] != OURS, row["labels_per_class"]))


def _row(where: Where, method: str, error: dict[str, Any]) -> dict[str, Any]:
    return {"task": where.data, "method": method, "labels_per_class": where.labels, "ours": error}
