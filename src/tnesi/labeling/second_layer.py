"""Learning the second layer from labels, on the stored activities of the first."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tnesi.errors import InvalidParameterError
from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.features import Features
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.labels import with_marker
from tnesi.labeling.left_out import LeftOut
from tnesi.labeling.naming import confidence
from tnesi.labeling.suggest import Known, Suggestion, suggest
from tnesi.labeling.voting import plain_accuracy, regress, vote
from tnesi.model.classes import FieldClasses
from tnesi.model.classifier_model import ClassifierModel, SecondLayer, StoredRows, Vote
from tnesi.training.monitor import InterruptedWarning
from tnesi.training.self_labeling import ClassLearner
from tnesi.types import Array

Method = Literal["auto", "clusters", "spreading", "leading", "logistic", "self-labeling", "supervised"]
METHODS: tuple[Method, ...] = ("auto", "clusters", "spreading", "leading", "logistic", "self-labeling", "supervised")
_BLOCK = 4096


@dataclass(frozen=True)
class SelfLabeling:
    """Settings of self-labeling, in which the second layer learns from its own confident predictions.

    Toward the end, the rate decreases to a quarter and the threshold increases halfway to 1.

    Parameters
    ----------
    threshold : float, default=0.6
        Minimum margin between the two best classes for a row to be self-labeled.
    learning_rate : float, default=20.0
        Rate, in units of K / N. The paper's is 0.2.
    max_iter : int, default=100
        Passes over the activities.
    batch_size : int, default=25
        Rows in a mini-batch.

    Examples
    --------
    >>> from tnesi import SelfLabeling, SimpletronClassifier
    >>> clf = SimpletronClassifier(labeling=SelfLabeling(threshold=0.7))
    """

    threshold: float = 0.6
    learning_rate: float = 20.0
    max_iter: int = 100
    batch_size: int = 25


@dataclass(frozen=True)
class LabelingParameters:
    """Parameters of learning from labels, documented in :class:`tnesi.SimpletronClassifier`."""

    method: Method = "auto"
    self_labeling: SelfLabeling = SelfLabeling()
    unknown_classes: int = 0
    unlabeled: Any = -1
    n_threads: int = 1


@dataclass(frozen=True, eq=False)
class LayerFit:
    """A learned second layer.

    Attributes
    ----------
    layer : SecondLayer
    warning : ConvergenceWarning or None
        If learning was interrupted.
    inferred : (N, K) array or None
        Probabilities of the classes for the stored rows, if they depend on more than the activities.
    """

    layer: SecondLayer
    warning: ConvergenceWarning | None = None
    inferred: Array | None = None


def new_labeler(rows: StoredRows, sizes: Sequence[int], seed: int, n_threads: int) -> Labeler:
    """Return a labeler of stored rows; `seed` is that of the first layer."""
    features = None if rows.store is None else Features(rows.store, rows.weight, seed)
    return Labeler(rows.activities, sizes, rows.weight, seed, n_threads, features)


def learn_labels(labeler: Labeler, parameters: LabelingParameters, label: Array, names: Array, seed: int) -> LayerFit:
    """Learn the second layer of a feed-forward network from labels (class numbers, -1 for none) of the stored rows."""
    method: str = parameters.method
    activities, weight, features = labeler.activities, labeler.weight, labeler.features
    chooses = method == "auto" and not parameters.unknown_classes
    if (label >= 0).all() and (method == "self-labeling" or (chooses and features is None)):
        method = "supervised"
    if method == "supervised":
        return LayerFit(SecondLayer(FieldClasses.average(activities, label, weight, names.size), names, method))
    if method == "self-labeling":
        rule = parameters.self_labeling
        learner = ClassLearner(
            label=label,
            weight=weight,
            n_classes=names.size,
            self_label=True,
            threshold=rule.threshold,
            recurrent=False,
            learning_rate=rule.learning_rate,
            max_iter=rule.max_iter,
            batch_size=rule.batch_size,
            exact=True,
            n_threads=parameters.n_threads,
            rng=np.random.default_rng(seed),
        )
        learner.begin(activities.shape[1])
        learner.learn(activities)
        return LayerFit(SecondLayer(learner.classes, names, method), interruption(learner))
    n_unknown = parameters.unknown_classes
    all_names = with_marker(names, parameters.unlabeled) if n_unknown else names
    try:
        with single_threaded_blas():
            if method in ("leading", "logistic"):
                return _learn_linear(labeler, method, label, names)
            if chooses and features is not None:
                return _vote(labeler, features, label, names)
            layer, method = labeler.learn(label, names.size, method, n_unknown)
            fit = LayerFit(SecondLayer(layer, all_names, method, bool(n_unknown)))
            return fit if features is None or n_unknown else _compared(labeler, fit, label)
    except KeyboardInterrupt:
        average = FieldClasses.average(activities, label, weight, names.size)
        return LayerFit(
            SecondLayer(average, names, ""),
            InterruptedWarning(
                "learning of the second layer was interrupted: only labeled rows were used; call fit_labels with the "
                "same labels to learn from all rows"
            ),
        )


def _learn_linear(labeler: Labeler, method: str, label: Array, names: Array) -> LayerFit:
    if labeler.features is None:
        raise InvalidParameterError(
            "labeling={method!r} needs the rows themselves, but only their activities are available",
            parameter="labeling",
            method=method,
            advice="fit the classifier again, or use another method",
        )
    votes: tuple[Vote, ...]
    if method == "leading":
        points = np.flatnonzero(label >= 0)
        votes = (Vote(method, 1.0, labeler.features.lead(points, label[points], names.size)),)
    else:
        rows, _ = labeler.sample
        test = LeftOut.of(label, names.size, labeler.seed)
        found = regress(labeler.features, test, labeler.features.store.take(rows), labeler.n_threads)
        votes = tuple(Vote(method, one.share, one.classes) for one in found.members)
    fit = _of_votes(labeler, labeler.features, votes, names, method)
    return fit if method == "logistic" else _compared(labeler, fit, label)


def _vote(labeler: Labeler, features: Features, label: Array, names: Array) -> LayerFit:
    voted = vote(labeler, features, label, names.size)
    methods = {one.method for one in voted.votes}
    method = methods.pop() if len(methods) == 1 else "vote"
    fitted = _of_votes(labeler, features, voted.votes, names, method, voted.sharpness)
    layer = replace(fitted.layer, accuracy=voted.accuracy, plain_accuracy=voted.plain_accuracy)
    return replace(fitted, layer=layer)


def _compared(labeler: Labeler, fit: LayerFit, label: Array) -> LayerFit:
    """Compare a layer that named clusters, spread labels or led them with plain logistic regression.

    The layer has seen the labels that logistic regression is held out from, so only a large difference shows.
    """
    assert labeler.features is not None
    rows, _ = labeler.sample
    test = LeftOut.of(label, fit.layer.classes.n_classes, labeler.seed)
    if not test.rounds():
        return fit
    logistic = regress(labeler.features, test, labeler.features.store.take(rows), labeler.n_threads)
    points = test.points
    t = fit.layer.posterior(labeler.activities[points]) if fit.inferred is None else fit.inferred[points]
    right = (t.argmax(axis=1) == test.label) & (test.part >= 0)
    return replace(fit, layer=replace(fit.layer, plain_accuracy=plain_accuracy(logistic, right, test)))


def _of_votes(
    labeler: Labeler, features: Features, votes: tuple[Vote, ...], names: Array, method: str, sharpness: float = 1.0
) -> LayerFit:
    """Return the layer with the classes of the fields, which are those of their rows, and the classes of the rows."""
    activities = labeler.activities
    n_rows, n_fields = activities.shape
    layer = SecondLayer(FieldClasses.even(n_fields, names.size), names, method, votes=votes, sharpness=sharpness)
    inferred = np.empty((n_rows, names.size), np.float32)

    def infer(start: int) -> None:
        place = slice(start, start + _BLOCK)
        rows = features.store.read(place) if layer.needs_rows else None
        inferred[place] = layer.posterior(activities[place] if layer.needs_activities else None, rows)

    with ThreadPoolExecutor(labeler.n_threads) as pool:
        list(pool.map(infer, range(0, n_rows, _BLOCK)))
    best = inferred.argmax(axis=1).astype(np.int32)
    classes = FieldClasses.average(activities, best, labeler.weight, names.size)
    return LayerFit(replace(layer, classes=classes), inferred=inferred)


def interruption(learner: ClassLearner) -> InterruptedWarning | None:
    """Return a warning if learning of the second layer was interrupted."""
    if not learner.interrupted:
        return None
    return InterruptedWarning(
        "learning of the second layer was interrupted: the classifier is that of the last complete pass"
    )


def label_confidence(model: ClassifierModel) -> tuple[Array, Array]:
    """Return the probability that the rows of each class are named correctly, and the index of its rival class."""
    assert model.rows is not None
    assert model.label is not None
    assert model.layer is not None
    return confidence(model.rows.activities, model.best, model.label, model.layer.n_known)


def suggestions(
    labeler: Labeler, model: ClassifierModel, confident: tuple[Array, Array] | None, n: int
) -> list[Suggestion]:
    """Return the rows to label next; `confident` is :func:`label_confidence`, or None without labels."""
    assert model.rows is not None
    assert model.label is not None
    known = Known.nothing(model.label.size)
    if model.layer is not None and confident is not None:
        n_known, names = model.layer.n_known, model.layer.names
        t, (sure, rivals) = model.label_distributions[:, :n_known], confident
        known = Known(model.label, names[:n_known], t, sure, names[rivals])
    with single_threaded_blas():
        found = suggest(labeler, known, n)
    numbers = model.rows.numbers
    return [suggestion._replace(row=int(numbers[suggestion.row])) for suggestion in found]
