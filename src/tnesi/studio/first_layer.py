"""The first layer of a studio: learned here, from the project file, or from a model file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tnesi.data.source import Data
from tnesi.encoders.choice import Encoder, with_encoder
from tnesi.estimators.poisson_mixture import PoissonMixture, seed_of
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.execution.settings import Local
from tnesi.execution.store import ArrayStore
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.second_layer import new_labeler
from tnesi.model.classifier_model import ClassifierModel, StoredRows, activate
from tnesi.model_file import load, save, split_pipeline
from tnesi.report.fields import fields_of
from tnesi.system.progress import iteration_of
from tnesi.system.threads import resolve_threads
from tnesi.types import Array

Tell = Callable[[str, float | None], bool]
"""Called with a description and the share that is done; returns whether to stop."""

N_CLUSTERS = 10
"""Clusters of the data, for the map and the first questions."""
_PREVIEW_ROWS = 2500
_PREVIEW_ITERATIONS = 6
_PREVIEW_FROM = 10_000
"""Fewer rows are learned so quickly that a preview is useless."""


@dataclass(frozen=True)
class Settings:
    """How to learn the first layer; None means the previous setting of the project, or the default.

    Attributes
    ----------
    fields : int, "auto" or None
    seed : int or None
    model : Path or None
        A model file whose first layer is used.
    encoder : str
        The encoder of the rows, "none" without one.
    """

    fields: Any = None
    seed: int | None = None
    model: Path | None = None
    encoder: str = "none"

    def of_project(self, kept: str) -> bool:
        """Whether the stored first layer was learned with these settings."""
        before, given = _read_settings(kept), {"fields": self.fields, "seed": self.seed}
        same = all(value in (None, before.get(name)) for name, value in given.items())
        return self.model is None and same and before.get("encoder", self.encoder) == self.encoder

    @classmethod
    def from_text(cls, kept: str) -> Settings:
        """Return the settings with which the stored first layer was learned."""
        before = _read_settings(kept)
        if "model" in before:
            raise ValueError(
                f"the fields of {before['model']} are damaged in the project file: pass that model again with --model"
            )
        fields, seed = before.get("fields"), before.get("seed")
        fields, seed = (value if type(value) is int and value >= 0 else None for value in (fields, seed))
        return cls(fields, seed, encoder=str(before.get("encoder", "none")))

    def text(self) -> str:
        """Return the settings as JSON for the project file."""
        of_model = {"model": self.model.name} if self.model is not None else {}
        settings = {"fields": self.fields or "auto", "seed": self.seed or 0, "encoder": self.encoder}
        return json.dumps(settings | of_model)


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """A first layer and its activities for some rows.

    Attributes
    ----------
    mixtures : tuple of PoissonMixture
    stored : StoredRows
        With the activities.
    parameters : dict
        Of a classifier on this layer; `random_state` is a seed.
    rows : (n,) array or None
        The rows of the data that `stored` describes; None: all.
    encoder : Encoder or None
        By which the rows are encoded.
    """

    mixtures: tuple[PoissonMixture, ...]
    stored: StoredRows
    parameters: Mapping[str, Any]
    rows: Array | None = None
    encoder: Encoder | None = None

    @classmethod
    def of(
        cls, classifier: SimpletronClassifier, rows: Array | None = None, encoder: Encoder | None = None
    ) -> FirstLayer:
        """Return the first layer of a classifier that has its training rows."""
        stored = classifier.model_.rows
        assert stored is not None
        parameters = classifier.get_params(deep=False)
        if classifier.mixture is not None:
            parameters["mixture"] = clone(classifier.mixture).set_params(execution=None)
        return cls(tuple(classifier.mixtures_), stored, parameters, rows, encoder)

    @property
    def seed(self) -> int:
        """Seed of learning from labels."""
        return seed_of(self.parameters["random_state"])

    @cached_property
    def model(self) -> ClassifierModel:
        """A classifier without labels."""
        models = tuple(mixture.model_ for mixture in self.mixtures)
        return ClassifierModel(models, rows=self.stored).without_labels()

    @cached_property
    def labeler(self) -> Labeler:
        """The computations of learning from labels that need no labels."""
        first_seed = seed_of(self.mixtures[0].random_state)
        return new_labeler(self.stored, self.model.sizes, first_seed, resolve_threads(None))

    def classifier(self, model: ClassifierModel, **parameters: Any) -> SimpletronClassifier:
        """Return a model on this first layer as an estimator."""
        return SimpletronClassifier.from_model(model, self.mixtures, {**self.parameters, **parameters})

    @property
    def activities(self) -> sparse.csr_array:
        return self.stored.activities

    @property
    def n_fields(self) -> int:
        return int(self.activities.shape[1])

    @cached_property
    def mass(self) -> Array:
        """The number of rows that each field stands for."""
        return np.asarray(self.activities.sum(axis=0)).ravel()

    @cached_property
    def by_field(self) -> sparse.csc_array:
        """The activities, to look up by field."""
        return sparse.csc_array(self.activities)

    def parts(self) -> Array:
        """Return the cluster of each row."""
        return self.labeler.clusters(min(N_CLUSTERS, self.activities.shape[0])).place

    def fields(self, numbers: Array) -> Array:
        """Return fields without the offset that normalization adds."""
        return fields_of(self.model.mixtures, numbers) - 1

    def usual(self) -> Array:
        """Return the average row, computed from the fields."""
        heaviest = np.argsort(-self.mass, kind="stable")[:2000]
        return np.asarray(self.mass[heaviest] @ self.fields(heaviest))

    def neighbors(self, field: int, n: int = 12) -> list[int]:
        """Return the fields that share most rows with one."""
        column = self.by_field[:, [field]]
        shared = np.asarray((self.activities.T @ column).todense()).ravel()
        shared[field] = 0
        best = np.argsort(-shared, kind="stable")[:n]
        return [int(c) for c in best if shared[c] > 0]

    def typical(self, fields: Array) -> Array:
        """Return for each field the row in which it is most active."""
        starts, numbers, values = self.by_field.indptr, self.by_field.indices, self.by_field.data
        ends = starts[fields + 1]
        best = [
            numbers[start + values[start:end].argmax()] if end > start else 0
            for start, end in zip(starts[fields].tolist(), ends.tolist(), strict=True)
        ]
        return np.array(best, np.int64) if self.rows is None else self.rows[best]

    def nearest(self, field: int, n: int = 24) -> list[tuple[int, float]]:
        """Return the rows in which a field is most active, with its activity."""
        column = self.by_field[:, [field]].tocoo()
        order = np.argsort(-column.data, kind="stable")[:n]
        rows = column.row[order] if self.rows is None else self.rows[column.row[order]]
        return list(zip(rows.tolist(), column.data[order].astype(float).tolist(), strict=True))


def _read_settings(kept: str) -> dict[str, Any]:
    """Parse stored settings; empty if they are damaged."""
    try:
        return dict(json.loads(kept or "{}"))
    except (ValueError, TypeError, RecursionError):
        return {}


def new_classifier(settings: Settings, **of_mixture: Any) -> SimpletronClassifier:
    """Return a classifier, not fitted yet, with the parameters of the studio."""
    return SimpletronClassifier(
        PoissonMixture(**{"n_components": settings.fields or "auto", **of_mixture}), random_state=settings.seed or 0
    )


def learn(data: Data, settings: Settings, tell: Tell, encoder: Encoder | None = None) -> FirstLayer:
    """Learn from all rows; `tell` may stop it early."""

    def listener(entry: dict[str, Any]) -> bool:
        return tell(f"learning the fields: {iteration_of(entry)}", 1 - 0.9 ** entry["iteration"])

    classifier = new_classifier(settings, execution=Local(callback=listener))
    _fit(classifier, data.X)
    return FirstLayer.of(classifier, encoder=encoder)


def preview(data: Data, settings: Settings) -> FirstLayer | None:
    """Learn quickly from a few rows, for a first map; None if learning from all rows is as quick."""
    n = data.rows.n_rows
    if n < _PREVIEW_FROM:
        return None
    rows = np.sort(np.random.default_rng(settings.seed or 0).choice(n, _PREVIEW_ROWS, replace=False))
    classifier = new_classifier(settings, n_components="auto", max_iter=_PREVIEW_ITERATIONS)
    _fit(classifier, data.X[rows])
    return FirstLayer.of(classifier, rows)


def _fit(classifier: SimpletronClassifier, X: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".* rows are all zero", UserWarning)  # the command has mentioned them
        classifier.fit(X, np.full(X.shape[0], -1))


def check_features(path: Path, n_features: int, data: Data) -> None:
    """Refuse a model file of other data."""
    if n_features != data.rows.n_features:
        raise ValueError(
            f"{path} was learned from {n_features} features, and the data have {data.rows.n_features}: use a model of "
            "the same kind of data"
        )


def over_model(path: Path, data: Data, settings: Settings) -> FirstLayer:
    """Return the first layer of a model file, with its activities for all rows of these data."""
    encoder, model = split_pipeline(load(path))
    check_features(path, model.n_features_in_, data)
    mixtures = (model,) if isinstance(model, PoissonMixture) else tuple(model.mixtures_)
    activities = activate([mixture.model_ for mixture in mixtures], data.X, resolve_threads(None))
    parameters = {"mixture": PoissonMixture(mixtures[0].n_components_), "n_mixtures": len(mixtures)}
    stored = StoredRows(activities, None, None, data.rows.n_rows, ArrayStore(data.X))
    return FirstLayer(mixtures, stored, parameters | {"random_state": settings.seed or 0}, encoder=encoder)


def to_bytes(layer: FirstLayer) -> bytes:
    """Return a first layer with its activities, but no labels, as the bytes of a model file."""
    content = BytesIO()
    save(with_encoder(layer.encoder, layer.classifier(layer.model)), content)
    return content.getvalue()


def from_bytes(content: bytes, data: Data) -> FirstLayer:
    """Return the first layer from the bytes of `to_bytes`, for these data."""
    encoder, model = split_pipeline(load(BytesIO(content)))
    if not isinstance(model, SimpletronClassifier) or model.n_features_in_ != data.rows.n_features:
        raise ValueError("it belongs to other data")
    if model.activities_.shape[0] != data.rows.n_rows:
        raise ValueError("it belongs to other data")
    layer = FirstLayer.of(model, encoder=encoder)
    return replace(layer, stored=replace(layer.stored, store=ArrayStore(data.X)))
