"""The result of learning from the answers, an immutable value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.alarms import alarms
from tnesi.labeling.second_layer import LabelingParameters, label_confidence, learn_labels
from tnesi.labeling.suggest import Known
from tnesi.model.classes import margins
from tnesi.model.classifier_model import ClassifierModel
from tnesi.studio.answers import View
from tnesi.studio.first_layer import FirstLayer
from tnesi.studio.outlook import CLEAR, Conflict, Estimate, Naming, conflicts, expected_error, left_out_doubt
from tnesi.types import Array


@dataclass(frozen=True, eq=False)
class Learned:
    """The classes of all rows.

    Attributes
    ----------
    layer : FirstLayer
        The first layer.
    answer : int
        The newest answer that was used.
    names : list of str
        The classes, sorted. With fewer than two classes, only the labels are known.
    label : (N,) array
        Places in `names`, -1 for unlabeled.
    model : ClassifierModel or None
        Its classes are numbers.
    confidence, rivals : (K,) arrays
        Confidence in the name of each class, and the class with which it may be confused.
    posterior : (N, K) array
    best, probability, margin : (N,) arrays
        The most probable class, its probability, and its margin.
    field_class, field_certainty : (C,) arrays
        The class of the rows that a field stands for, and their share.
    decided : float
    estimate : Estimate or None
    """

    layer: FirstLayer
    answer: int
    names: list[str]
    label: Array
    model: ClassifierModel | None = None
    confidence: Array = field(default_factory=lambda: np.empty(0))
    rivals: Array = field(default_factory=lambda: np.empty(0, np.int64))
    posterior: Array = field(default_factory=lambda: np.empty((0, 0)))
    best: Array = field(default_factory=lambda: np.empty(0, np.int64))
    probability: Array = field(default_factory=lambda: np.empty(0))
    margin: Array = field(default_factory=lambda: np.empty(0))
    field_class: Array = field(default_factory=lambda: np.empty(0, np.int64))
    field_certainty: Array = field(default_factory=lambda: np.empty(0))
    decided: float = 0.0
    estimate: Estimate | None = None
    _orders: dict[tuple[int | None, str], Array] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> Array:
        """How many rows each class has."""
        return np.bincount(self.best, minlength=len(self.names))

    @cached_property
    def alarms(self) -> list[str]:
        """Signs that the classes should not be trusted."""
        return [] if self.model is None else alarms(self.model)

    def known(self) -> Known:
        """Return the input for choosing questions."""
        names = np.array(self.names)
        if self.model is None:
            nothing = Known.nothing(self.label.size)
            return Known(self.label, nothing.classes, nothing.posterior, nothing.confidence, nothing.rivals)
        return Known(self.label, names, self.posterior, self.confidence, names[self.rivals])

    def find_conflicts(self) -> list[Conflict]:
        """Return labels that contradict their surroundings; takes about as long as learning."""
        if self.model is None or self.model.layer is None:
            return []
        with single_threaded_blas():
            method = self.model.layer.method
            return conflicts(self.layer.labeler, self.label, self.best, len(self.names), method)

    def order(self, number: int | None, how: str) -> Array:
        """Return the rows of a class (None: of all), by certainty or number."""
        if (number, how) not in self._orders:
            rows = np.arange(self.label.size) if number is None else np.flatnonzero(self.best == number)
            if how != "index" and self.model is not None:
                sign = -1 if how == "certain" else 1
                rows = rows[np.argsort(sign * self.margin[rows], kind="stable")]
            self._orders[number, how] = rows
        return self._orders[number, how]

    def typical(self, number: int) -> Array:
        """Return rows of a class whose fields are those of many others: the more certain half, the most typical first.

        The most certain rows of all are often odd ones, which have a field of their own.
        """
        rows = self.order(number, "certain")
        rows = rows[: -(-rows.size // 2)]
        around = self.layer.activities[rows] @ self.layer.mass
        return rows[np.argsort(-around, kind="stable")]

    def named_model(self) -> SimpletronClassifier | None:
        """Return a classifier that can be saved, with the names of the classes."""
        if self.model is None:
            return None
        return self.layer.classifier(self.model.renamed(np.array(self.names)), unlabeled=None)


def learn(layer: FirstLayer, view: View) -> Learned:
    """Learn the classes from the labels of a view."""
    n_rows = layer.activities.shape[0]
    names = sorted(set(view.labels.values()))
    number = {name: k for k, name in enumerate(names)}
    label = np.full(n_rows, -1, np.int32)
    label[list(view.labels)] = [number[name] for name in view.labels.values()]
    if len(names) < 2:
        return Learned(layer, view.last, names, label)
    parameters = LabelingParameters(n_threads=layer.labeler.n_threads)
    seed = int(np.random.RandomState(layer.seed).randint(2**31))
    learned = learn_labels(layer.labeler, parameters, label, np.arange(len(names)), seed)
    second = learned.layer
    model = replace(layer.model, layer=second, label=label, inferred=learned.inferred)
    t = model.label_distributions
    confidence, rivals = label_confidence(model)
    best, margin = t.argmax(axis=1), margins(t)
    method = second.method if second.accuracy is None else "vote"  # even if a single way is left to vote
    field_shares = np.asarray(layer.activities.T @ t) / np.maximum(layer.mass, 1e-12)[:, None]
    return Learned(
        layer=layer,
        answer=view.last,
        names=names,
        label=label,
        model=model,
        confidence=confidence,
        rivals=rivals,
        posterior=t,
        best=best,
        probability=t[np.arange(n_rows), best],
        margin=margin,
        field_class=np.where(layer.mass > 0, field_shares.argmax(axis=1), -1),
        field_certainty=field_shares.max(axis=1),
        decided=float(np.mean(margin > CLEAR)),
        estimate=_estimate(layer, method, Naming(confidence, rivals), label, best, t),
    )


def _estimate(layer: FirstLayer, method: str, naming: Naming, label: Array, best: Array, t: Array) -> Estimate:
    """Return the expected error.

    Labels that have spread are as sure as labels left out say. Clusters are not: there, what is doubtful is whether
    a row's neighbors agree with it, and whether it would be in the same cluster had chance decided otherwise.
    """
    doubt = 1 - t.max(axis=1)
    if method == "clusters":
        chance = 1 - layer.labeler.clusters(t.shape[1]).agreement
        doubt = np.minimum(left_out_doubt(layer.activities, layer.mass, t) + chance, 1)
    return expected_error(doubt, label, best, layer.parts(), naming, method)
