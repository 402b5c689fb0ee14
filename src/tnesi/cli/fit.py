"""``tnesi fit``: learn a classifier (or, without labels, a mixture) and keep it in a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

import typer

from tnesi.cli.console import (
    Json,
    LabelColumn,
    Labels,
    Output,
    Quiet,
    Seed,
    Threads,
    report_errors,
    file_size,
    percent,
    announce_interrupt,
)
from tnesi.cli.encoding import (
    Embed,
    EncoderName,
    Strict,
    choose_encoder,
    encode_data,
    exit_if_skipped,
    fit_and_encode,
    report_skipped,
)
from tnesi.cli.options import (
    AnyData,
    DaskCluster,
    Fields,
    Mixtures,
    PerClass,
    RowSum,
    Truncation,
    Unlabeled,
    check_output,
    drawn_labels,
    read_fields,
    read_row_sum,
    read_truncation,
    warn_about_scales,
)
from tnesi.system.progress import Progress, iteration_of, tell_parts

if TYPE_CHECKING:
    from tnesi.data import Data
    from tnesi.encoders.choice import Encoder
    from tnesi.encoders.image_files import Problem
    from tnesi.estimators.poisson_mixture import PoissonMixture
    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.execution.settings import Listener, Local

Model = Union["SimpletronClassifier", "PoissonMixture"]


@report_errors
def fit(
    data: AnyData,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the model (.tnesi).")],
    labels: Labels = None,
    label_column: LabelColumn = None,
    unlabeled: Unlabeled = "-1",
    labels_per_class: PerClass = None,
    seed: Seed = 0,
    test: Annotated[str | None, typer.Option(metavar="DATA", help="Labeled data to measure the error on.")] = None,
    encoder: EncoderName = "auto",
    embed: Embed = None,
    strict: Strict = False,
    fields: Fields = "auto",
    mixtures: Mixtures = 1,
    truncation: Truncation = "15",
    row_sum: RowSum = "auto",
    prior_strength: Annotated[
        float, typer.Option(help="How strongly fields are pulled toward the mean of the data; 0: as published.")
    ] = 1.0,
    labeling: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="How unlabeled rows get classes. clusters: find clusters, then name them. spreading: spread the "
            "labels to similar rows. self-labeling: as in the paper. supervised: learn from labeled rows only. "
            "auto: what suits the data.",
        ),
    ] = "auto",
    unknown_classes: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of classes without any label; their rows are found, too.")
    ] = 0,
    threshold: Annotated[
        float | None,
        typer.Option(help="For self-labeling: minimum margin for a row to be self-labeled; 0.6 by default."),
    ] = None,
    max_iter: Annotated[int, typer.Option(min=1, help="Maximum number of iterations.")] = 100,
    threads: Threads = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Save the state there after each iteration, for --resume."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the state in the --checkpoint folder.")
    ] = False,
    dask: DaskCluster = None,
    training_state: Annotated[
        bool, typer.Option(help="Keep what is needed to learn other labels of the same rows.")
    ] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn a classifier from DATA and write it to a model file.

    Labels come with the data (a column, the folders' names, a file beside it) or from --labels; rows without one are
    unlabeled. With no labels at all the fields are learned, without classes.

    Ctrl-C ends learning early and keeps what was learned.

    [bold]Examples[/bold]

      tnesi fit mnist --labels-per-class 10 -o mnist.tnesi

      tnesi fit counts.csv --label-column kind -o kinds.tnesi

      tnesi fit photos/ --test more-photos/ -o photos.tnesi

      tnesi fit articles/ -o articles.tnesi
    """
    from tnesi import PoissonMixture, SimpletronClassifier

    out = Output(as_json, quiet)
    began = time.perf_counter()
    check_output(output, data, labels, test)
    with out.progress(f"reading {data}") as progress:
        found, tested = _open(data, labels, label_column, test, progress)
        mixture = PoissonMixture(
            read_fields(fields),
            truncation=read_truncation(truncation),
            row_sum=read_row_sum(row_sum),
            prior_strength=prior_strength,
            max_iter=max_iter,
            execution=_execution(dask, checkpoint, resume, _listener(progress)),
            random_state=seed,
            n_jobs=threads,
        )
        classifier = SimpletronClassifier(
            mixture,
            labeling=_labeling(labeling, threshold),
            n_mixtures=mixtures,
            unknown_classes=unknown_classes,
            unlabeled=None,
            random_state=seed,
        )
        chosen = choose_encoder(encoder, embed, found)
        skipped: list[Problem] = []
        if chosen is not None:
            found, skipped = fit_and_encode(out, chosen, found, progress, strict=strict)
            if tested is not None:
                tested, skipped_tests = encode_data(chosen, tested, progress, strict=strict)
                skipped += skipped_tests
        else:
            warn_about_scales(found)
        y = drawn_labels(found, labels_per_class, seed, unlabeled)
        n_labels = _count(y)  # an error where there should be some
        progress.tell("looking at the data")
        with announce_interrupt(progress):
            model = _learn(classifier, found, y, progress)
    learned = time.perf_counter() - began
    _keep(model, chosen, found, n_labels, output, seed=seed, training=training_state)
    result = _describe(out, model, found, n_labels, unlabeled, learned)
    if tested is not None and y is not None:
        from tnesi.cli.predict import measure

        with out.progress("testing", len(tested.rows)) as progress:
            result["test"] = measure(model, tested, progress).summary()
        out.say(f"Test error {percent(result['test']['error'])} on {result['test']['rows']:,} rows.")
    elif y is not None:
        out.say("There is no test part: give labeled data with --test to measure the error.")
    seconds = time.perf_counter() - began
    out.say(f"Written to {output} ({file_size(output)}), {seconds:.1f} s in all.")
    report_skipped(out, skipped)
    out.finish(model=output, seconds=seconds, skipped=[str(problem) for problem in skipped], **result)
    exit_if_skipped(skipped)


