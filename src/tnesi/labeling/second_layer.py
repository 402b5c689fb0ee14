"""Learning the second layer from labels, on the stored activities of the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.labels import with_marker
from tnesi.labeling.naming import confidence
from tnesi.labeling.suggest import Known, Suggestion, suggest
from tnesi.model.classes import Classes
from tnesi.model.classifier_model import ClassifierModel, SecondLayer, StoredRows
from tnesi.training.self_labeling import TopLayer

Array = npt.NDArray[Any]

LabelMethod = Literal["auto", "hebbian", "cluster", "soft"]


@dataclass(frozen=True)
class LabelingParameters:
    """How to learn from labels; :class:`tnesi.SimpletronClassifier` says what each of these means.

    `exact` tells whether R ends as the exact mean of the activities (EM), or as the online rule leaves it.
    """

    method: LabelMethod = "auto"
    unknown_classes: int = 0
    unlabeled: Any = -1
    self_labeling: bool = True
    threshold: float = 0.6
    recurrent: bool = False
    learning_rate: float = 20.0
    max_iter: int = 100
    batch_size: int = 25
    exact: bool = True
    n_threads: int = 1

    def top_layer(self, label: Array, n_classes: int, weight: Array | None, seed: int) -> TopLayer:
        """Return a layer that learns by self-labeling."""
        return TopLayer(
            label=label,
            weight=weight,
            n_classes=n_classes,
            self_label=self.self_labeling,
            threshold=self.threshold,
            recurrent=self.recurrent,
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            batch_size=self.batch_size,
            exact=self.exact,
            n_threads=self.n_threads,
            rng=np.random.default_rng(seed),
        )


@dataclass(frozen=True)
class Learned:
    """A second layer, and what to warn about."""

    layer: SecondLayer
    trouble: str | None = None


def new_labeler(rows: StoredRows, sizes: Sequence[int], seed: int, n_threads: int) -> Labeler:
    """Return what is known of stored rows without labels. `seed` is that of the first layer."""
    return Labeler(rows.activities, sizes, rows.weight, seed, n_threads)


def learn_labels(labeler: Labeler, parameters: LabelingParameters, label: Array, names: Array, seed: int) -> Learned:
    """Learn the second layer of a feed-forward network from labels (class numbers, -1 for none) of the stored rows."""
    method: str = parameters.method
    activities, weight = labeler.activities, labeler.weight
    published = not parameters.exact or not parameters.self_labeling or (label >= 0).all()
    if method == "auto" and published and not parameters.unknown_classes:
        method = "hebbian"
    if method == "hebbian":
        top = parameters.top_layer(label, names.size, weight, seed)
        top.begin(activities.shape[1])
        top.learn(activities)
        return Learned(SecondLayer(top.classes, names, "hebbian"), interruption(top))
    n_unknown = parameters.unknown_classes
    all_names = with_marker(names, parameters.unlabeled) if n_unknown else names
    try:
        with single_threaded_blas():
            layer, method = labeler.learn(label, names.size, method, n_unknown)
    except KeyboardInterrupt:
        average = Classes.average(activities, label, weight, names.size)
        return Learned(
            SecondLayer(average, names, ""),
            "learning of the second layer was interrupted: only labeled rows have taught it so far; call fit_labels "
            "with the same labels to go on",
        )
    return Learned(SecondLayer(layer, all_names, method, bool(n_unknown)))


def interruption(top: TopLayer) -> str | None:
    """Return what to warn about."""
    if not top.interrupted:
        return None
    return "learning of the second layer was interrupted: the classifier is as the last complete pass left it"


def label_confidence(model: ClassifierModel) -> tuple[Array, Array]:
    """Return the probability that each class has the rows that its labels mean, and the class it may be confused with.

    The second one is a place among the names of the classes.
    """
    assert model.rows is not None
    assert model.label is not None
    assert model.layer is not None
    return confidence(model.rows.activities, model.best, model.label, model.layer.n_known)


def suggestions(
    labeler: Labeler, model: ClassifierModel, confident: tuple[Array, Array] | None, n: int
) -> list[Suggestion]:
    """Return which rows to label next, and why; `confident` is :func:`label_confidence`, if there are labels."""
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
