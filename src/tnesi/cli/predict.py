"""``tnesi predict`` and ``tnesi evaluate``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from tnesi.cli.console import (
    INPUT,
    OUTPUT,
    Json,
    LabelColumn,
    Labels,
    Output,
    Quiet,
    Threads,
    percent,
    printable,
    report_errors,
)
from tnesi.cli.encoding import Strict, encode_data, exit_if_skipped, report_skipped
from tnesi.cli.options import AnyData, check_output
from tnesi.errors import InvalidDataError, InvalidParameterError
from tnesi.system.progress import Progress, tell_parts

if TYPE_CHECKING:
    from tnesi.data import Data, Source
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.image_files import Problem
    from tnesi.estimators.fitted_classifier import FittedClassifier
    from tnesi.prediction import Evaluation

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file (.tnesi).")]
_LINES = 100_000
"""Lines to write at a time."""
_UNKNOWN = "unknown"
"""Name of the unknown class in tables, where its rows have an empty label."""
Part = Annotated[str | None, typer.Option(metavar="PART", rich_help_panel=INPUT, help="train or test; default: test.")]


@report_errors
def predict(
    model: Model,
    data: AnyData,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", rich_help_panel=OUTPUT, help="CSV file; - is standard output."),
    ],
    part: Part = None,
    label_column: LabelColumn = None,
    strict: Strict = False,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            rich_help_panel=OUTPUT,
            help="Protect names that look like formulas with an apostrophe.",
        ),
    ] = False,
    doubtful_below: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="P", rich_help_panel=OUTPUT, help="Margin below which a row is doubtful."),
    ] = 0.5,
    sort: Annotated[
        str, typer.Option(metavar="ORDER", rich_help_panel=OUTPUT, help="row, or doubt: smallest margin first.")
    ] = "row",
    only_doubtful: Annotated[
        bool, typer.Option("--only-doubtful", rich_help_panel=OUTPUT, help="Write doubtful rows only.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict the class of each row of DATA: row, label, probability, margin.

    The margin is the probability of the predicted class minus that of the second. A row is doubtful if its margin is
    below --doubtful-below. For folders, the output names the files. Data is predicted block by block and may exceed
    memory; --sort doubt holds the predictions of all written rows in memory, 32 bytes per row. Output to a terminal
    replaces control characters.

    [bold]Example[/bold]

      tnesi predict photos.tnesi new-photos/ -o predictions.csv
    """
    if as_json and str(output) == "-":
        raise InvalidParameterError(
            "{json} and {output:-} both write to standard output",
            advice="write the predictions to a file",
            parameter="json",
        )
    if sort not in ("row", "doubt"):
        raise InvalidParameterError("{sort} {order} is not row or doubt", parameter="sort", order=sort)
    out = Output(as_json, quiet)
    began = time.perf_counter()
    with out.progress(f"reading {data}") as progress:
        encoder, classifier = classifier_of(model, threads)
        if str(output) != "-" and (output.is_file() or not output.exists()):
            check_output(output, model, data)
        found, skipped = _part(model, encoder, data, part, progress, label_column=label_column, strict=strict)
        rows = found.rows
        progress.begin(len(rows))
        opened = time.perf_counter()
        with _writing(output) as file:
            counts, doubtful = _write(
                file, classifier, rows, progress, escape_formulas=escape_formulas, below=doubtful_below,
                by_doubt=sort == "doubt", only_doubtful=only_doubtful,
            )  # fmt: skip
    seconds, streaming = time.perf_counter() - began, time.perf_counter() - opened
    if str(output) != "-":
        total = max(sum(counts.values()), 1)
        out.say(
            f"{total:,} rows predicted at {total / streaming:,.0f} per second, {seconds:.1f} s in total; "
            f"{doubtful:,} are doubtful (margin below {doubtful_below:g})."
        )
        out.say(f"{'Doubtful rows written' if only_doubtful else 'Written'} to {output}.")
        shares = [[name or _UNKNOWN, f"{n:,}", percent(100 * n / total)] for name, n in counts.items()]
        out.table("", ["class", "rows", "share"], shares)
    report_skipped(out, skipped)
    out.finish(
        output=output, rows=sum(counts.values()), counts=counts, seconds=seconds, seconds_predicting=streaming,
        doubtful=doubtful, doubtful_below=doubtful_below, skipped=[str(problem) for problem in skipped],
    )  # fmt: skip
    exit_if_skipped(skipped)


def _write(
    file: TextIO,
    classifier: FittedClassifier,
    rows: Any,
    progress: Progress,
    *,
    escape_formulas: bool,
    below: float,
    by_doubt: bool,
    only_doubtful: bool,
) -> tuple[dict[str, int], int]:
    """Write predictions; return the number of rows of each class and that of doubtful rows."""
    import numpy as np

    from tnesi.data.formulas import escape_formula
    from tnesi.prediction import Predicted, csv_head, csv_lines, file_names, predict_blocks, quoted

    terminal = file.isatty()

    def cell(text: str) -> str:
        if escape_formulas:
            text = escape_formula(text)
        return quoted(printable(text) if terminal else text)

    names = [cell(str(k)) for k in classifier.classes_.tolist()]
    counts, n_doubtful = np.zeros(len(names), int), 0
    files = [cell(name) for name in file_names(rows)]
    file.write(csv_head(files))
    with ThreadPoolExecutor(1) as writer:  # writes while the next block is predicted
        written: Future[Any] | None = None
        kept: list[Predicted] = []
        for block in predict_blocks(classifier, rows):
            doubtful = np.flatnonzero(block.margin < below)
            n_doubtful += doubtful.size
            found = block.take(doubtful) if only_doubtful else block
            if by_doubt:
                kept.append(found)
            else:
                if written:
                    written.result()
                written = writer.submit(lambda found: file.write(csv_lines(found, names, files)), found)
            counts += np.bincount(block.code, minlength=len(names))
            progress.advance(len(block.code))
            progress.tell(f"{block.start + len(block.code):,} rows predicted")
        if written:
            written.result()
    if by_doubt:
        joined = Predicted.join(kept)
        order = np.argsort(joined.margin, kind="stable")
        for start in range(0, len(order), _LINES):
            file.write(csv_lines(joined.take(order[start : start + _LINES]), names, files))
    return {str(k): int(n) for k, n in zip(classifier.classes_.tolist(), counts, strict=True)}, n_doubtful