def _open(
    data: str, labels: str | None, label_column: str | None, test: str | None, progress: Progress
) -> tuple[Data, Data | None]:
    from tnesi.data import open_data

    found = open_data(data, labels=labels, label_column=label_column, progress=tell_parts(progress))
    tested = found.test if test is None else open_data(test, label_column=label_column)
    # what is wrong with the test part should be known before learning
    labeled = tested is not None and found.labels is not None and len(tested.y)
    numbers = found.rows.kind == "numbers"
    if tested is not None and labeled and numbers and tested.rows.n_features != found.rows.n_features:
        raise ValueError(
            f"the test part has {tested.rows.n_features} features, the data have {found.rows.n_features}: give test "
            "data of the same kind"
        )
    return found, tested


def _listener(progress: Progress) -> Listener:
    def tell(entry: dict[str, Any]) -> None:
        progress.tell(
            f"{iteration_of(entry)}: free energy {entry['free_energy']:.3f}, "
            f"{100 * entry['changed']:.1f} % of the rows changed"
        )

    return tell


def _execution(dask: str | None, checkpoint: Path | None, resume: bool, callback: Listener) -> Local:
    from tnesi.execution import Dask, Local

    if dask is None:
        return Local(checkpoint=checkpoint, resume=resume, callback=callback)
    scheduler = None if dask == "local" else dask
    return Dask(scheduler, checkpoint=checkpoint, resume=resume, callback=callback)


def _labeling(labeling: str, threshold: float | None) -> Any:
    from tnesi.labeling.second_layer import SelfLabeling

    if threshold is None:
        return labeling
    if labeling != "self-labeling":
        raise ValueError("--threshold is a setting of self-labeling: give --labeling self-labeling, too")
    return SelfLabeling(threshold=threshold)


def _learn(classifier: SimpletronClassifier, found: Data, y: Any, progress: Progress) -> Model:
    if y is not None:
        return classifier.fit(_rows(found, progress), y)
    for option, given, usual in (
        ("--mixtures", classifier.n_mixtures, 1),
        ("--unknown-classes", classifier.unknown_classes, 0),
    ):
        if given > usual:
            raise ValueError(f"{option} needs labels, and there are none: give --labels")
    assert classifier.mixture is not None
    return classifier.mixture.fit(_rows(found, progress))


