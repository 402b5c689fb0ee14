"""VectorEncoder: signed vectors, such as embeddings, as rows of non-negative numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tnesi.encoders.moments import Moments
from tnesi.encoders.states import new_state, parameters_of
from tnesi.types import Array

AUTO_SHARE, AUTO_LEAST = 0.6, 16
"""The share of the variance and the minimum number of directions that "auto" keeps."""
MOST_DIMENSIONS = 4096
"""Vectors with more dimensions are not rotated, because the covariance matrix would be large."""


class VectorEncoder(TransformerMixin, BaseEstimator):
    """Encode signed vectors, such as the embeddings of a pretrained model, as rows of non-negative numbers.

    Vectors are centered and rotated to their principal directions. Those with most of the variance are kept, each
    as two features: its positive and its negative part. Rows are scaled to unit length, since the meaning of an
    embedding is in its direction.

    Parameters
    ----------
    n_directions : int, float, "auto" or None, default="auto"
        Number of principal directions to keep, or, below 1, the share of the variance to explain. "auto" means 0.6, but
        at least 16 directions. None keeps all dimensions without rotation.
    center : bool, default=True
        Whether to subtract the mean.

    Attributes
    ----------
    mean_ : ndarray of float64 of shape (`n_features_in_`,)
        The mean, or zeros without centering.
    directions_ : ndarray of float64 of shape (`n_directions_`, `n_features_in_`) or None
        Orthonormal rows; None without rotation.
    n_directions_ : int
        Number of directions. There are twice as many features.
    n_samples_seen_ : int
        Number of vectors learned from.
    messages_ : list of str
        Choices of `fit`.
    n_features_in_ : int
        Number of dimensions.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the dimensions, if all of them are strings.

    Notes
    -----
    `partial_fit` adds up moments, so its memory does not depend on the number of vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from tnesi.encoders import VectorEncoder
    >>> vectors = np.array([[3.0, 0.0], [1.0, 0.0], [2.0, 1.0], [2.0, -1.0]])
    >>> VectorEncoder(n_directions=None).fit_transform(vectors)
    array([[1., 0., 0., 0.],
           [0., 0., 1., 0.],
           [0., 1., 0., 0.],
           [0., 0., 0., 1.]], dtype=float32)
    """

    def __init__(self, *, n_directions: float | Literal["auto"] | None = "auto", center: bool = True) -> None:
        self.n_directions = n_directions
        self.center = center

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the mean and the principal directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors: an array, a data frame of numbers, or a column (pandas, polars, Arrow) whose entries are lists.
        y : ignored

        Returns
        -------
        self : VectorEncoder
        """
        return self._learn(X, None)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a block of vectors, after those of earlier calls.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        y : ignored

        Returns
        -------
        self : VectorEncoder
        """
        moments = getattr(self, "_moments", None)
        if moments is None and hasattr(self, "mean_"):
            raise ValueError("An encoder from a file has no moments to add to: fit a new one.")
        return self._learn(X, moments)

    def _learn(self, X: Any, moments: Moments | None) -> Self:
        self._check_parameters()
        vectors = self._vectors(X, reset=moments is None)
        n_dimensions = vectors.shape[1]
        rotate = self.n_directions is not None and n_dimensions <= MOST_DIMENSIONS
        moments = moments or Moments(n_dimensions, covariances=rotate)
        moments.add(vectors)
        self._moments = moments
        self.n_samples_seen_ = moments.n
        self.mean_ = moments.mean if self.center else np.zeros(n_dimensions)
        self.directions_ = None
        self.n_directions_ = n_dimensions
        if rotate:
            variances, directions = moments.principal_directions(self.mean_)
            self.n_directions_ = self._how_many(variances)
            self.directions_ = directions[: self.n_directions_]
        self.messages_: list[str] = []
        if self.n_directions is not None and not rotate:
            self.messages_.append(
                f"The vectors have {n_dimensions} dimensions, more than {MOST_DIMENSIONS}: they are not rotated."
            )
        return self

    def transform(self, X: Any) -> Array:
        """Return the rows of vectors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        rows : ndarray of float32 of shape (n_samples, 2 * `n_directions_`)
            The positive parts, then the negative ones. A vector equal to the mean is a zero row.
        """
        check_is_fitted(self, "mean_")
        given = self._vectors(X, reset=False)
        # empty documents have vectors of zeros
        vectors = np.where(np.any(given != 0, axis=1, keepdims=True), given - self.mean_, 0)
        if self.directions_ is not None:
            vectors = vectors @ self.directions_.T
        # divide by the largest entry first, so that squares neither overflow nor underflow
        largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
        vectors = vectors / np.where(largest > 0, largest, 1)
        length = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        vectors = vectors / np.where(length > 0, length, 1)
        rows = np.empty((len(vectors), 2 * vectors.shape[1]), np.float32)
        np.maximum(vectors, 0, out=rows[:, : vectors.shape[1]], casting="same_kind")
        np.maximum(-vectors, 0, out=rows[:, vectors.shape[1] :], casting="same_kind")
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features: ``direction0+``, ..., ``direction0-``, ... or those of the dimensions.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self, "mean_")
        if self.directions_ is not None:
            names = [f"direction{i}" for i in range(self.n_directions_)]
        else:
            names = list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_directions_)]))
        return np.array([f"{name}{sign}" for sign in "+-" for name in names], dtype=object)

    def get_state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values and NumPy arrays, for :meth:`from_state`."""
        check_is_fitted(self, "mean_")
        names = getattr(self, "feature_names_in_", None)
        return new_state("VectorEncoder", self.get_params(deep=False)) | {
            "mean": self.mean_,
            "directions": self.directions_,
            "n_samples_seen": self.n_samples_seen_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "messages": list(self.messages_),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the encoder whose state :meth:`get_state` returned. It cannot learn more."""
        encoder = cls(**parameters_of(state, "VectorEncoder"))
        encoder.mean_ = np.asarray(state["mean"], np.float64)
        encoder.n_features_in_ = encoder.n_directions_ = len(encoder.mean_)
        encoder.directions_ = None
        if state["directions"] is not None:
            encoder.directions_ = np.asarray(state["directions"], np.float64)
            if encoder.directions_.ndim != 2 or encoder.directions_.shape[1] != len(encoder.mean_):
                raise ValueError("The state of this VectorEncoder is damaged: its directions do not fit its mean.")
            encoder.n_directions_ = len(encoder.directions_)
        encoder.n_samples_seen_ = int(state["n_samples_seen"])
        encoder.messages_ = [str(message) for message in state["messages"]]
        if state["feature_names_in"] is not None:
            encoder.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
        return encoder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _check_parameters(self) -> None:
        wanted = self.n_directions
        if wanted is not None and wanted != "auto" and (isinstance(wanted, str) or not wanted > 0):
            raise ValueError(f"n_directions={wanted!r}: give a positive number, 'auto' or None.")

    def _vectors(self, X: Any, *, reset: bool) -> Array:
        return np.asarray(validate_data(self, unnested(X), reset=reset, dtype=np.float64))

    def _how_many(self, variances: Array) -> int:
        """Return the number of directions to keep, given their variances in descending order."""
        total, most = variances.sum(), len(variances)
        if not total > 0:
            return 1
        wanted = AUTO_SHARE if self.n_directions == "auto" else float(self.n_directions or most)
        if wanted < 1:
            wanted = 1 + float(np.searchsorted(np.cumsum(variances) / total, wanted))
        if self.n_directions == "auto":
            wanted = max(wanted, AUTO_LEAST)
        return min(most, int(wanted))


def unnested(X: Any) -> Any:
    """Return a column of lists, or columns by name, as a 2-D array, and anything else as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> unnested(pd.Series([[1, 2], [3, 4]]))
    array([[1., 2.],
           [3., 4.]])
    """
    if sparse.issparse(X):
        return X
    if isinstance(X, dict):  # the columns of a table by name
        return np.column_stack([*X.values()])
    column = X
    names = getattr(X, "columns", None) if type(X).__module__.partition(".")[0] in ("pandas", "polars") else None
    if names is None:
        names = getattr(X, "column_names", None)
    if names is not None:
        if len(names) != 1:
            return X.to_pandas() if hasattr(X, "column_names") else X
        column = X[names[0]]
    if hasattr(column, "to_pylist"):
        values = column.to_pylist()
    elif type(column).__module__.partition(".")[0] in ("pandas", "polars"):
        values = column.to_list()
    elif isinstance(column, np.ndarray) and column.dtype == object and column.ndim == 1:
        values = column.tolist()
    else:
        return X
    if not len(values) or not isinstance(values[0], (list, tuple, np.ndarray)):
        return X
    lengths = {row: len(value) if value is not None and np.ndim(value) == 1 else 0 for row, value in enumerate(values)}
    wrong = [row for row, length in lengths.items() if length != lengths[0]]
    if wrong:
        raise ValueError(
            f"Vector {wrong[0]} has {lengths[wrong[0]]} numbers and vector 0 has {lengths[0]}: all need the same."
        )
    return np.array(values, dtype=np.float64)
