"""ClassifierModel: both layers and the stored training rows, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from tnesi.model.classes import FieldClasses, sharpened
from tnesi.model.fields import Prior
from tnesi.model.linear_classes import LinearClasses
from tnesi.model.mixture_model import MixtureModel
from tnesi.model.rows import Matrix, RowStore
from tnesi.system.devices import device_of, is_tensor
from tnesi.types import Array


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The stored training rows.

    Attributes
    ----------
    activities : csr_array of shape (N, C)
        First-layer activities.
    weight : (N,) array or None
    number : (N,) array or None
        Indices of these rows among all rows given to `fit`; None means that these are all.
    n_given : int
        Number of rows given to `fit`.
    store : RowStore or None
        The rows themselves; None if they are no longer available, as after loading a model.
    """

    activities: sparse.csr_array
    weight: Array | None
    number: Array | None
    n_given: int
    store: RowStore | None = None

    def __len__(self) -> int:
        return int(self.activities.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out rows in a file or on a cluster, which other processes may not be able to read."""
        return vars(self) | ({} if self.store is None or self.store.in_memory else {"store": None})

    @property
    def numbers(self) -> Array:
        """Indices of these rows among all rows given to `fit`."""
        return np.arange(len(self)) if self.number is None else self.number

    @property
    def present(self) -> Array | None:
        """Mask of these rows among all rows given to `fit`; None means that these are all."""
        if self.number is None:
            return None
        mask = np.zeros(self.n_given, bool)
        mask[self.number] = True
        return None if mask.all() else mask


@dataclass(frozen=True, eq=False)
class Vote:
    """Classes whose probabilities count with a share.

    Attributes
    ----------
    method : str
        How they were learned.
    share : float
    classes : FieldClasses or LinearClasses
    """

    method: str
    share: float
    classes: FieldClasses | LinearClasses


@dataclass(frozen=True, eq=False)
class SecondLayer:
    """A learned second layer.

    Attributes
    ----------
    classes : FieldClasses
        R, with the sizes of the classes.
    names : (K,) array
        The names of the classes.
    method : {"vote", "clusters", "spreading", "leading", "logistic", "self-labeling", "supervised", ""}
        How it was learned; "" if learning was interrupted.
    unknown : bool
        Whether the last class stands for rows of unknown classes.
    votes : tuple of Vote
        Classes whose probabilities are averaged; their shares sum to 1. If there are none, `classes` decide alone.
    sharpness : float
        The average is raised to this power.
    accuracy : float or None
        Estimated share of the rows that are predicted correctly.
    plain_accuracy : float or None
        Share of held-out labels that plain logistic regression predicts correctly, if these are clearly more than
        this layer does. Model files do not store it.
    """

    classes: FieldClasses
    names: Array
    method: str
    unknown: bool = False
    votes: tuple[Vote, ...] = ()
    sharpness: float = 1.0
    accuracy: float | None = None
    plain_accuracy: float | None = None

    @property
    def needs_rows(self) -> bool:
        """Whether probabilities depend on the rows themselves, besides their activities."""
        return any(isinstance(vote.classes, LinearClasses) for vote in self.votes)

    @property
    def needs_activities(self) -> bool:
        """Whether probabilities depend on the activities of rows."""
        return not self.votes or any(isinstance(vote.classes, FieldClasses) for vote in self.votes)

    def posterior(self, activities: sparse.csr_array | None, X: Matrix | None = None) -> Array:
        """Return the probabilities of the classes for rows, N x K; see `needs_activities` and `needs_rows`."""
        if not self.votes:
            assert activities is not None
            return self.classes.posterior(activities)
        parts = []
        for vote in self.votes:
            if isinstance(vote.classes, LinearClasses):
                assert X is not None
                t = vote.classes.posterior(device_of(X).array(X) if is_tensor(X) else X)
            else:
                assert activities is not None
                t = vote.classes.posterior(activities)
            parts.append(vote.share * t)
        return sharpened(np.sum(parts, axis=0), self.sharpness)

    @property
    def n_known(self) -> int:
        """Number of classes that have labels."""
        return self.classes.n_classes - self.unknown


@dataclass(frozen=True, eq=False)
class ClassifierModel:
    """A learned classifier, or its first layer while there are no labels.

    Attributes
    ----------
    mixtures : tuple of MixtureModel
        The first layer: one mixture, or a committee.
    layer : SecondLayer or None
        None if there are no labels yet.
    recurrent : bool
        Whether the second layer acts on the first.
    rows : StoredRows or None
        None if the training rows are not stored.
    label : (N,) array of int32 or None
        Class numbers of the stored rows, -1 for unlabeled.
    inferred : (N, K) array of float32 or None
        Probabilities of the classes for the stored rows, where these depend on more than the activities.
    """

    mixtures: tuple[MixtureModel, ...]
    layer: SecondLayer | None = None
    recurrent: bool = False
    rows: StoredRows | None = None
    label: Array | None = None
    inferred: Array | None = None

    @property
    def n_features(self) -> int:
        return self.mixtures[0].n_features

    @property
    def sizes(self) -> list[int]:
        """Number of fields of each mixture."""
        return [mixture.n_fields for mixture in self.mixtures]

    def without_labels(self) -> Self:
        """Return the same first layer and rows, without a second layer."""
        label = None if self.rows is None else np.full(len(self.rows), -1, np.int32)
        return replace(self, layer=None, label=label, inferred=None)

    def renamed(self, names: Array) -> Self:
        """Return the same model with new class names."""
        assert self.layer is not None
        return replace(self, layer=replace(self.layer, names=names))

    def activities_of(self, X: Matrix, n_threads: int) -> sparse.csr_array:
        """Return the activities of checked rows."""
        prior = self.layer.classes.prior(None) if self.recurrent and self.layer is not None else None
        return activate(self.mixtures, X, n_threads, prior)

    def posterior(self, X: Matrix, n_threads: int) -> Array:
        """Return the probabilities of the classes for checked rows, N x K."""
        assert self.layer is not None
        activities = self.activities_of(X, n_threads) if self.layer.needs_activities else None
        return self.layer.posterior(activities, X)

    @cached_property
    def label_distributions(self) -> Array:
        """Probabilities of the classes for the stored rows; labeled rows have their label."""
        assert self.rows is not None
        assert self.label is not None
        assert self.layer is not None
        if self.inferred is not None:
            t = self.inferred.astype(np.float64)
        else:
            t = self.layer.posterior(self.rows.activities)
        labeled = self.label >= 0
        t[labeled] = np.eye(self.layer.classes.n_classes)[self.label[labeled]]
        return t

    @cached_property
    def best(self) -> Array:
        """The index of the most probable class of each stored row."""
        return np.asarray(np.argmax(self.label_distributions, axis=1))

    @property
    def transduction(self) -> Array:
        """The most probable class of each stored row."""
        assert self.layer is not None
        return np.asarray(self.layer.names[self.best])

    @property
    def unknown_share(self) -> float:
        """Share of the stored rows that belong to unknown classes."""
        assert self.layer is not None
        assert self.rows is not None
        return float(np.average(self.best >= self.layer.n_known, weights=self.rows.weight))


def activate(
    mixtures: Sequence[MixtureModel],
    X: Matrix,
    n_threads: int,
    prior: Prior | None = None,
) -> sparse.csr_array:
    """Return the activities of checked rows in all mixtures, side by side."""
    members = [mixture.with_threads(n_threads) for mixture in mixtures]
    return side_by_side([m.activate(X, prior)[1].to_csr(m.n_fields) for m in members])


def side_by_side(activities: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """Concatenate the activities of all mixtures; rows sum to 1."""
    if len(activities) == 1:
        return activities[0]
    joined: sparse.csr_array = sparse.hstack(activities, format="csr")
    joined.data /= len(activities)
    return joined
