"""Downloads: labels, predictions, the model, the report."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from tnesi.data.formulas import escape_formula
from tnesi.data.optional import needed
from tnesi.encoders.choice import with_encoder
from tnesi.model_file import save
from tnesi.prediction import Predicted, csv_head, csv_lines, quoted
from tnesi.studio.answers import View
from tnesi.studio.learned import Learned
from tnesi.studio.requests import RequestError
from tnesi.studio.session import Session
from tnesi.studio.store import DiskError
from tnesi.studio.summary import write_summary

FILES = {
    "labels.csv": "text/csv",
    "predictions.csv": "text/csv",
    "predictions.parquet": "application/vnd.apache.parquet",
    "model.tnesi": "application/octet-stream",
    "report.html": "text/html",
}
_PATIENCE = 20.0
"""Seconds to wait until the newest answers are learned."""
_BLOCK = 100_000


async def download(session: Session, name: str, content: str, *, exact: bool = False) -> Response:
    """Return one of `FILES`, made from the newest answers.

    In CSV files, names that a spreadsheet would run as formulas are escaped unless they have to be exact.
    """
    if name == "labels.csv":
        return await _file(
            session, name, content, lambda path: write_labels(session, session.store.view, path, exact=exact)
        )
    learned = await _newest(session)
    writers: dict[str, Callable[[Path], None]] = {
        "predictions.csv": lambda path: write_csv(session, learned, path, exact=exact),
        "predictions.parquet": lambda path: write_parquet(session, learned, path),
        "model.tnesi": lambda path: write_model(session, learned, path),
        "report.html": lambda path: write_summary(session, learned, path),
    }
    return await _file(session, name, content, writers[name])


async def _newest(session: Session) -> Learned:
    wanted, until = session.store.view.last, time.monotonic() + _PATIENCE
    if len(session.store.view.classes) < 2:
        raise RequestError(409, "Label examples of at least two classes first")
    while (learned := session.learned) is None or learned.answer < wanted:
        if session.ending:
            raise RequestError(503, "The studio is shutting down")
        if session.failed:
            raise RequestError(409, "Learning has failed; the page shows the reason")
        if time.monotonic() > until:
            raise RequestError(409, "The newest answers are still being learned: try again in a moment")
        await asyncio.sleep(0.05)
    if learned.model is None:
        raise RequestError(409, "Label examples of at least two classes first")
    return learned


async def _file(session: Session, name: str, content: str, write: Callable[[Path], None]) -> Response:
    try:
        folder = session.scratch()
    except OSError as error:
        raise DiskError(f"No folder to write {name} to: {error}") from error
    try:
        await asyncio.to_thread(write, folder / name)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise DiskError(f"{name} could not be written to {folder.parent} ({error}): is the disk full?") from error
        raise
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in Path(session.data.name).stem)
    return _FileOnce(folder / name, media_type=content, filename=f"{stem[:60] or 'data'}-{name}")


class _FileOnce(FileResponse):
    """A file in its own folder, which is removed after sending."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)


def write_labels(session: Session, view: View, path: Path, *, exact: bool = False) -> None:
    """Write the labels given by people: row, label and, if rows are files, the file."""
    files = session.files
    cell = quoted if exact else _escaped
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("row,label,file\n" if files else "row,label\n")
        for row, label in sorted(view.labels.items()):
            file.write(f"{row},{cell(label)}" + (f",{cell(files[row])}\n" if files else "\n"))


def write_csv(session: Session, learned: Learned, path: Path, *, exact: bool = False) -> None:
    """Write the classes of all rows, as ``tnesi predict`` does."""
    cell = quoted if exact else _escaped
    files, names = [cell(name) for name in session.files], [cell(name) for name in learned.names]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_head(files))
        for start in range(0, learned.best.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            block = Predicted(start, learned.best[part], learned.probability[part], learned.margin[part])
            file.write(csv_lines(block, names, files))


def _escaped(text: str) -> str:
    return quoted(escape_formula(text))


def write_parquet(session: Session, learned: Learned, path: Path) -> None:
    """Write the same as a Parquet file; the column `given` has the labels given by people."""
    pa, pq = needed("pyarrow", "writing Parquet"), needed("pyarrow.parquet", "writing Parquet")
    n = learned.best.size
    given = [learned.names[k] if k >= 0 else None for k in learned.label.tolist()]
    columns = {
        "row": pa.array(range(n), pa.int64()),
        "label": pa.DictionaryArray.from_arrays(pa.array(learned.best, pa.int32()), learned.names).cast(pa.string()),
        "probability": pa.array(learned.probability, pa.float64()),
        "margin": pa.array(learned.margin, pa.float64()),
        "given": pa.array(given, pa.string()),
    }
    if session.files:
        columns["file"] = pa.array(session.files, pa.string())
    pq.write_table(pa.table(columns), path)


def write_model(session: Session, learned: Learned, path: Path) -> None:
    """Write the classifier with its encoder, to predict new rows."""
    model = learned.named_model()
    assert model is not None
    rows = session.data.rows
    provenance = {
        "data": session.data.name,
        "fingerprint": session.data.fingerprint,
        "rows": rows.n_rows,
        "labels": int((learned.label >= 0).sum()),
        "note": "labeled in the studio",
        "columns": None if learned.layer.encoder else rows.feature_names,
    }
    save(with_encoder(learned.layer.encoder, model), path, provenance=provenance, image_shape=rows.image_shape)
