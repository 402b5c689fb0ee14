"""``tnesi tune``: choose truncation, row sum and threshold from the labels, as in the paper."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from tnesi.cli.console import (
    Json,
    LabelColumn,
    Labels,
    Output,
    Quiet,
    Seed,
    Threads,
    percent,
    report_errors,
)
from tnesi.cli.options import AnyData, Fields, PerClass, Unlabeled, drawn_labels, read_fields
from tnesi.errors import InvalidParameterError
from tnesi.system.progress import tell_parts


@report_errors
def tune(
    data: AnyData,
    labels: Labels = None,
    label_column: LabelColumn = None,
    unlabeled: Unlabeled = "-1",
    labels_per_class: PerClass = None,
    truncation: Annotated[str, typer.Option(metavar="LIST", help="Truncations to compare.")] = "5,15,50",
    row_sum: Annotated[str, typer.Option(metavar="LIST", help="Row sums to compare; auto: three.")] = "auto",
    threshold: Annotated[str, typer.Option(metavar="LIST", help="Thresholds to compare.")] = "0.4,0.6,0.8",
    splits: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Number of random splits.")] = 10,
    fields: Fields = "auto",
    seed: Seed = 0,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Choose truncation, row sum and threshold by validation on the labels.

    Half of the labels of each class train the classifier, the other half validates it. The mixture is learned once for
    each truncation and row sum. The truncation of highest likelihood, which needs no labels, is shown, too.

    [bold]Example[/bold]

      tnesi tune mnist --labels-per-class 10
    """
    from tnesi.data import open_data
    from tnesi.paper.tuning import tune as tune_parameters

    out = Output(as_json, quiet)
    truncations, thresholds = _list("truncation", truncation, int), _list("threshold", threshold, float)
    row_sums = None if row_sum == "auto" else _list("row_sum", row_sum, float)
    with out.progress(f"reading {data}") as progress:
        found = open_data(data, labels=labels, label_column=label_column, progress=tell_parts(progress))
        y = drawn_labels(found, labels_per_class, seed, unlabeled)
        if y is None:
            y = found.y  # raises an error
        tuned = tune_parameters(
            found.X, y, truncations=truncations, row_sums=row_sums, thresholds=thresholds, n_splits=splits,
            random_state=seed, progress=progress, n_jobs=threads, unlabeled=None, n_components=read_fields(fields),
        )  # fmt: skip
    rows = [
        [str(t.truncation), f"{t.row_sum:.5g}", f"{t.threshold:g}", percent(t.error), f"{t.sem:.2f}",
         f"{tuned.likelihoods[t.row_sum, t.truncation]:.3f}"] for t in tuned.trials
    ]  # fmt: skip
    out.say(
        f"{found.name}: {tuned.n_train} training and {tuned.n_validation} validation labels, {splits} splits, "
        f"{len(tuned.likelihoods)} mixtures."
    )
    out.table("", ["truncation", "row sum", "threshold", "validation error", "std. error", "log-likelihood"], rows)
    best = tuned.best
    by_likelihood = tuned.truncation_by_likelihood()
    out.say(f"Highest likelihood at row sum {best['row_sum']:.5g}: truncation {by_likelihood}.")
    options = {
        "truncation": best["truncation"], "row-sum": f"{best['row_sum']:.5g}", "threshold": f"{best['threshold']:g}",
        "labeling": "self-labeling",
        "labels": labels, "label-column": label_column, "labels-per-class": labels_per_class, "seed": seed,
        "fields": None if fields == "auto" else fields,
        "unlabeled": None if unlabeled == "-1" else unlabeled,
    }  # fmt: skip
    words = [w for name, value in options.items() if value is not None for w in (f"--{name}", str(value))]
    out.say(f"To learn with the best settings: {shlex.join(['tnesi', 'fit', data, *words, '-o', 'MODEL'])}")
    out.finish(
        best=best, truncation_by_likelihood=by_likelihood, trials=[vars(t) for t in tuned.trials],
        likelihoods=[{"row_sum": a, "truncation": c, "log_likelihood": v} for (a, c), v in tuned.likelihoods.items()],
        labels_training=tuned.n_train, labels_validation=tuned.n_validation,
    )  # fmt: skip


def _list(name: str, text: str, kind: type) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InvalidParameterError(
            f"{{{name}}} {{text}} is not a list of numbers such as 5,15,50", parameter=name, text=text
        ) from None
