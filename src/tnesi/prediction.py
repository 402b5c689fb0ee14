"""Prediction of rows wherever they are, a block at a time: memory does not grow with their number."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tnesi.data.source import Data, DataError, Source, as_text
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.model.classes import margins
from tnesi.types import Array

_ROWS, _BYTES = 100_000, 2**27


class Predicted(NamedTuple):
    """Predictions of a block of rows.

    Attributes
    ----------
    start : int
        Number of the first row.
    code : (n,) array
        Places of the most probable classes in `classes_`.
    probability, margin : (n,) arrays
        Of the most probable class, and its lead over the second.
    """

    start: int
    code: Array
    probability: Array
    margin: Array


def predict_blocks(model: FittedClassifier, rows: Source, size: int | None = None) -> Iterator[Predicted]:
    """Predict all rows of a source, in order; the next block is read while one is predicted.

    A block has `size` rows, by default 100,000 (or 128 MB): in larger ones more rows share a field, and its weights.
    The result does not depend on it.
    """
    if size is None:
        size = max(1, min(_ROWS, _BYTES // rows.row_bytes))
    if rows.n_features != model.n_features_in_:
        raise DataError(
            "the data have {n_features} features, the model was learned from {n_features_in_}",
            advice="give data of the same kind",
            n_features=rows.n_features,
            n_features_in_=model.n_features_in_,
        )
    blocks = iter(rows.parts(size))
    start = 0
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            try:
                t = model.predict_proba(block)
            except ValueError as error:
                raise DataError(
                    "in rows {start} to {start2}, counted from {start}",
                    advice="{error}",
                    start=start,
                    start2=start + block.shape[0] - 1,
                    error=error,
                ) from error
            yield Predicted(start, t.argmax(axis=1), t.max(axis=1), margins(t))
            start += block.shape[0]


def csv_head(files: Sequence[str]) -> str:
    """Return the first line of a table of predictions; with `files` it names these too."""
    return "row,label,probability,margin" + (",file\n" if files else "\n")


def csv_lines(block: Predicted, names: Sequence[str], files: Sequence[str]) -> str:
    """Return the lines of a block, by one call of the formatter: it takes as long as all else but prediction.

    `names` are those of the classes, `files` those of all rows, if they are images; both are :func:`quoted`.
    """
    n = len(block.code)
    columns: list[Any] = [
        range(block.start, block.start + n),
        [names[k] for k in block.code.tolist()],
        block.probability.tolist(),
        block.margin.tolist(),
    ]
    line = "%d,%s,%.6f,%.6f\n"
    if files:
        columns.append(files[block.start : block.start + n])
        line = "%d,%s,%.6f,%.6f,%s\n"
    cells: list[Any] = [None] * (len(columns) * n)
    for i, column in enumerate(columns):
        cells[i :: len(columns)] = column
    return line * n % tuple(cells)


def quoted(name: str) -> str:
    """Return a text as a CSV file has it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([name])  # quotes what has a part of that
    return text.getvalue().removesuffix("\r\n")


def file_names(rows: Any) -> list[str]:
    """Return the rows' files, where each has one; what is no text in their names is written in hexadecimal."""
    return [as_text(path) for path in getattr(rows, "paths", ())]


@dataclass(frozen=True)
class Evaluation:
    """Predictions against the truth.

    Attributes
    ----------
    classes : list
        All classes, those that the model does not know last. If it has a class of the unknown, they are all in that.
    confusion : (K', K) array
        Rows by true class (columns by predicted one).
    """

    classes: list[Any]
    confusion: Array
    mean_probability: float

    @property
    def n_rows(self) -> int:
        return int(self.confusion.sum())

    @property
    def error(self) -> float:
        """Wrong rows in percent."""
        return 100 * (1 - float(np.trace(self.confusion)) / self.n_rows)

    @property
    def errors_by_class(self) -> Array:
        """Wrong rows of each class in percent; NaN for classes without rows."""
        n = self.confusion.sum(axis=1)
        right = np.pad(np.diag(self.confusion), (0, len(n) - len(np.diag(self.confusion))))
        with np.errstate(invalid="ignore"):
            return np.asarray(100 * (1 - right / n))

    def summary(self) -> dict[str, Any]:
        return {"rows": self.n_rows, "error": self.error, "mean_probability": self.mean_probability}


def evaluate(model: FittedClassifier, data: Data, size: int | None = None) -> Iterator[Evaluation]:
    """Compare predictions with labels, block by block; each evaluation is of all rows so far, the last of all.

    Rows without a label are left out.
    """
    y = np.asarray(data.y, dtype=object)
    known = model.settle().classes_.tolist()
    named = known[:-1] if model.has_unknown_class_ else known
    code_of = {_key(k): i for i, k in enumerate(named)}
    given = [v for v in y.tolist() if not (v is None or v != v or (v == -1 and -1 not in named))]
    if not given:
        raise DataError("{name} has no labels to compare with", name=data.name)
    if not any(_key(v) in code_of for v in given):
        raise DataError(
            "none of the labels of {name} ({given}, ...) is a class of the model ({named}, ...)",
            advice="give labels of the same kind",
            name=data.name,
            given=given[0],
            named=named[0],
        )
    strangers = sorted({_key(v) for v in given if _key(v) not in code_of})
    code_of |= {name: len(named) if model.has_unknown_class_ else len(named) + i for i, name in enumerate(strangers)}
    classes = known if model.has_unknown_class_ else [*known, *strangers]
    missing = len(classes)
    truth = np.array([code_of.get(_key(v), missing) for v in y.tolist()])
    confusion, sure, n = np.zeros((missing + 1, len(known)), int), 0.0, 0
    for block in predict_blocks(model, data.rows, size):
        actual = truth[block.start : block.start + len(block.code)]
        np.add.at(confusion, (actual, block.code), 1)
        sure += float(block.probability[actual < missing].sum())
        n += int((actual < missing).sum())
        if n:
            yield Evaluation(classes, confusion[:missing], sure / n)


def _key(label: Any) -> str:
    """Labels agree if they read the same: a CSV file has 3 where an array has 3.0."""
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)