def _rows(found: Data, progress: Progress) -> Any:
    """Return the rows as they are learned from: in memory, or block by block where there are many."""
    from tnesi.data.block_source import ProgressSource
    from tnesi.data.readers.sparse import CsrSource
    from tnesi.data.source import ArraySource
    from tnesi.execution.spool import IN_MEMORY

    rows = found.rows
    if isinstance(rows, ArraySource | CsrSource) or rows.n_rows * rows.n_features * rows.dtype.itemsize <= IN_MEMORY:
        return found.X
    return ProgressSource(rows, tell_parts(progress))


def _keep(
    model: Model, encoder: Encoder | None, found: Data, n_labels: int, output: Path, *, seed: int, training: bool
) -> None:
    from sklearn.pipeline import Pipeline

    from tnesi.model_file import save

    provenance = {
        "data": found.name,
        "fingerprint": found.fingerprint,
        "rows": len(found.rows),
        "labels": n_labels,
        "seed": seed,
        "note": found.note,
        "columns": None if encoder else found.rows.feature_names,
    }
    stored: Any = model
    if encoder is not None:
        name = "mixture" if type(model).__name__ == "PoissonMixture" else "classifier"
        stored = Pipeline([("encoder", encoder), (name, model)])
    save(stored, output, provenance=provenance, image_shape=found.rows.image_shape, training=training)


def _count(y: Any) -> int:
    """Count the labels that are there."""
    if y is None:
        return 0
    from tnesi.labeling.labels import encode_labels

    return int((encode_labels(y, None)[0] >= 0).sum())


def _describe(out: Output, model: Model, found: Data, n_labels: int, unlabeled: str, seconds: float) -> dict[str, Any]:
    """Say what was learned."""
    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.training.committee import mean_lower_bound

    mixtures = model.mixtures_ if isinstance(model, SimpletronClassifier) else [model]
    mixture, lower_bound = mixtures[0], mean_lower_bound([mixture.learned_ for mixture in mixtures])
    what, took = f"{mixture.n_components_:,} fields in {model.n_iter_} iterations", f"{seconds:.1f} s"
    seconds_mixtures = sum(each.history_[-1]["seconds"] for each in mixtures if each.history_)
    if len(mixtures) > 1:
        what, took = f"{len(mixtures)} mixtures of {what} or fewer", f"{took}, the mixtures {seconds_mixtures:.1f} s"
    if found.note:
        out.say(f"{found.note}.")
    out.say(f"{found.name}: {len(found.rows):,} rows of {found.rows.n_features} features.")
    out.say(
        f"Learned {what}, {took} (row sum {mixture.row_sum_:.4g}, truncation {mixture.truncation_}, "
        f"free energy {lower_bound:.3f} nats per row)."
    )
    if found.labels is not None and (marked := sum(str(label) == unlabeled for label in found.labels.tolist())):
        out.say(f"{marked:,} rows are marked {unlabeled} and count as unlabeled.")
    if isinstance(model, SimpletronClassifier):
        of_classes = _describe_classes(out, model, n_labels)
    else:
        of_classes = {"classes": []}
        out.say("No labels: the fields have no classes.")
    return {
        "data": found.name, "rows": len(found.rows), "features": found.rows.n_features, "note": found.note,
        "mixtures": len(mixtures), "fields": sum(each.n_components_ for each in mixtures), "row_sum": mixture.row_sum_,
        "truncation": mixture.truncation_, "iterations": model.n_iter_, "free_energy": lower_bound,
        "converged": all(each.converged_ for each in mixtures), "labels": n_labels, **of_classes,
        "seconds_learning": seconds, "seconds_mixtures": seconds_mixtures,
    }  # fmt: skip


def _describe_classes(out: Output, model: SimpletronClassifier, n_labels: int) -> dict[str, Any]:
    """Say what the second layer has learned."""
    from tnesi.report.labels import class_shares, doubts, second_layer_lines

    classes = model.classes_.tolist()[: len(model.label_confidence_)]
    names = ", ".join(map(str, classes[:12])) + (", ..." if len(classes) > 12 else "")
    out.say(f"{len(classes)} classes ({names}) from {n_labels:,} labels.")
    for line in second_layer_lines(model):
        out.say(line)
    return {
        "classes": classes, "labeling": model.labeling_, "class_shares": class_shares(model),
        "label_confidence": model.label_confidence_, "doubtful": [doubt._asdict() for doubt in doubts(model)],
        "unknown_share": model.unknown_share_,
    }  # fmt: skip
