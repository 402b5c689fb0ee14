"""The second layer: K classes, R_kc = p(field c | class k), learned from labels and self-labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse

from tnesi import kernels
from tnesi.model.fields import Prior
from tnesi.types import Array

_LOG_FLOOR = 1e-30
_LEAST_MASS = 1e-3
_CHUNK = 2**16


@dataclass
class FieldClasses:
    """Classes as weights of the fields, in the layout of the kernels: C x Kp, padded with zeros.

    Attributes
    ----------
    r : (C, Kp) array of float32
    n_classes : int
    sizes : (K,) array or None
        p(k), the weights of the classes; None is the published model, whose classes have equal size.
    sharpness : float
        Probabilities are raised to this power and renormalized.
    """

    r: Array
    n_classes: int
    sizes: Array | None = None
    sharpness: float = 1.0

    @classmethod
    def from_weights(cls, weights: Array, sizes: Array | None = None, sharpness: float = 1.0) -> FieldClasses:
        """Return the layer with the given R, K x C."""
        n_classes, n_fields = weights.shape
        r = np.zeros((n_fields, kernels.padded(n_classes)), np.float32)
        r[:, :n_classes] = weights.T
        return cls(r, n_classes, sizes, sharpness)

    @classmethod
    def from_shares(cls, shares: Array, mass: Array) -> FieldClasses:
        """Return the layer whose p(k | c) are the given shares (C x K, normalized here) of fields with the given mass.

        A field without shares belongs to no class.
        """
        joint = normalized(shares) * mass[:, None]
        sizes = joint.sum(axis=0)
        weights = np.divide(joint, sizes, out=np.zeros_like(joint), where=sizes > 0)
        return cls.from_weights(weights.T, sizes / sizes.sum())

    @classmethod
    def even(cls, n_fields: int, n_classes: int) -> FieldClasses:
        """Return the published initialization: every weight is 1 / C."""
        return cls.from_weights(np.full((n_classes, n_fields), 1 / n_fields))

    @classmethod
    def average(
        cls, activities: sparse.csr_array, taught: Array, weight: Array | None, n_classes: int, *, sized: bool = False
    ) -> FieldClasses:
        """Return R_k = mean of s over the rows that `taught` assigns to class k: the limit of the online rule.

        The weights of a class without rows are 0. With `sized` the layer stores the class sizes.
        """
        points = taught >= 0
        mass = np.bincount(taught[points], None if weight is None else weight[points], n_classes).astype(np.float64)
        values = activities.data if weight is None else activities.data * np.repeat(weight, np.diff(activities.indptr))
        joint = sums_by_class(activities, values, taught, n_classes)
        layer = cls.from_weights(np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0).T)
        if sized:
            layer.measure_sizes(taught, weight)
        return layer

    def measure_sizes(self, taught: Array, weight: Array | None) -> None:
        """Set the sizes of the classes to their shares of the rows in `taught`."""
        points = taught >= 0
        mass = np.bincount(taught[points], None if weight is None else weight[points], self.n_classes) + _LEAST_MASS
        self.sizes = mass / mass.sum()

    def __len__(self) -> int:
        return int(self.r.shape[0])

    @property
    def weights(self) -> Array:
        """R, K x C."""
        return np.ascontiguousarray(self.r[:, : self.n_classes].T)

    def learn_epoch(
        self,
        activities: sparse.csr_array,
        label: Array,
        weight: Array | None,
        order: Array,
        *,
        batch_size: int,
        rate: float,
        threshold: float,
        self_label: bool,
        n_threads: int = 1,
    ) -> Array:
        """Learn from the rows in `order`, changing R in place; return the labels used (-1: none)."""
        taught = np.full(label.size, -1, np.int32)
        kernels.learn_classes(
            activities.indptr.astype(np.int64, copy=False),
            activities.indices.astype(np.int32, copy=False),
            activities.data,
            label,
            weight,
            order,
            batch_size,
            rate,
            threshold,
            self_label,
            None if self.sizes is None else self.sizes.astype(np.float32),
            self.r,
            self.n_classes,
            taught,
            n_threads,
        )
        return taught

    def posterior(self, activities: sparse.csr_array) -> Array:
        """Return t (N x K, rows sum to 1).

        Fields without weights contribute nothing; a row with no other fields gets 1 / K for each class.
        """
        r = self.r[:, : self.n_classes].astype(np.float64)
        if self.sizes is not None:
            r *= self.sizes
        r = normalized(r)
        t = np.empty((activities.shape[0], self.n_classes))
        for start in range(0, len(t), _CHUNK):  # SciPy copies the activities in double precision
            place = slice(start, start + _CHUNK)
            t[place] = (activities if len(t) <= _CHUNK else activities[place]) @ r
        return sharpened(t, self.sharpness)

    def at(self, place: Array, n_classes: int) -> Self:
        """Return the same classes at the given places among `n_classes`; the weights of the others are 0."""
        weights = np.zeros((n_classes, len(self)), np.float32)
        weights[place] = self.weights
        sizes = None
        if self.sizes is not None:
            sizes = np.zeros(n_classes)
            sizes[place] = self.sizes
        padded = FieldClasses.from_weights(weights)
        return replace(self, r=padded.r, n_classes=n_classes, sizes=sizes)

    def sharpened(self, power: float) -> Self:
        """Return the layer whose probabilities are those of this one, raised to a power and renormalized."""
        return replace(self, sharpness=power * self.sharpness)

    def prior_table(self) -> Array:
        """Return the log prior of the fields: log sum_k R_kc without a label (row 0), log R_lc for label l."""
        r = self.weights.astype(np.float64)
        table: Array = np.log(np.maximum(np.vstack([r.sum(axis=0, keepdims=True), r]), _LOG_FLOOR))
        return table.astype(np.float32)

    def prior(self, label: Array | None) -> Prior:
        """Return the prior for rows with the given labels (-1: none), or for unlabeled rows (None)."""
        return Prior(self.prior_table(), None if label is None else (label + 1).astype(np.int32))


def sharpened(t: Array, power: float) -> Array:
    """Return probabilities raised to a power and renormalized; rows of zeros become even.

    Examples
    --------
    >>> sharpened(np.array([[0.75, 0.25], [0.0, 0.0]]), 2).round(2).tolist()
    [[0.9, 0.1], [0.5, 0.5]]
    """
    if power != 1:
        t = (t / np.maximum(t.max(axis=1, keepdims=True), _LOG_FLOOR)) ** power
    mass = t.sum(axis=1, keepdims=True)
    out: Array = np.divide(t, mass, out=np.full_like(t, 1 / t.shape[1]), where=mass > 0)
    return out


def normalized(shares: Array) -> Array:
    """Return rows that sum to 1; rows of zeros stay zero."""
    total = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(shares, total, out=np.zeros_like(shares), where=total > 0))


def sums_by_class(activities: sparse.csr_array, values: Array | None, place: Array, n_classes: int) -> Array:
    """Return sums over the rows of each class, per field (C x K), of one value for each activity (None: 1).

    Rows with a place of -1 are ignored.
    """
    n_rows, n_fields = activities.shape
    each = np.where(place < 0, n_classes, place)
    n_bins = n_fields * (n_classes + 1)
    sums = np.zeros(n_bins, np.int64 if values is None else np.float64)
    for start in range(0, n_rows, _CHUNK):  # limits the size of NumPy's copies
        indptr = activities.indptr[start : start + _CHUNK + 1]
        own = slice(indptr[0], indptr[-1])
        at = activities.indices[own] * np.int64(n_classes + 1)
        at += np.repeat(each[start : start + _CHUNK], np.diff(indptr))
        if values is None:
            sums += np.bincount(at, minlength=n_bins)
        elif start == 0:
            sums = np.bincount(at, values[own], n_bins)
        else:  # continue from the sums so far, so that the order of addition is that of a single pass
            sums = np.bincount(np.concatenate([np.arange(n_bins), at]), np.concatenate([sums, values[own]]))
    out: Array = sums.reshape(n_fields, n_classes + 1)[:, :n_classes]
    return out


def margins(t: Array) -> Array:
    """Return the margin of each row: the difference of its two largest probabilities."""
    second, first = np.partition(t, -2, axis=1)[:, -2:].T
    return np.asarray(first - second)
