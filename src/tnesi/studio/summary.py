"""The report of a studio: a self-contained HTML page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import tnesi
from tnesi.report.fields import plot_fields, plot_rows
from tnesi.report.figures.canvas import Picture
from tnesi.report.labels import second_layer_lines
from tnesi.report.page import render
from tnesi.report.parts import FigureWriter, Gallery, Section, Shown, Table
from tnesi.studio.learned import Learned
from tnesi.studio.session import Session
from tnesi.studio.shown import Features, ShownPictures

_OF_EACH, _DOUBTFUL = 3, 30


def write_summary(session: Session, learned: Learned, path: Path) -> None:
    """Write the page."""
    state, estimate = session.state(""), learned.estimate
    n_labels = int((learned.label >= 0).sum())
    error = "not known"
    if estimate is not None:
        error = f"{100 * estimate.value:.1f} % ({100 * estimate.low:.1f} to {100 * estimate.high:.1f} %)"
    summary = (
        f"{n_labels:,} labels of {len(learned.names)} classes for {learned.best.size:,} rows; "
        f"{100 * learned.decided:.1f} % of the rows are decided. Expected error: {error}."
    )
    page = render(
        {
            "title": f"Labels of {session.data.name}",
            "subtitle": f"tnesi {tnesi.__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "banners": [f"{one['text']} ({_row(session, one['row'])})" for one in state["conflicts"]],
            "notes": [],
            "quick": False,
            "summary": summary,
            "sections": [
                _classes(session, learned),
                *_pictures(session, learned, path.parent),
                _steps(state["history"]),
            ],
            "footer": "Made by tnesi label. The expected error is an estimate; measure the true error "
            "with labels that were not used for learning.",
        }
    )
    path.write_text(page, encoding="utf-8", errors="replace")


def _row(session: Session, row: int) -> str:
    file = session.file(row)
    return f"row {row}" if file is None else f"row {row}, {file}"


def _classes(session: Session, learned: Learned) -> Section:
    model = learned.named_model()
    assert model is not None
    given = np.bincount(learned.label[learned.label >= 0], minlength=len(learned.names))
    rows = []
    for k, name in enumerate(learned.names):
        margin = learned.margin[learned.best == k]
        rows.append(
            [
                name,
                f"{given[k]:,}",
                f"{learned.sizes[k]:,}",
                f"{100 * learned.sizes[k] / learned.best.size:.1f} %",
                f"{margin.mean():.2f}" if margin.size else "",
                f"{learned.confidence[k]:.2f}",
                learned.names[learned.rivals[k]],
            ]
        )
    columns = ["class", "labels", "rows", "share", "mean margin", "confidence in the name", "may be confused with"]
    text = " ".join(second_layer_lines(model))
    return Section("Classes", [Table("Classes learned from the labels", columns, rows)], text)


def _pictures(session: Session, learned: Learned, folder: Path) -> list[Section]:
    rows_shown = session.shown
    if not isinstance(rows_shown, ShownPictures):
        return [] if rows_shown.features is None else [_words(rows_shown.features, learned)]
    figures = FigureWriter(folder)
    least = learned.order(None, "uncertain")[:_DOUBTFUL].tolist()
    most = [row for k in range(len(learned.names)) for row in learned.typical(k)[:_OF_EACH].tolist()]
    shown: list[Shown] = []
    for title, rows_of in (("Typical of each class", most[:120]), ("Least certain", least)):
        titles = [learned.names[learned.best[row]] for row in rows_of]
        values, shape = rows_shown.printed(rows_of)
        figure = plot_rows(values, shape=shape, n_columns=12, titles=titles)
        shown.append(figures.bitmap(Picture(title, figure, title, title, wide=True)))
    if rows_shown.draws_fields:
        model = learned.named_model()
        assert model is not None
        alt = "Learned fields, each with the column of its classes beside it"
        shown.append(figures.bitmap(Picture("fields", plot_fields(model, shape=shape), alt, alt, wide=True)))
    return [Section("Pictures", [Gallery("", shown, "Below each example: its class.")])]


def _words(features: Features, learned: Learned) -> Section:
    rows = []
    for k, name in enumerate(learned.names):
        own = np.flatnonzero(learned.field_class == k)
        own = own[np.argsort(-learned.layer.mass[own], kind="stable")[:200]]
        words = features.words(learned.layer.mass[own] @ learned.layer.fields(own), 20) if own.size else []
        rows.append([name, ", ".join(words)])
    return Section("Words", [Table("What sets the classes apart", ["class", "words"], rows, words=True)])


def _steps(history: list[dict[str, object]]) -> Section:
    last = list({one["labels"]: one for one in history}.values())  # undone and relabeled: the newest counts
    rows = [
        [str(one["labels"]), _percent(one["decided"]), _percent(one["error_estimate"])]
        for one in last[:: max(1, len(last) // 20)]
    ]
    return Section("Progress", [Table("Labels", ["labels", "decided", "expected error"], rows)])


def _percent(value: object) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, float) else ""
