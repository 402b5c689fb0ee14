"""A network whose first layer is learned once per seed and then trained on many sets of labels."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.data import Data, few_labels
from tnesi.errors import InvalidParameterError
from tnesi.estimators.interruption import raise_interrupts
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.execution.settings import Local
from tnesi.labeling.second_layer import SelfLabeling
from tnesi.model.rows import Matrix
from tnesi.model_file import ModelFileError, load, save
from tnesi.paper import presets
from tnesi.paper.protocol import Labels, Method, Protocol
from tnesi.training.rules import OnlineRule
from tnesi.types import Array

Classifier = SimpletronClassifier | NeuralSimpletron

_KEEP_FROM = 60.0
"""A mixture that took longer, in seconds, is saved to a file until all of its runs are done."""
_OF_MIXTURE = ("n_components", "row_sum", "prior_strength", "max_iter", "tol")
_OF_RULE = [entry.name for entry in fields(OnlineRule)]


def build(protocol: Protocol, method: Method, seed: int) -> Classifier:
    """Return the unfitted network of a method: its preset with the parameters of the protocol.

    By EM it is the classifier of this package with the network's number of fields, truncation and labeling. Runs share
    first layers, which therefore must not depend on labels.
    """
    given = protocol.parameters | method.parameters
    preset: Callable[..., NeuralSimpletron] = getattr(presets, method.preset)
    usual = preset()
    if usual.recurrent:
        raise InvalidParameterError(
            "{preset} is recurrent, so its first layer depends on the labels",
            advice="use a feed-forward preset",
            parameter="preset",
        )
    if protocol.solver != "em":
        rule = OnlineRule(**{name: given.pop(name) for name in _OF_RULE if name in given})
        rule = replace(rule, e_step="partial" if protocol.solver == "hebbian-partial" else "exact")
        given.pop("prior_strength", None)  # the published rule has no prior
        return preset(random_state=seed, rule=rule, **given)
    own = SelfLabeling(threshold=given.get("threshold", usual.threshold)) if usual.self_labeling else "supervised"
    of_mixture = {name: given[name] for name in _OF_MIXTURE if name in given}
    return SimpletronClassifier(
        PoissonMixture(truncation=given.get("truncation", usual.truncation), **of_mixture),
        labeling=given.get("labeling", own),
        n_mixtures=given.get("n_mixtures", 1),
        random_state=seed,
    )


def drawn_labels(y: Array, labels: Labels, seed: int) -> Array:
    """Return `y` with a number of labels per class drawn with `seed`; the others are None."""
    return y if labels == "all" else few_labels(y, labels, np.random.default_rng(seed), unlabeled=None)


class Network:
    """A classifier with the activities of its training and test rows.

    Attributes
    ----------
    seconds : float
        What the first layer and the activities of the test rows took.
    """

    def __init__(
        self,
        classifier: Classifier,
        data: Data,
        rows: slice,
        *,
        keep: Path | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        assert data.test is not None
        self.y = data.y[rows]
        began = time.perf_counter()
        self.classifier = _without_rows(self._kept(keep) or self._learned(classifier, data.X[rows], callback))
        took = time.perf_counter() - began
        self._test_activities = self.classifier.activities_of(data.test.X)
        self.seconds = time.perf_counter() - began
        if keep and took > _KEEP_FROM:
            save(self.classifier, keep)

    def _learned(
        self, classifier: Classifier, X: Matrix, callback: Callable[[dict[str, Any]], Any] | None
    ) -> Classifier:
        name = "mixture__execution" if isinstance(classifier, SimpletronClassifier) else "execution"
        with raise_interrupts():  # with all labels: there is nothing to infer, so the second layer takes no time
            classifier.set_params(**{name: Local(callback=callback)}).fit(X, self.y)
        classifier.set_params(**{name: None})
        return classifier

    @staticmethod
    def _kept(keep: Path | None) -> Classifier | None:
        if keep is None or not keep.exists():
            return None
        try:
            found = load(keep)
        except ModelFileError:
            return None
        return found if isinstance(found, Classifier) else None

    def learn(self, labels: Labels, seed: int) -> int:
        """Learn the second layer from a number of labels per class drawn with `seed`; return the total number."""
        return self.learn_from(drawn_labels(self.y, labels, seed), seed)

    def learn_from(self, y: Array, seed: int) -> int:
        """Learn the second layer from labels of the training rows (None: unlabeled); return their number."""
        with raise_interrupts():
            self.classifier.set_params(random_state=seed).fit_labels(y)
        return sum(label is not None for label in y.tolist())

    def test_posterior(self) -> Array:
        """Return the class posterior of the test rows, N x K."""
        layer = self.classifier.model_.layer
        assert layer is not None
        return layer.posterior(self._test_activities)


def _without_rows(classifier: Classifier) -> Classifier:
    """Return a classifier whose second layer learns from activities only, as the networks of the paper do."""
    model = classifier.model_
    if not isinstance(classifier, SimpletronClassifier) or model.rows is None:
        return classifier
    model = replace(model, rows=replace(model.rows, store=None)).without_labels()
    return SimpletronClassifier.from_model(model, classifier.mixtures_, classifier.get_params(deep=False))
