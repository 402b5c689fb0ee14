"""The base class of the classifiers: predictions and attributes of a fitted `ClassifierModel`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, _safe_indexing, estimator_html_repr
from sklearn.utils.validation import _num_samples, check_is_fitted

from tnesi.errors import InvalidDataError, TnesiError
from tnesi.estimators.blocks import checked_blocks
from tnesi.estimators.html_summary import classifier_summary
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.execution.device_engine import device_for
from tnesi.execution.settings import Local
from tnesi.labeling.labels import encode_labels, given_labels, is_unlabeled
from tnesi.labeling.second_layer import label_confidence
from tnesi.model.classifier_model import ClassifierModel, SecondLayer, StoredRows
from tnesi.model.rows import Matrix
from tnesi.search import on_device
from tnesi.system.threads import resolve_threads
from tnesi.types import Array


class NotLearnedError(TnesiError, NotFittedError):
    """A part of a classifier that has not been learned, or was not saved."""


class FittedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with a `ClassifierModel`, which subclasses learn."""

    unlabeled: Any
    n_jobs: int | None
    _model: ClassifierModel | None = None
    _mixtures: list[PoissonMixture] | None = None
    _confident: tuple[Array, Array] | None = None

    @classmethod
    def from_model(
        cls,
        model: ClassifierModel,
        mixtures: Sequence[PoissonMixture],
        parameters: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return a fitted classifier from a model; `mixtures` are the estimators of its mixtures."""
        classifier = cls(**parameters or {})
        first = mixtures[0]
        classifier.n_features_in_ = model.n_features
        if hasattr(first, "feature_names_in_"):
            classifier.feature_names_in_ = first.feature_names_in_
        classifier._keep_mixtures(mixtures)
        classifier._keep_model(model)
        return classifier

    def settle(self) -> Self:
        """Learn what `partial_fit` has postponed; does nothing after `fit`."""
        check_is_fitted(self)
        return self

    def predict_proba(self, X: object) -> Array:
        """Return the probability of each class, an array of shape (n_samples, n_classes)."""
        model = self.settle().model_
        self._layer()
        n_threads = self._n_threads()
        with device_for(self._run(), n_threads) as device:
            model = replace(model, mixtures=tuple(on_device(mixture, device) for mixture in model.mixtures))
            blocks = checked_blocks(self, X, device, reset=False)
            return np.concatenate([model.posterior(block, n_threads) for block in blocks])

    def activities_of(self, X: Matrix) -> sparse.csr_array:
        """Return the first-layer activities of checked rows, of shape (n_samples, n_fields)."""
        return self.model_.activities_of(X, self._n_threads())

    def predict(self, X: object) -> Array:
        """Return the most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the accuracy on the rows that have a label.

        A scorer chosen by name, such as ``scoring="accuracy"``, counts unlabeled rows as another class: pass
        `tnesi.model_selection.labeled_scorer` instead.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test rows.
        y : array-like of shape (n_samples,)
            Their labels. Rows without one are left out, with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            Share of the labeled rows that are predicted correctly.
        """
        check_is_fitted(self)
        predicted = self.predict(X)
        if any(is_unlabeled(self.classes_, self.unlabeled)):  # unknown classes are predicted as the marker
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        at, labels = given_labels(y, self.unlabeled)
        if not at.size:
            raise InvalidDataError("no row has a label", parameter="y", advice="pass the true classes")
        if at.size < predicted.size:
            warnings.warn(
                f"{predicted.size - at.size:,} of {predicted.size:,} rows have no label and are left out of the score; "
                "for cross-validation use cv=tnesi.model_selection.SemiSupervisedKFold()",
                stacklevel=2,
            )
        weight = None if sample_weight is None else _safe_indexing(sample_weight, at)
        return float(accuracy_score(labels, predicted[at], sample_weight=weight))

    @property
    def model_(self) -> ClassifierModel:
        """The fitted model, an immutable value."""
        check_is_fitted(self)
        if self._model is None:
            raise NotLearnedError(
                "the second layer has not learned from the last batches yet", advice="call settle() first, or predict"
            )
        return self._model

    @property
    def mixture_(self) -> PoissonMixture:
        """The first mixture of the first layer, by default the only one."""
        return self.mixtures_[0]

    @property
    def mixtures_(self) -> list[PoissonMixture]:
        """The first layer: one mixture, or a committee."""
        check_is_fitted(self)
        assert self._mixtures is not None
        return self._mixtures

    @property
    def activities_(self) -> sparse.csr_array:
        """Activities of the training rows, of shape (n_samples, n_fields)."""
        return self._stored()[1].activities

    @property
    def class_weights_(self) -> Array:
        """R, of shape (n_classes, n_fields); rows sum to 1."""
        return self._layer().classes.weights

    @property
    def class_sizes_(self) -> Array | None:
        """p(k), by which predictions weigh the classes; None where all classes have the same size."""
        return self._layer().classes.sizes

    @property
    def labeling_(self) -> str:
        """The method that learned from the labels."""
        return self._layer().method

    @property
    def votes_(self) -> dict[str, float]:
        """The share with which each method votes on the class of a row; empty if there is no vote."""
        shares: dict[str, float] = {}
        for vote in self._layer().votes:
            shares[vote.method] = shares.get(vote.method, 0.0) + vote.share
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    @property
    def expected_accuracy_(self) -> float | None:
        """Estimated share of the rows that are predicted correctly; None if it is not known."""
        return self._layer().accuracy

    @property
    def has_unknown_class_(self) -> bool:
        """Whether the last of `classes_` stands for rows of unknown classes."""
        model = self.model_
        return model.layer is not None and model.layer.unknown

    @property
    def label_distributions_(self) -> Array:
        """Probabilities of the classes for the training rows, of shape (n_samples, n_classes)."""
        return self._labeled().label_distributions

    @property
    def transduction_(self) -> Array:
        """Labels of the training rows, given or inferred."""
        return self._labeled().transduction

    @property
    def unknown_share_(self) -> float:
        """Share of the training rows that belong to unknown classes."""
        return self._labeled().unknown_share

    @property
    def label_confidence_(self) -> Array:
        """For each class the probability that its rows are not those of another class."""
        return self._confidence()[0]

    @property
    def label_rivals_(self) -> Array:
        """The class with which each class may be confused."""
        return np.asarray(self.classes_[self._confidence()[1]])

    def _run(self) -> Local:
        """Return the execution settings."""
        return Local()

    def _n_threads(self) -> int:
        return resolve_threads(self.n_jobs)

    def _layer(self) -> SecondLayer:
        layer = self.model_.layer
        if layer is None:
            raise NotLearnedError(
                "there are no labels yet",
                advice="label the rows that suggest() returns, then call fit_labels with these labels",
            )
        return layer

    def _labeled(self) -> ClassifierModel:
        """Return a model with labels and training rows."""
        self._layer()
        return self._stored()[0]

    def _stored(self) -> tuple[ClassifierModel, StoredRows]:
        """Return the model and its training rows."""
        model = self.model_
        if model.rows is None or model.label is None:
            raise NotLearnedError(
                "the training rows were not saved with this classifier",
                advice="call fit, or save the original again with training=True",
            )
        return model, model.rows

    def _relabeled(self, y: object) -> tuple[ClassifierModel, StoredRows, Array, Array]:
        """Return the model, its training rows, and new labels of these as class numbers, with their classes."""
        model, rows = self._stored()
        of_all = rows.present is not None and _num_samples(y) == rows.n_given
        label, names = encode_labels(y, self.unlabeled, present=rows.present if of_all else None)
        if label.size != len(rows):
            raise InvalidDataError(
                "y has {given} labels, but fit has learned from {known} rows",
                parameter="y",
                advice="pass one for each",
                given=label.size,
                known=len(rows),
            )
        return model, rows, label, names

    def _confidence(self) -> tuple[Array, Array]:
        model = self._labeled()
        if self._confident is None:
            self._confident = label_confidence(model)
        return self._confident

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, and below it what was learned."""
        diagram = str(estimator_html_repr(self))
        if self._model is None:  # not fitted, or a stream that has not been settled
            return diagram
        sure = None
        if self._model.layer is not None and self._model.rows is not None and self._model.label is not None:
            sure = self._confidence()[0]
        return diagram + classifier_summary(self._model, self.n_iter_, sure)

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    def _keep_model(self, model: ClassifierModel, names: Array | None = None) -> None:
        """Keep a model; `names` are the classes of one without labels."""
        self._model, self._confident = model, None
        none = np.empty(0, np.int64) if names is None else names
        self.classes_ = none if model.layer is None else model.layer.names

    def _keep_mixtures(self, mixtures: Sequence[PoissonMixture]) -> None:
        self._mixtures = list(mixtures)
        self.n_iter_ = max(mixture.n_iter_ for mixture in mixtures)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        # only proportions within a row count, which reduces scikit-learn's two-dimensional blobs to one dimension
        tags.classifier_tags.poor_score = True
        return tags
