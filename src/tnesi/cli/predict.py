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
    Json,
    LabelColumn,
    Labels,
    Output,
    Quiet,
    Threads,
    report_errors,
    percent,
    printable,
)
from tnesi.cli.encoding import Strict, encode_data, exit_if_skipped, report_skipped
from tnesi.cli.options import AnyData, check_output
from tnesi.system.progress import Progress, tell_parts

if TYPE_CHECKING:
    from tnesi.data import Data, Source
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.image_files import Problem
    from tnesi.estimators.fitted_classifier import FittedClassifier
    from tnesi.prediction import Evaluation

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file (.tnesi).")]
_UNKNOWN = "unknown"
"""What the class of the unknown is called in tables where its rows have an empty label."""
Part = Annotated[str | None, typer.Option(help="Of a data set with two parts: train or test (the default).")]


@report_errors
def predict(
    model: Model,
    data: AnyData,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A CSV file; - is standard output.")],
    part: Part = None,
    label_column: LabelColumn = None,
    strict: Strict = False,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="Put an apostrophe before names that a spreadsheet would run as formulas (=, +, -, @). "
            "--labels restores such names.",
        ),
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict the class of each row of DATA: row, label, probability, margin.

    The margin is the lead of the most probable class over the second; of a folder of images the files are named
    too. Data are read and predicted a block at a time, so
    they may be larger than memory. Names are written as they are, except to a terminal: there, control characters
    are replaced.

    [bold]Example[/bold]

      tnesi predict photos.tnesi new-photos/ -o predictions.csv
    """
    if as_json and str(output) == "-":
        raise ValueError("--json and -o - both go to standard output: write the predictions to a file")
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
            counts = _write(file, classifier, rows, progress, escape_formulas=escape_formulas)
    seconds, streaming = time.perf_counter() - began, time.perf_counter() - opened
    if str(output) != "-":
        total = max(sum(counts.values()), 1)
        out.say(
            f"{total:,} rows predicted at {total / streaming:,.0f} a second, {seconds:.1f} s in all; written to "
            f"{output}."
        )
        shares = [[name or _UNKNOWN, f"{n:,}", percent(100 * n / total)] for name, n in counts.items()]
        out.table("", ["class", "rows", "share"], shares)
    report_skipped(out, skipped)
    out.finish(
        output=output, rows=sum(counts.values()), counts=counts, seconds=seconds, seconds_predicting=streaming,
        skipped=[str(problem) for problem in skipped],
    )  # fmt: skip
    exit_if_skipped(skipped)


def _write(
    file: TextIO, classifier: FittedClassifier, rows: Any, progress: Progress, *, escape_formulas: bool
) -> dict[str, int]:
    import numpy as np

    from tnesi.data.formulas import escape_formula
    from tnesi.prediction import csv_head, csv_lines, file_names, predict_blocks, quoted

    terminal = file.isatty()

    def cell(text: str) -> str:
        if escape_formulas:
            text = escape_formula(text)
        return quoted(printable(text) if terminal else text)

    names = [cell(str(k)) for k in classifier.classes_.tolist()]
    counts = np.zeros(len(names), int)
    files = [cell(name) for name in file_names(rows)]
    file.write(csv_head(files))
    with ThreadPoolExecutor(1) as writer:  # lines are made and written while the next block is predicted
        written: Future[Any] | None = None
        for block in predict_blocks(classifier, rows):
            if written:
                written.result()
            written = writer.submit(lambda found: file.write(csv_lines(found, names, files)), block)
            counts += np.bincount(block.code, minlength=len(names))
            progress.advance(len(block.code))
            progress.tell(f"{block.start + len(block.code):,} rows predicted")
        if written:
            written.result()
    return {str(k): int(n) for k, n in zip(classifier.classes_.tolist(), counts, strict=True)}


@contextmanager
def _writing(output: Path) -> Iterator[TextIO]:
    if str(output) == "-":
        if sys.stdout is None:
            raise ValueError("standard output is closed: write the predictions to a file")
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
    """Measure the error of a model on labeled DATA, by class and with the classes that get mixed up.

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


def measure(model: Any, data: Data, progress: Progress) -> Evaluation:
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
    out.table("", ["class", "rows", "error", "taken for"], rows, text=(0, 3))


def classifier_of(model: Path, threads: int | None) -> tuple[Encoder | None, FittedClassifier]:
    """Load a model that has classes, and its encoder."""
    from tnesi.estimators.fitted_classifier import FittedClassifier
    from tnesi.model_file import load, split_pipeline

    encoder, found = split_pipeline(load(model))
    if not isinstance(found, FittedClassifier) or not found.classes_.size:
        raise ValueError(f"{model} was learned without labels and has no classes: fit it with labels to predict")
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
    """Open and encode data for a model: the test part where there are two. Return also the files left out."""
    from dataclasses import replace

    from tnesi.data import open_data
    from tnesi.model_file import read_header

    if part not in (None, "train", "test"):
        raise ValueError(f"--part {part}: give train or test")
    if part is not None and labels is not None:
        raise ValueError("--labels are those of all rows of DATA: leave out --part")
    header = read_header(model)
    found = open_data(
        data,
        labels=labels,
        label_column=label_column,
        image_shape=header.image_shape,
        progress=tell_parts(progress),
    )
    if part == "test" and found.test is None:
        raise ValueError(f"{data} has no test part: leave out --part")
    if found.test is not None and part != "train" and labels is None:
        found = found.test
    if encoder is not None:
        return encode_data(encoder, found, progress, strict=strict)
    return replace(found, rows=_in_order(found.rows, header.provenance.get("columns"))), []


def _in_order(rows: Source, learned: Any) -> Source:
    """Return the columns that the model was learned from, by their names, where both have names."""
    from tnesi.data.source import ColumnsSource

    names = rows.feature_names
    if not isinstance(learned, list) or names is None or learned == names:
        return rows
    if missing := [name for name in learned if name not in names]:
        raise ValueError(f"there is no column {missing[0]!r}, which the model was learned from: give the same columns")
    return ColumnsSource(rows, [names.index(name) for name in learned])
