"""A network whose first layer is learned once and named by many label sets: what all runs of a seed share."""

from __future__ import annotations

import time
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tnesi.data import Data, few_labels
from tnesi.estimators.interruption import ctrl_c_stops
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.model.rows import Matrix
from tnesi.model_file import ModelFileError, load, save
from tnesi.paper import presets
from tnesi.paper.protocol import Labels, Method, Protocol

Array = npt.NDArray[Any]

_KEEP_FROM = 60.0
"""A mixture that took more seconds than this is kept in a file until all of its runs are done."""
_OURS = ("solver", "max_iter", "tol", "prior_strength", "label_learning_rate")


def build(protocol: Protocol, method: Method, seed: int) -> SimpletronClassifier:
    """Return the network of a method, not fitted yet: the preset's with the protocol's parameters."""
    changes = protocol.parameters | method.parameters
    if protocol.solver == "em":
        defaults = signature(SimpletronClassifier).parameters
        changes = {name: defaults[name].default for name in _OURS} | changes
    preset: Callable[..., SimpletronClassifier] = getattr(presets, method.preset)
    return preset(random_state=seed, **changes)


class Network:
    """A classifier with the activities of its training and test rows.

    Attributes
    ----------
    seconds : float
        What the first layer and the activities of the test rows took.
    """

    def __init__(
        self,
        classifier: SimpletronClassifier,
        data: Data,
        rows: slice,
        *,
        keep: Path | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        assert data.test is not None
        self.y = data.y[rows]
        began = time.perf_counter()
        self.classifier = self._kept(keep) or self._learned(classifier, data.X[rows], callback)
        took = time.perf_counter() - began
        self._test_activities = self.classifier.activities_of(data.test.X)
        self.seconds = time.perf_counter() - began
        if keep and took > _KEEP_FROM:
            save(self.classifier, keep)

    def _learned(
        self, classifier: SimpletronClassifier, X: Matrix, callback: Callable[[dict[str, Any]], Any] | None
    ) -> SimpletronClassifier:
        with ctrl_c_stops():  # with all labels: there is nothing to infer, so the second layer takes no time
            classifier.set_params(callback=callback).fit(X, self.y)
        classifier.set_params(callback=None)
        return classifier

    @staticmethod
    def _kept(keep: Path | None) -> SimpletronClassifier | None:
        if keep is None or not keep.exists():
            return None
        try:
            found = load(keep)
        except ModelFileError:
            return None
        return found if isinstance(found, SimpletronClassifier) else None

    def learn(self, labels: Labels, seed: int, max_iter: int | None = None) -> int:
        """Learn the second layer from so many labels per class, drawn with `seed`; return how many there are.

        `max_iter` is the number of passes of the published rule, where it differs from the first layer's.
        """
        y = self.y if labels == "all" else few_labels(self.y, labels, np.random.default_rng(seed), unlabeled=None)
        return self.learn_from(y, seed, max_iter)

    def learn_from(self, y: Array, seed: int, max_iter: int | None = None) -> int:
        """Learn the second layer from labels of the training rows, None where there is none; return their number."""
        usual = self.classifier.max_iter
        self.classifier.set_params(random_state=seed, max_iter=max_iter or usual)
        with ctrl_c_stops():
            self.classifier.fit_labels(y)
        self.classifier.set_params(max_iter=usual)
        return sum(label is not None for label in y.tolist())

    def test_posterior(self) -> Array:
        """Return the class posterior of the test rows, N x K."""
        return self.classifier.model_.posterior(self._test_activities)
