"""``tnesi fit``: learn a classifier (or, without labels, a mixture) and save it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

import typer

from tnesi.cli.console import (
    INPUT,
    LABELS,
    MODEL,
    OUTPUT,
    RESOURCES,
    Json,
    LabelColumn,
    Labels,
    Output,
    Quiet,
    Seed,
    Threads,
    announce_interrupt,
    file_size,
    percent,
    report_errors,
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
from tnesi.errors import InvalidParameterError
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
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", rich_help_panel=OUTPUT, help="Model file to write (.tnesi)."),
    ],
    labels: Labels = None,
    label_column: LabelColumn = None,
    unlabeled: Unlabeled = "-1",
    labels_per_class: PerClass = None,
    test: Annotated[
        str | None, typer.Option(metavar="DATA", rich_help_panel=INPUT, help="Labeled data to measure the error on.")
    ] = None,
    encoder: EncoderName = "auto",
    embed: Embed = None,
    strict: Strict = False,
    fields: Fields = "auto",
    mixtures: Mixtures = 1,
    truncation: Truncation = "15",
    row_sum: RowSum = "auto",
    prior_strength: Annotated[
        float,
        typer.Option(metavar="S", rich_help_panel=MODEL, help="How strongly fields are pulled toward the mean."),
    ] = 1.0,
    labeling: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            rich_help_panel=LABELS,
            help="auto, clusters, spreading, leading, logistic, self-labeling or supervised.",
        ),
    ] = "auto",
    unknown_classes: Annotated[
        int,
        typer.Option(min=0, metavar="N", rich_help_panel=LABELS, help="Number of classes without any label."),
    ] = 0,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="M", rich_help_panel=LABELS, help="Minimum margin for self-labeling; default: 0.6."),
    ] = None,
    max_iter: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=MODEL, help="Maximum number of iterations.")
    ] = 100,
    seed: Seed = 0,
    threads: Threads = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", rich_help_panel=RESOURCES, help="Save the state after each iteration, and encoded rows."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", rich_help_panel=RESOURCES, help="Continue from --checkpoint.")
    ] = False,
    dask: DaskCluster = None,
    training_state: Annotated[
        bool,
        typer.Option(
            "--training-state/--no-training-state",
            rich_help_panel=OUTPUT,
            help="Save data to learn other labels later.",
        ),
    ] = True,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", rich_help_panel=OUTPUT, help="Show details of the model.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn a classifier from DATA and write it to a model file.

    Labels come from a column, folder names or --labels. All other rows are unlabeled. Without any labels, the model is
    a mixture without classes. Ctrl-C stops early and keeps the model.

    --encoder: auto chooses by the type of data; none uses the numbers as they are.

    --labeling: clusters finds clusters and names them, spreading spreads labels to similar rows, leading starts one
    cluster per class at its labels, logistic is logistic regression, self-labeling is the method of the paper,
    supervised uses labeled rows only. auto lets the first four vote.

    [bold]Examples[/bold]

      tnesi fit mnist --labels-per-class 10 -o mnist.tnesi

      tnesi fit counts.csv --label-column kind -o kinds.tnesi

      tnesi fit photos/ --test more-photos/ -o photos.tnesi

      tnesi fit articles/ -o articles.tnesi
    """
    from tnesi import PoissonMixture, SimpletronClassifier
    from tnesi.execution import Dask
    from tnesi.execution.dask.cluster import cluster_for
    from tnesi.system.threads import resolve_threads

    out = Output(as_json, quiet)
    began = time.perf_counter()
    check_output(output, data, labels, test)
    with out.progress(f"reading {data}") as progress, ExitStack() as stack:
        found, tested = _open(data, labels, label_column, test, progress)
        execution = _execution(dask, checkpoint, resume, _listener(progress))
        cluster = stack.enter_context(cluster_for(execution, resolve_threads(threads)))
        if cluster is not None:
            execution = Dask(cluster.client, checkpoint=checkpoint, resume=resume, callback=execution.callback)
        mixture = PoissonMixture(
            read_fields(fields),
            truncation=read_truncation(truncation),
            row_sum=read_row_sum(row_sum),
            prior_strength=prior_strength,
            max_iter=max_iter,
            execution=execution,
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
            chosen, found, skipped = fit_and_encode(
                out, chosen, found, progress, strict=strict, run=execution, cluster=cluster
            )
            if tested is not None:
                tested, skipped_tests = encode_data(chosen, tested, progress, strict=strict, cluster=cluster)
                skipped += skipped_tests
        else:
            warn_about_scales(found)
        if tested is not None and tested.rows.n_features != found.rows.n_features:
            raise InvalidParameterError(
                "the test data has {n_test} features, but the training data has {n}",
                advice="use the same features in both",
                parameter="test",
                n_test=tested.rows.n_features,
                n=found.rows.n_features,
            )
        y = drawn_labels(found, labels_per_class, seed, unlabeled)
        n_labels = _count(y)  # raises an error if there should be some
        progress.tell("looking at the data")
        with announce_interrupt(progress):
            model = _learn(classifier, found, y, progress)
    learned = time.perf_counter() - began
    _keep(model, chosen, found, n_labels, output, seed=seed, training=training_state)
    result = _describe(out, model, found, n_labels, unlabeled, learned, verbose=verbose)
    if tested is not None and y is not None:
        from tnesi.cli.predict import measure

        with out.progress("testing", len(tested.rows)) as progress:
            result["test"] = measure(model, tested, progress).summary()
        out.say(f"Test error {percent(result['test']['error'])} on {result['test']['rows']:,} rows.")
    elif y is not None:
        out.say("Accuracy unknown: pass labeled data with --test to measure it.")
    seconds = time.perf_counter() - began
    out.say(f"Written to {output} ({file_size(output)}), {seconds:.1f} s in total.")
    report_skipped(out, skipped)
    out.finish(model=output, seconds=seconds, skipped=[str(problem) for problem in skipped], **result)
    exit_if_skipped(skipped)


def _open(
    data: str, labels: str | None, label_column: str | None, test: str | None, progress: Progress
) -> tuple[Data, Data | None]:
    from tnesi.data import open_data

    found = open_data(data, labels=labels, label_column=label_column, progress=tell_parts(progress))
    tested = found.test if test is None else open_data(test, label_column=label_column)
    if tested is not None and found.labels is not None:
        _ = tested.y  # raises an error without labels
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
        raise InvalidParameterError("{threshold} needs {labeling:self-labeling}", parameter="threshold")
    return SelfLabeling(threshold=threshold)


def _learn(classifier: SimpletronClassifier, found: Data, y: object, progress: Progress) -> Model:
    from tnesi.data.block_source import ProgressSource

    rows = ProgressSource(found.rows, tell_parts(progress))
    if y is not None:
        return classifier.fit(rows, y)
    for name, given, usual in (
        ("n_mixtures", classifier.n_mixtures, 1),
        ("unknown_classes", classifier.unknown_classes, 0),
    ):
        if given > usual:
            raise InvalidParameterError(f"{{{name}}} needs labels", advice="pass {labels}", parameter=name)
    assert classifier.mixture is not None
    return classifier.mixture.fit(rows)


def _keep(
    model: Model, encoder: Encoder | None, found: Data, n_labels: int, output: Path, *, seed: int, training: bool
) -> None:
    from tnesi.encoders.choice import with_encoder
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
    stored = with_encoder(encoder, model)
    save(stored, output, provenance=provenance, image_shape=found.rows.image_shape, training=training)


def _count(y: object) -> int:
    """Count the labels."""
    if y is None:
        return 0
    from tnesi.labeling.labels import encode_labels

    return int((encode_labels(y, None)[0] >= 0).sum())


def _describe(
    out: Output, model: Model, found: Data, n_labels: int, unlabeled: str, seconds: float, *, verbose: bool
) -> dict[str, Any]:
    """Print and return what was learned."""
    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.training.committee import mean_lower_bound

    mixtures = model.mixtures_ if isinstance(model, SimpletronClassifier) else [model]
    mixture, lower_bound = mixtures[0], mean_lower_bound([mixture.learned_ for mixture in mixtures])
    what, took = (
        f"{mixture.n_components_:,} fields in {model.n_iter_} iteration{'s' if model.n_iter_ != 1 else ''}",
        f"{seconds:.1f} s",
    )
    seconds_mixtures = sum(each.history_[-1]["seconds"] for each in mixtures if each.history_)
    if len(mixtures) > 1:
        what, took = f"{len(mixtures)} mixtures of {what} or fewer", f"{took}, the mixtures {seconds_mixtures:.1f} s"
    if found.note:
        out.say(f"{found.note}.")
    out.say(f"{found.name}: {len(found.rows):,} rows of {found.rows.n_features} features.")
    out.say(f"Learned {what}, {took}.")
    if verbose:
        out.say(
            f"Row sum {mixture.row_sum_:.4g}, truncation {mixture.truncation_}, "
            f"free energy {lower_bound:.3f} nats per row."
        )
    if found.labels is not None and (marked := sum(str(label) == unlabeled for label in found.labels.tolist())):
        out.say(f"{marked:,} rows marked {unlabeled} are unlabeled.")
    if isinstance(model, SimpletronClassifier):
        of_classes = _describe_classes(out, model, n_labels)
    else:
        of_classes = {"classes": []}
        out.say("No labels: the model has no classes.")
    return {
        "data": found.name, "rows": len(found.rows), "features": found.rows.n_features, "note": found.note,
        "mixtures": len(mixtures), "fields": sum(each.n_components_ for each in mixtures), "row_sum": mixture.row_sum_,
        "truncation": mixture.truncation_, "iterations": model.n_iter_, "free_energy": lower_bound,
        "converged": all(each.converged_ for each in mixtures), "labels": n_labels, **of_classes,
        "seconds_learning": seconds, "seconds_mixtures": seconds_mixtures,
    }  # fmt: skip


def _describe_classes(out: Output, model: SimpletronClassifier, n_labels: int) -> dict[str, Any]:
    """Print and return what the second layer has learned."""
    from tnesi.report.labels import class_shares, doubts, second_layer_lines

    classes = model.classes_.tolist()[: len(model.label_confidence_)]
    names = ", ".join(map(str, classes[:12])) + (", ..." if len(classes) > 12 else "")
    out.say(f"{len(classes)} classes ({names}) from {n_labels:,} labels.")
    for line in second_layer_lines(model, with_alarms=False):  # they were printed as warnings
        out.say(line)
    return {
        "classes": classes, "labeling": model.labeling_, "votes": model.votes_,
        "expected_accuracy": model.expected_accuracy_, "class_shares": class_shares(model),
        "label_confidence": model.label_confidence_, "doubtful": [doubt._asdict() for doubt in doubts(model)],
        "unknown_share": model.unknown_share_,
    }  # fmt: skip