@contextmanager
def _writing(output: Path) -> Iterator[TextIO]:
    if str(output) == "-":
        if sys.stdout is None:
            raise InvalidParameterError(
                "standard output is closed", advice="write the predictions to a file", parameter="output"
            )
        yield sys.stdout
        return
    if output.exists() and not output.is_file() and not output.is_dir():  # a pipe or a device
        with output.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    from tnesi.system.files import replacing

    with replacing(output) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        yield file


@report_errors
def evaluate(
    model: Model,
    data: AnyData,
    labels: Labels = None,
    label_column: LabelColumn = None,
    part: Part = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure the error of a model on labeled DATA, in total and by class.

    [bold]Example[/bold]

      tnesi evaluate mnist.tnesi mnist
    """
    out = Output(as_json, quiet)
    with out.progress(f"reading {data}") as progress:
        encoder, classifier = classifier_of(model, threads)
        found, skipped = _part(model, encoder, data, part, progress, labels=labels, label_column=label_column)
        progress.begin(len(found.rows))
        result = measure(classifier, found, progress)
    if found.note:
        out.say(f"{found.note}.")
    out.say(
        f"Error {percent(result.error)} on {result.n_rows:,} rows of {found.name} "
        f"(mean probability of the predicted class {result.mean_probability:.3f})."
    )
    _table(out, result)
    report_skipped(out, skipped)
    out.finish(
        **result.summary(), classes=result.classes, confusion=result.confusion, errors_by_class=result.errors_by_class
    )
    exit_if_skipped(skipped)


def measure(model: FittedClassifier, data: Data, progress: Progress) -> Evaluation:
    """Evaluate with progress."""
    from tnesi.prediction import evaluate as evaluations

    last = None
    seen = 0
    for last in evaluations(model, data):
        progress.advance(last.n_rows - seen)
        seen = last.n_rows
        progress.tell(f"{last.n_rows:,} rows, error {last.error:.2f} %")
    assert last is not None
    return last


def _table(out: Output, result: Evaluation) -> None:
    rows = []
    for k, name in enumerate(result.classes):
        n = int(result.confusion[k].sum())
        wrong = [(int(m), j) for j, m in enumerate(result.confusion[k]) if j != k and m]
        mixed = ", ".join(f"{str(result.classes[j]) or _UNKNOWN} ({m})" for m, j in sorted(wrong, reverse=True)[:3])
        rows.append([str(name) or _UNKNOWN, f"{n:,}", percent(float(result.errors_by_class[k])) if n else "-", mixed])
    out.table("", ["class", "rows", "error", "confused with"], rows, text=(0, 3))


def classifier_of(model: Path, threads: int | None) -> tuple[Encoder | None, FittedClassifier]:
    """Load a model that has classes, and its encoder."""
    from tnesi.estimators.fitted_classifier import FittedClassifier
    from tnesi.model_file import load, split_pipeline

    encoder, found = split_pipeline(load(model))
    if not isinstance(found, FittedClassifier) or not found.classes_.size:
        raise InvalidParameterError(
            "{path} was learned without labels",
            advice="run `tnesi fit` with labels to predict classes",
            parameter="model",
            path=model,
        )
    found.set_params(n_jobs=threads)
    return encoder, found


def _part(
    model: Path,
    encoder: Encoder | None,
    data: str,
    part: str | None,
    progress: Progress,
    *,
    labels: str | None = None,
    label_column: str | None = None,
    strict: bool = False,
) -> tuple[Data, list[Problem]]:
    """Open and encode data for a model, by default its test part, and return it with the skipped files."""
    from dataclasses import replace

    from tnesi.data import open_data
    from tnesi.model_file import read_header

    if part not in (None, "train", "test"):
        raise InvalidParameterError("{part} {text} is not train or test", parameter="part", text=part)
    if part is not None and labels is not None:
        raise InvalidParameterError("{labels} holds labels of all rows", advice="omit {part}", parameter="labels")
    header = read_header(model)
    found = open_data(
        data,
        labels=labels,
        label_column=label_column,
        image_shape=header.image_shape,
        progress=tell_parts(progress),
    )
    if part == "test" and found.test is None:
        raise InvalidParameterError("{data} has no test part", advice="omit {part}", parameter="part", data=data)
    if found.test is not None and part != "train" and labels is None:
        found = found.test
    if encoder is not None:
        return encode_data(encoder, found, progress, strict=strict)
    return replace(found, rows=_in_order(found.rows, header.provenance.get("columns"))), []


def _in_order(rows: Source, learned: object) -> Source:
    """Return the columns that the model was learned from, if both have column names."""
    from tnesi.data.source import ColumnsSource

    names = rows.feature_names
    if not isinstance(learned, list) or names is None or learned == names:
        return rows
    if missing := [name for name in learned if name not in names]:
        raise InvalidDataError(f"column {missing[0]!r}, used by the model, is missing", advice="use the same columns")
    return ColumnsSource(rows, [names.index(name) for name in learned])
