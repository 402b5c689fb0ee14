"""Prediction and evaluation block by block, in constant memory."""

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
        Number of the first row, unless `row` is given.
    code : (n,) array
        Indices of the most probable classes in `classes_`.
    probability, margin : (n,) arrays
        Probability of the most probable class, and its lead over the second.
    row : (n,) array or None
        Row numbers, if they are not consecutive.
    """

    start: int
    code: Array
    probability: Array
    margin: Array
    row: Array | None = None

    @property
    def rows(self) -> Array:
        """Row numbers."""
        return np.arange(self.start, self.start + len(self.code)) if self.row is None else self.row

    def take(self, index: Array) -> Predicted:
        """Return some of the predictions, in the order of `index`."""
        return Predicted(0, self.code[index], self.probability[index], self.margin[index], self.rows[index])

    @classmethod
    def join(cls, blocks: Sequence[Predicted]) -> Predicted:
        """Concatenate predictions."""
        columns = zip(*((block.code, block.probability, block.margin, block.rows) for block in blocks), strict=True)
        code, probability, margin, rows = (np.concatenate(column) for column in columns)
        return cls(0, code, probability, margin, rows)


def predict_blocks(model: FittedClassifier, rows: Source, size: int | None = None) -> Iterator[Predicted]:
    """Predict all rows of a source in order, reading the next block during prediction.

    Blocks have `size` rows, by default 100,000 (or 128 MB). The result does not depend on it.
    """
    if size is None:
        size = max(1, min(_ROWS, _BYTES // rows.row_bytes))
    if rows.n_features != model.n_features_in_:
        raise DataError(
            f"the data has {rows.n_features} features, but the model was learned from {model.n_features_in_}",
            advice="use the same features",
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
                    f"rows {start} to {start + block.shape[0] - 1} (row 0 is row {start}): {error}"
                ) from error
            yield Predicted(start, t.argmax(axis=1), t.max(axis=1), margins(t))
            start += block.shape[0]


def csv_head(files: Sequence[str]) -> str:
    """Return the header of a table of predictions, which has a column for `files` if there are any."""
    return "row,label,probability,margin" + (",file\n" if files else "\n")


def csv_lines(block: Predicted, names: Sequence[str], files: Sequence[str]) -> str:
    """Return the lines of a block with a single formatting operation, for speed.

    `names` are the :func:`quoted` names of the classes, `files` those of the files of all rows, if any.
    """
    n, rows = len(block.code), block.rows.tolist()
    columns: list[Any] = [
        rows,
        [names[k] for k in block.code.tolist()],
        block.probability.tolist(),
        block.margin.tolist(),
    ]
    line = "%d,%s,%.6f,%.6f\n"
    if files:
        columns.append([files[row] for row in rows])
        line = "%d,%s,%.6f,%.6f,%s\n"
    cells: list[Any] = [None] * (len(columns) * n)
    for i, column in enumerate(columns):
        cells[i :: len(columns)] = column
    return line * n % tuple(cells)


def quoted(name: str) -> str:
    """Quote text for CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([name])  # quotes text that contains a part of the terminator
    return text.getvalue().removesuffix("\r\n")


def file_names(rows: object) -> list[str]:
    """Return the names of the files of the rows, if any."""
    return [as_text(path) for path in getattr(rows, "paths", ())]


@dataclass(frozen=True)
class Evaluation:
    """Comparison of predictions with true labels.

    Attributes
    ----------
    classes : list
        Classes of the model, then other true classes, which belong to the unknown class if the model has one.
    confusion : (K', K) array
        Number of rows by true and predicted class.
    """

    classes: list[Any]
    confusion: Array
    mean_probability: float

    @property
    def n_rows(self) -> int:
        return int(self.confusion.sum())

    @property
    def error(self) -> float:
        """Error in percent."""
        return 100 * (1 - float(np.trace(self.confusion)) / self.n_rows)

    @property
    def errors_by_class(self) -> Array:
        """Error of each class in percent; NaN for classes without rows."""
        n = self.confusion.sum(axis=1)
        right = np.pad(np.diag(self.confusion), (0, len(n) - len(np.diag(self.confusion))))
        with np.errstate(invalid="ignore"):
            return np.asarray(100 * (1 - right / n))

    def summary(self) -> dict[str, Any]:
        return {"rows": self.n_rows, "error": self.error, "mean_probability": self.mean_probability}


def evaluate(model: FittedClassifier, data: Data, size: int | None = None) -> Iterator[Evaluation]:
    """Compare predictions with labels, yielding the evaluation of all rows so far after each block.

    Unlabeled rows are ignored.
    """
    y = np.asarray(data.y, dtype=object)
    known = model.settle().classes_.tolist()
    named = known[:-1] if model.has_unknown_class_ else known
    code_of = {_key(k): i for i, k in enumerate(named)}
    given = [v for v in y.tolist() if not (v is None or v != v or (v == -1 and -1 not in named))]
    if not given:
        raise DataError(f"{data.name} has no labels to compare with")
    if not any(_key(v) in code_of for v in given):
        raise DataError(
            f"none of the labels of {data.name} ({given[0]}, ...) is a class of the model ({named[0]}, ...)",
            advice="use the same classes",
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


def _key(label: object) -> str:
    """Return the text of a label; 3.0 becomes "3", as in a CSV file."""
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)
