"""TableEncoder: tables with columns of any type, as rows of non-negative numbers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tnesi.data.readers.mixed import distinct
from tnesi.encoders.column_codes import CategoryCode, ColumnCode, NumberCode, TextCode, code_from_state
from tnesi.encoders.column_kinds import KINDS, Kind, Recognized, recognize
from tnesi.encoders.columns import Column, Table, read_table
from tnesi.encoders.row_sample import RowSample
from tnesi.encoders.states import new_state, parameters_of
from tnesi.types import Array

Rows = Array | sparse.csr_array

_DENSE_FEATURES = 1_000
"""Rows with more features are sparse by default."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table: numbers in any unit, categories, times, texts and missing values.

    Every column adds 1 to the sum of a row, whatever its unit. Numbers and times become weights of soft bins and of two
    scales; categories and missing values become levels. Columns of sentences are encoded by :class:`TextEncoder`.
    Columns without information (identifiers, constant columns) are dropped, with a warning.

    Texts count as numbers or times where nearly all of a column are, also as spreadsheets write them: "1.234,50 €",
    "45 %", "31.12.2024".

    Parameters
    ----------
    n_bins : int, default=5
        Number of soft bins of a number. A column with fewer distinct values has a bin for each of them.
    max_levels : int, default=50
        Largest number of levels of a category. The others count as one level, "rare".
    min_count : int or "auto", default="auto"
        Minimum number of rows for a category to have its own level. "auto" is 2 for at least 20 rows, else 1.
    kinds : dict or None, default=None
        Types of columns by name, instead of those that are recognized: "number", "time", "category", "text" or "drop".
    sample_size : int, default=50000
        Maximum number of rows to learn from; of more rows, a random sample is used.
    sparse_output : bool or "auto", default="auto"
        Whether rows are a CSR array. "auto" means with a column of texts or more than 1,000 features.
    random_state : int, default=0
        Seeds the sample.

    Attributes
    ----------
    kinds_ : dict
        Type of each column, "drop" for dropped ones.
    messages_ : list of str
        Choices and warnings of `fit`, which also issues them as warnings.
    n_samples_seen_ : int
        Number of rows seen during fit.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where the table has names.

    Notes
    -----
    A level has a third of a category's weight. The rest is distributed in the proportions of all rows, so that a
    category has about as much influence as a number. Categories that did not occur during fit count as rare; without a
    rare level they get these proportions only, as do missing values in a column that had none. Infinite numbers belong
    to the outermost bin.

    Examples
    --------
    >>> import pandas as pd
    >>> from tnesi.encoders import TableEncoder
    >>> table = pd.DataFrame({"age": [20, 40, 60, None], "job": ["clerk", "nurse", "clerk", "nurse"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age~20', 'age~40', 'age~60', 'age=missing', 'job=clerk', 'job=nurse']
    >>> encoder.transform(pd.DataFrame({"age": [20], "job": ["nurse"]})).round(2)
    array([[0.51, 0.16, 0.16, 0.16, 0.32, 0.68]], dtype=float32)
    """

    def __init__(
        self,
        *,
        n_bins: int = 5,
        max_levels: int = 50,
        min_count: int | Literal["auto"] = "auto",
        kinds: Mapping[str, Kind] | None = None,
        sample_size: int = 50_000,
        sparse_output: bool | Literal["auto"] = "auto",
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.max_levels = max_levels
        self.min_count = min_count
        self.kinds = kinds
        self.sample_size = sample_size
        self.sparse_output = sparse_output
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Recognize the types of the columns and learn how to encode them.

        Parameters
        ----------
        X : table
            A data frame of pandas or polars, an Arrow table, a dict of columns, a structured or a 2-D array.
        y : ignored

        Returns
        -------
        self : TableEncoder
        """
        self._check_parameters()
        return self._learn(self._extended(None, X))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a block of rows and from a sample of those of earlier calls.

        Parameters
        ----------
        X : table
            Rows with the same columns in each call.
        y : ignored

        Returns
        -------
        self : TableEncoder
        """
        sample = getattr(self, "_sample", None)
        if sample is None and hasattr(self, "kinds_"):
            raise ValueError("An encoder from a file has no sample of rows to add to: fit a new one.")
        self._check_parameters()
        return self._learn(self._extended(sample, X))

    def fit_blocks(self, blocks: Iterable[Any]) -> Self:
        """Learn from the rows of a stream in constant memory, as `fit` does from a table.

        Unlike `partial_fit`, it learns only once, after the last block.

        Parameters
        ----------
        blocks : iterable of tables
            Blocks of rows with the same columns.

        Returns
        -------
        self : TableEncoder
        """
        self._check_parameters()
        sample = None
        for block in blocks:
            sample = self._extended(sample, block)
        if sample is None:
            raise ValueError("Found array with 0 sample(s): there are no blocks to learn from.")
        return self._learn(sample)

    def _extended(self, sample: RowSample | None, block: Any) -> RowSample:
        """Return the sample with the rows of a block, or a new one of these."""
        table = _read(block)
        if sample is None:
            self._check_kinds(table)
            sample = RowSample(self.sample_size, self.random_state)
        sample = copy.copy(sample)  # if the block cannot be learned from, the earlier rows are as they were
        sample.add(table)
        return sample

    def _learn(self, sample: RowSample) -> Self:
        table = sample.rows
        codes, kinds, messages = self._learn_codes(table)
        self._sample, self._codes, self.kinds_, self.messages_ = sample, codes, kinds, messages
        self.n_samples_seen_ = sample.n_seen
        self.n_features_in_ = len(table.columns)
        if table.named:
            self.feature_names_in_ = np.array([column.name for column in table.columns], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for message in messages:
            warnings.warn(message, UserWarning, stacklevel=3)
        return self

    def transform(self, X: Any) -> Rows:
        """Return the rows of a table.

        Parameters
        ----------
        X : table
            Must have the columns seen during fit, in any order; others are ignored. An array must have as many columns.

        Returns
        -------
        rows : ndarray or csr_array of float32 of shape (n_rows, n_features_out)
        """
        check_is_fitted(self, "kinds_")
        table = _read(X)
        columns = self._columns(table)
        encoded = [code.encode(columns[code.name]) for code in self._codes]
        for _, message in encoded:
            if message:
                warnings.warn(message, UserWarning, stacklevel=2)
        parts = [part for part, _ in encoded]
        if self._is_sparse():
            return sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in parts], format="csr"))
        return np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features: ``age~40`` is a bin around 40, ``job=clerk`` a category.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self, "kinds_")
        return np.array(distinct([name for code in self._codes for name in code.names]), dtype=object)

    def get_state(self) -> dict[str, Any]:
        """Return the fitted state as JSON values and NumPy arrays, for :meth:`from_state`."""
        check_is_fitted(self, "kinds_")
        parameters = self.get_params(deep=False)
        parameters["kinds"] = None if self.kinds is None else dict(self.kinds)
        names = getattr(self, "feature_names_in_", None)
        return new_state("TableEncoder", parameters) | {
            "columns": [code.get_state() for code in self._codes],
            "kinds": dict(self.kinds_),
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else names.tolist(),
            "n_samples_seen": self.n_samples_seen_,
            "messages": list(self.messages_),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the encoder whose state :meth:`get_state` returned. It cannot learn more."""
        encoder = cls(**parameters_of(state, "TableEncoder"))
        encoder._codes = [code_from_state(one) for one in state["columns"]]
        encoder.kinds_ = {str(name): str(kind) for name, kind in state["kinds"].items()}
        encoder.n_features_in_ = int(state["n_features_in"])
        if state["feature_names_in"] is not None:
            encoder.feature_names_in_ = np.array([str(name) for name in state["feature_names_in"]], dtype=object)
        encoder.n_samples_seen_ = int(state["n_samples_seen"])
        encoder.messages_ = [str(message) for message in state["messages"]]
        return encoder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _check_parameters(self) -> None:
        for name, least in (("n_bins", 2), ("max_levels", 1), ("sample_size", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)!r}: at least {least} is needed.")

    def _check_kinds(self, table: Table) -> None:
        names = {column.name for column in table.columns}
        for name, kind in (self.kinds or {}).items():
            if name not in names:
                raise ValueError(f"`kinds` names a column {name!r}, which the table does not have.")
            if kind not in KINDS:
                raise ValueError(f"`kinds` says {kind!r} of column {name!r}: choose one of {', '.join(KINDS)}.")

    def _learn_codes(self, table: Table) -> tuple[list[ColumnCode], dict[str, str], list[str]]:
        codes: list[ColumnCode] = []
        kinds: dict[str, str] = {}
        messages = []
        for column in table.columns:
            found = recognize(column, (self.kinds or {}).get(column.name))
            kinds[column.name] = found.kind
            if found.message:
                messages.append(found.message)
            if found.kind != "drop":
                codes.append(self._code(found, table.n_rows))
                messages += _about_infinite(found.column)
        if not codes:
            raise ValueError(
                "The table has no column to learn from: each is constant, empty or an identifier "
                f"(n_samples = {table.n_rows}; 1 sample or 1 value for all rows is not enough)."
            )
        return codes, kinds, messages

    def _code(self, found: Recognized, n_rows: int) -> ColumnCode:
        if found.kind == "text":
            return TextCode.learn(found.column)
        if found.kind == "category":
            min_count = (2 if n_rows >= 20 else 1) if self.min_count == "auto" else self.min_count
            return CategoryCode.learn(found.column, self.max_levels, min_count)
        return NumberCode.learn(found.column, self.n_bins, found.style)

    def _is_sparse(self) -> bool:
        if self.sparse_output != "auto":
            return bool(self.sparse_output)
        n_features = sum(len(code.names) for code in self._codes)
        return n_features > _DENSE_FEATURES or any(code.kind == "text" for code in self._codes)

    def _columns(self, table: Table) -> dict[str, Column]:
        """Return the columns by the names that they had during fit."""
        given = {column.name: column for column in table.columns}
        names: Array | None = getattr(self, "feature_names_in_", None)
        if names is not None and table.named:
            needed = {code.name for code in self._codes}
            lacking = [name for name in names if name in needed and name not in given]
            if lacking:
                listed = ", ".join(repr(name) for name in lacking[:10]) + (", ..." if len(lacking) > 10 else "")
                raise ValueError(
                    f"The table lacks {'column' if len(lacking) == 1 else 'columns'} {listed}, on which the encoder "
                    "was fitted: pass a table of the same kind."
                )
            return given
        if len(table.columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(table.columns)} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        if names is not None and not table.named:
            warnings.warn(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names",
                UserWarning,
                stacklevel=3,
            )
        order = [f"x{i}" for i in range(self.n_features_in_)] if names is None else names.tolist()
        return {name: Column(name, c.values, c.missing) for name, c in zip(order, table.columns, strict=True)}


def _read(X: Any) -> Table:
    table = read_table(X)
    if not table.columns:
        shape = (table.n_rows, 0)
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required: no columns.")
    if not table.n_rows:
        shape = (0, len(table.columns))
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required: no rows.")
    return table


def _about_infinite(column: Column) -> list[str]:
    if column.values.dtype.kind != "f":
        return []
    rows = np.flatnonzero(np.isinf(column.values) & ~column.missing)
    if not len(rows):
        return []
    count = "one infinite value" if len(rows) == 1 else f"{len(rows)} infinite values"
    return [f"Column {column.name!r} has {count} (first: row {rows[0]}), counted as the largest or smallest number."]
