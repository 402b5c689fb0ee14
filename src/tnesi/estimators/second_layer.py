"""What a classifier learns from labels: its second layer, on the stored activities of the first."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tnesi.estimators.mixture_parameters import MOST
from tnesi.estimators.parameters import check_choice, check_integer, check_real, unchanged_on_failure
from tnesi.estimators.training_rows import present_labels
from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.labels import encode_labels, with_marker
from tnesi.labeling.naming import confidence
from tnesi.labeling.suggest import Known, Suggestion, suggest
from tnesi.model.classes import Classes
from tnesi.system.threads import resolve_threads
from tnesi.training.self_labeling import TopLayer

Array = npt.NDArray[Any]

_FROM_LABELS = (
    "_classes",
    "class_weights_",
    "class_sizes_",
    "label_method_",
    "label_distributions_",
    "transduction_",
    "label_confidence_",
    "label_rivals_",
    "unknown_share_",
)
"""What a classifier has when there are labels."""
FROM_STREAM = (*_FROM_LABELS, "kept_rows_", "activities_", "_label", "_weight", "_unknown")
"""What a classifier that learns from a stream finds out when it is asked."""


class SecondLayer(BaseEstimator):
    """The part of a classifier that has to do with labels."""

    _labeler: Labeler | None = None
    _present: Array | None = None
    _stream: Any = None

    def fit_labels(self, y: Any) -> Self:
        """Learn the second layer anew for other labels of the same rows, on the stored activities.

        The first layer stays as it is, so this takes a second where `fit` takes a minute.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of the rows given to `fit`, or only of those with a weight (files of format 1 and 2 know no others).

        Returns
        -------
        self : SimpletronClassifier
        """
        check_is_fitted(self)
        self._check_parameters()
        if self.recurrent:
            raise ValueError("the first layer of a recurrent network has learned from the labels too: call fit instead")
        if self._stream is not None:
            raise ValueError("the rows of a stream are not all kept: pass those with labels to partial_fit instead")
        self._stored_labels("fit_labels learns from")
        label, classes = encode_labels(y, self.unlabeled)
        if self._present is not None and label.size == self._present.size:
            label, classes = present_labels(label, classes, self._present)
        n = self.activities_.shape[0]
        if label.size != n:
            raise ValueError(f"y has {label.size} labels, but fit has learned from {n} rows: pass one for each")
        seed = int(check_random_state(self.random_state).randint(2**31))
        with unchanged_on_failure(self):
            trouble = self._learn_labels(new_top_layer(self, label, classes.size, self._weight, seed), classes)
        if trouble:
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def _stored_labels(self, what_for: str) -> Array:
        """Return the labels of the rows whose activities are stored."""
        check_is_fitted(self)
        if self._label is None:
            raise ValueError(
                f"the activities of the training rows were not saved with this classifier, and {what_for} them: call "
                "fit, or save the original again with training=True"
            )
        return self._label

    def suggest(self, n: int = 10) -> list[Suggestion]:
        """Say which rows to label next, and why; also where there are no labels yet.

        Without labels these are typical rows of `n` clusters, the largest first. With labels they come from parts of
        the data that no label has reached, from where classes compete, and from classes that could be confused.

        Parameters
        ----------
        n : int, default=10
            How many; fewer where there is no more to ask.

        Returns
        -------
        suggestions : list of Suggestion
            Each has a `row` of those given to `fit` (files of format 1 and 2 count only those with a weight), a
            `reason`, and the `classes` between which it would decide. The most useful come first.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from tnesi import SimpletronClassifier
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = np.full(len(X), -1)
        >>> clf = SimpletronClassifier(random_state=0).fit(X, y)
        >>> for _ in range(3):
        ...     rows = [suggestion.row for suggestion in clf.suggest(10)]
        ...     y[rows] = truth[rows]  # somebody looks at them
        ...     _ = clf.fit_labels(y)
        >>> bool(clf.score(X, truth) > 0.9)
        True
        """
        label = self._stored_labels("suggestions are made from")
        check_integer("n", n, 1)
        known = Known.nothing(label.size)
        if "_classes" in vars(self):
            n_known = self.classes_.size - self._unknown
            t, classes = self.label_distributions_[:, :n_known], self.classes_[:n_known]
            known = Known(label, classes, t, self.label_confidence_, self.label_rivals_)
        with single_threaded_blas():
            found = suggest(self._known_labeler(), known, n)
        number = np.arange(label.size) if self._present is None else np.flatnonzero(self._present)
        if self._stream is not None:
            number = self.kept_rows_
        return [suggestion._replace(row=int(number[suggestion.row])) for suggestion in found]

    def _learn_labels(self, top: TopLayer, classes: Array) -> str | None:
        """Learn the second layer of a feed-forward network on the stored activities; return what to warn of."""
        method: str = self.label_method
        published = self.solver == "hebbian" or not self.self_labeling or (top.label >= 0).all()
        if method == "auto" and published and not self.unknown_classes:
            method = "hebbian"
        if method == "hebbian":
            top.begin(self.activities_.shape[1])
            top.learn(self.activities_)
            self._keep(top.classes, top.label, classes, "hebbian")
            return interrupted(top)
        names = with_marker(classes, self.unlabeled) if self.unknown_classes else classes
        labeler = self._known_labeler()
        try:
            with single_threaded_blas():
                layer, method = labeler.learn(top.label, classes.size, method, self.unknown_classes)
        except KeyboardInterrupt:
            self._keep(Classes.average(self.activities_, top.label, self._weight, classes.size), top.label, classes, "")
            return (
                "learning of the second layer was interrupted: only labeled rows have taught it so far; call "
                "fit_labels with the same labels to go on"
            )
        self._keep(layer, top.label, names, method, unknown=bool(self.unknown_classes))
        return None

    def _known_labeler(self) -> Labeler:
        """Return what is known without labels. Its seed is that of the first layer: no label set decides on it."""
        if self._labeler is None:
            sizes, seed = [mixture.n_components_ for mixture in self.mixtures_], self.mixtures_[0].random_state or 0
            self._labeler = Labeler(self.activities_, sizes, self._weight, seed)
        self._labeler.n_threads = resolve_threads(self.n_threads)
        return self._labeler

    def _keep(self, layer: Classes, label: Array | None, classes: Array, method: str, *, unknown: bool = False) -> None:
        """Keep a second layer and what it says of the training rows; `label` is None where they are not known."""
        self._classes, self._label, self._unknown = layer, label, unknown
        self.classes_, self.label_method_ = classes, method
        self.class_weights_, self.class_sizes_ = layer.weights, layer.sizes
        if label is not None:
            t = layer.posterior(self.activities_)
            labeled = label >= 0
            t[labeled] = np.eye(layer.n_classes)[label[labeled]]
            self.label_distributions_ = t
            best = np.argmax(t, axis=1)
            self.transduction_ = self.classes_[best]
            n_known = layer.n_classes - unknown
            self.unknown_share_ = float(np.average(best >= n_known, weights=self._weight))
            self.label_confidence_, rivals = confidence(self.activities_, best, label, n_known)
            self.label_rivals_ = classes[rivals]

    def _keep_none(self, label: Array, classes: Array) -> None:
        """There are no labels: forget what others have taught before."""
        for name in _FROM_LABELS:
            self.__dict__.pop(name, None)
        self.classes_, self._label, self._unknown = classes, label, False

    def _n_unnamed(self) -> int:
        """Return how many of `classes_` stand for unknown ones."""
        return int(vars(self).get("_unknown", False))

    def __getattr__(self, name: str) -> Any:
        if name in FROM_STREAM and self._stream is not None and "_label" not in vars(self):
            self._learn_kept()
            return getattr(self, name)
        if name in _FROM_LABELS and vars(self).get("_label") is not None:
            what, call = "labels", "fit_labels with these labels"
            if self._stream is not None:
                what, call = "labels of two classes", "partial_fit with these rows"
            raise NotFittedError(f"there are no {what} yet: label rows that suggest() names, then call {call}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def check_second_layer(settings: Any) -> None:
    """Refuse parameters with which a classifier could not learn its second layer."""
    for name in ("self_labeling", "recurrent"):
        if not isinstance(getattr(settings, name), (bool, np.bool_)):
            raise ValueError(f"{name}={getattr(settings, name)!r}: pass True or False")
    check_real("threshold", settings.threshold, 0, 1)
    check_real("label_learning_rate", settings.label_learning_rate, 0, open_low=True)
    check_integer("label_max_iter", settings.label_max_iter, 1, most=MOST)
    check_choice("label_method", settings.label_method, ("auto", "hebbian", "cluster", "soft"))
    check_integer("unknown_classes", settings.unknown_classes, 0, most=MOST)
    published = settings.solver == "hebbian" or settings.recurrent or not settings.self_labeling
    if published and settings.label_method in ("cluster", "soft"):
        raise ValueError(
            f"label_method={settings.label_method!r} needs solver='em', recurrent=False and self_labeling=True: pass "
            "these, or label_method='hebbian'"
        )
    if settings.unknown_classes and (published or settings.label_method not in ("auto", "cluster")):
        raise ValueError(
            f"unknown_classes={settings.unknown_classes}: classes without a label are found as clusters, which needs "
            "label_method='auto' or 'cluster', solver='em', recurrent=False and self_labeling=True"
        )


def new_top_layer(settings: Any, label: Array, n_classes: int, weight: Array | None, seed: int) -> TopLayer:
    """Return a layer that learns by the published rule."""
    return TopLayer(
        label=label,
        weight=weight,
        n_classes=n_classes,
        self_label=settings.self_labeling,
        threshold=settings.threshold,
        recurrent=settings.recurrent,
        learning_rate=settings.label_learning_rate,
        max_iter=settings.label_max_iter if settings.solver == "em" else settings.max_iter,
        batch_size=settings.batch_size,
        exact=settings.solver == "em",
        n_threads=resolve_threads(settings.n_threads),
        rng=np.random.default_rng(seed),
    )


def interrupted(top: TopLayer) -> str | None:
    """Return what to warn of."""
    if not top.interrupted:
        return None
    return "learning of the second layer was interrupted: the classifier is as the last complete pass left it"
