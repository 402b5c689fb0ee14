"""The second layer: K classes, R_kc = p(field c | class k), learned from labels and from its own confident guesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tnesi import kernels
from tnesi.layers.fields import Prior

Array = npt.NDArray[Any]
_LOG_FLOOR = 1e-30


@dataclass
class Classes:
    """Weights of the second layer, stored as the kernels want them: C x Kp, padded with zeros."""

    r: Array
    n_classes: int

    @classmethod
    def from_weights(cls, weights: Array) -> Classes:
        """Return the layer with the given R, K x C."""
        n_classes, n_fields = weights.shape
        r = np.zeros((n_fields, kernels.padded(n_classes)), np.float32)
        r[:, :n_classes] = weights.T
        return cls(r, n_classes)

    @classmethod
    def even(cls, n_fields: int, n_classes: int) -> Classes:
        """Return the published start: every class spread evenly, 1 / C."""
        return cls.from_weights(np.full((n_classes, n_fields), 1 / n_fields))

    @classmethod
    def average(cls, activities: sparse.csr_array, taught: Array, weight: Array | None, n_classes: int) -> Classes:
        """Return R_k = mean of s over the points that teach class k: what the online rule converges to."""
        points = np.flatnonzero(taught >= 0)
        w = np.ones(points.size) if weight is None else weight[points].astype(np.float64)
        teach = sparse.csr_array((w, (taught[points], points)), shape=(n_classes, taught.size))
        mass: Array = np.asarray(teach.sum(axis=1)).reshape(-1, 1)
        return cls.from_weights((teach @ activities.astype(np.float64)).toarray() / mass)

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
        """Go once over the points in `order`; return the labels that taught (-1: none). Changes R in place."""
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
            self.r,
            self.n_classes,
            taught,
            n_threads,
        )
        return taught

    def posterior(self, activities: sparse.csr_array) -> Array:
        """Return t (N x K, rows sum to 1).

        A field that no class has reached contributes nothing; a point with no other fields gets 1 / K each.
        """
        r = self.r[:, : self.n_classes].astype(np.float64)
        total = r.sum(axis=1, keepdims=True)
        share = np.divide(r, total, out=np.zeros_like(r), where=total > 0)
        t = np.asarray(activities @ share)
        mass = t.sum(axis=1, keepdims=True)
        out: Array = np.divide(t, mass, out=np.full_like(t, 1 / self.n_classes), where=mass > 0)
        return out

    def prior_table(self) -> Array:
        """Return what the fields hear from above: log sum_k R_kc for no label (row 0), log R_lc for label l."""
        r = self.weights.astype(np.float64)
        table: Array = np.log(np.maximum(np.vstack([r.sum(axis=0, keepdims=True), r]), _LOG_FLOOR))
        return table.astype(np.float32)

    def prior(self, label: Array | None) -> Prior:
        """Return the prior for points with the given labels (-1: none), or for unlabelled points (None)."""
        return Prior(self.prior_table(), None if label is None else (label + 1).astype(np.int32))
