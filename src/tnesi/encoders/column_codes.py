"""Codes of columns, which map values to weights of a few levels; immutable.

Each code has ``names`` (one for each of its features) and ``encode(column)``, an (n_rows, len(names)) matrix whose
rows sum to 1. Unknown values have the mean weights. Rows of texts without known words are zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from tnesi.encoders.column_kinds import as_numbers, as_texts, as_times, most_frequent
from tnesi.encoders.columns import Column
from tnesi.encoders.soft_bins import positions, quantile_knots, soft_bins
from tnesi.encoders.text import TextEncoder
from tnesi.encoders.written_values import NUMBER_STYLES, TIME_STYLES
from tnesi.types import Array

BINS_SHARE = 0.2
"""Share of the bins in a number's weights. They are sharp, so the two smooth scales take the larger part."""
N_RANKS = 33
LEVEL_SHARPNESS = 0.35
"""Share of a level in the weights of a category; the rest is spread as the levels are among all rows.

One level alone would move a row several times farther than a number does, so that the categories would decide which
rows are similar. With this share a level counts about as much as a step from the low to the high numbers of a column.
"""


class ColumnCode(Protocol):
    """The interface of a code."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def names(self) -> list[str]: ...

    def encode(self, column: Column) -> tuple[Array | sparse.csr_array, str]:
        """Return the weights of the levels, and a sentence about values that do not fit (or "")."""
        ...

    def get_state(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class NumberCode:
    """A number or time: soft bins of its quantiles, and its position on two scales, by value and by rank.

    Bins distinguish groups of values; the scales make close values similar.

    Attributes
    ----------
    name : str
    knots : ndarray
        Knots of the bins, in the type of the column.
    ranks : ndarray
        Finer quantiles, for the rank; empty for a column of few distinct values, whose bins are levels.
    has_missing : bool
        Whether missing values have a level.
    mean : ndarray of float32
        Mean weights of the rows that it was learned from.
    style : str
        How texts are written that stand for numbers or times; see `tnesi.encoders.written_values`.
    """

    name: str
    knots: Array
    ranks: Array
    has_missing: bool
    mean: Array
    style: str = ""

    @property
    def kind(self) -> str:
        return "time" if self.knots.dtype.kind in "mM" else "number"

    @classmethod
    def learn(cls, column: Column, n_bins: int, style: str = "") -> NumberCode:
        present = column.values[~column.missing]
        if present.dtype.kind == "f":
            present = present[np.isfinite(present)]
            if not present.size:
                raise ValueError(f"Column {column.name!r} has infinite values only: leave it out.")
        knots = quantile_knots(present, n_bins)
        ranks = quantile_knots(present, N_RANKS)
        ranks = ranks if len(ranks) > n_bins else ranks[:0]
        code = cls(column.name, knots, ranks, bool(column.missing.any()), np.zeros(0, np.float32), style)
        return replace(code, mean=_mean(code._weights(column)))

    @property
    def names(self) -> list[str]:
        levels = [_short(knot) for knot in self.knots]
        if len(set(levels)) < len(levels):
            levels = [str(knot) for knot in self.knots.tolist()]
        if len(self.ranks):
            levels += ["low", "high", "low rank", "high rank"]
        return [f"{self.name}~{level}" for level in levels] + [f"{self.name}=missing"] * self.has_missing

    def encode(self, column: Column) -> tuple[Array, str]:
        typed, message = (as_times if self.kind == "time" else as_numbers)(column, self.style)
        if typed.missing.all() and not column.missing.all():
            raise ValueError(
                f"Column {self.name!r} held {self.kind}s when the encoder was fitted; none of its values is one now."
            )
        weights, known = self._weights(typed), ~typed.missing
        if len(self.ranks):
            weights[~known] = _blend(weights[~known], self.mean, self.has_missing)
            return weights, message
        return _blend(weights, self.mean, known | self.has_missing), message

    def _weights(self, typed: Column) -> Array:
        """Return the weights as they are learned from: missing values have their level alone, if there is one."""
        present = ~typed.missing
        values, knots, ranks = _comparable(typed.values[present], self.knots, self.ranks)
        parts = [soft_bins(positions(values, knots), len(knots))]
        if len(ranks):
            scale = soft_bins(positions(values, knots[[0, -1]]), 2)
            rank = soft_bins(positions(values, ranks) / (len(ranks) - 1), 2)
            parts = [BINS_SHARE * parts[0], (1 - BINS_SHARE) / 2 * scale, (1 - BINS_SHARE) / 2 * rank]
        found = np.hstack(parts)
        weights = np.zeros((len(typed), found.shape[1] + self.has_missing), np.float32)
        weights[present, : found.shape[1]] = found
        if self.has_missing:
            weights[typed.missing, -1] = 1
        return weights

    def get_state(self) -> dict[str, Any]:
        state = {"kind": self.kind, "name": self.name, "has_missing": self.has_missing}
        state |= {"unit": "", "mean": self.mean, "style": self.style}
        if self.kind == "number":
            return state | {"knots": self.knots, "ranks": self.ranks}
        ticks = {"knots": self.knots.view(np.int64), "ranks": self.ranks.view(np.int64)}
        return state | {"unit": self.knots.dtype.str[1:]} | ticks

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> NumberCode:
        knots, ranks = np.asarray(state["knots"]), np.asarray(state["ranks"])
        if state["kind"] == "time":
            knots, ranks = (ticks.astype(np.int64).view(state["unit"]) for ticks in (knots, ranks))
        mean, style = np.asarray(state["mean"], np.float32), state.get("style", "")
        if style not in ("", *(TIME_STYLES if state["kind"] == "time" else NUMBER_STYLES)):
            raise ValueError(f"Unknown style of a column {style!r}: upgrade tnesi.")
        return cls(str(state["name"]), knots, ranks, bool(state["has_missing"]), mean, style)


@dataclass(frozen=True)
class CategoryCode:
    """A category: one level each for those that occur often enough, one for all others.

    Attributes
    ----------
    name : str
    levels : tuple of str
    has_rare : bool
        Whether the others have a level.
    has_missing : bool
        Whether missing values have a level.
    mean : ndarray of float32
        Shares of the levels among the rows that it was learned from.
    """

    name: str
    levels: tuple[str, ...]
    has_rare: bool
    has_missing: bool
    mean: Array
    kind: str = "category"

    @classmethod
    def learn(cls, column: Column, max_levels: int, min_count: int) -> CategoryCode:
        texts = as_texts(column)
        values = texts.values[~texts.missing].tolist()
        levels = most_frequent(values, max_levels, min_count)
        has_rare = len(set(values)) > len(levels)
        code = cls(column.name, tuple(levels), has_rare, bool(texts.missing.any()), np.zeros(0, np.float32))
        return replace(code, mean=_mean(code._one_hot(code._levels_of(texts))))

    @property
    def names(self) -> list[str]:
        names = [f"{self.name}={level}" for level in self.levels]
        for present, extra in ((self.has_rare, "rare"), (self.has_missing, "missing")):
            if present:
                # a level of that name may exist
                names.append(next(n for n in (f"{self.name}={extra}", f"{self.name}=({extra})") if n not in names))
        return names

    @cached_property
    def _index(self) -> dict[str, int]:
        return {level: i for i, level in enumerate(self.levels)}

    def encode(self, column: Column) -> tuple[Array, str]:
        texts = as_texts(column)
        level = self._levels_of(texts)
        new = (level < 0) & ~texts.missing
        message = ""
        if len(new) and new.all():
            message = f"Column {self.name!r} has only categories that did not occur when the encoder was fitted."
        return _blend(self._one_hot(level), self.mean, level >= 0), message

    def _levels_of(self, texts: Column) -> Array:
        """Return the index of each row's level, -1 where it has none."""
        unknown = len(self.levels) if self.has_rare else -1
        level = np.array([self._index.get(value, unknown) for value in texts.values.tolist()], dtype=np.intp)
        level[texts.missing] = len(self.levels) + self.has_rare if self.has_missing else -1
        return level

    def _one_hot(self, level: Array) -> Array:
        weights = np.zeros((len(level), len(self.levels) + self.has_rare + self.has_missing), np.float32)
        known = np.flatnonzero(level >= 0)
        weights[known, level[known]] = 1
        return weights

    def get_state(self) -> dict[str, Any]:
        return asdict(self) | {"levels": list(self.levels)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> CategoryCode:
        levels = tuple(str(level) for level in state["levels"])
        mean = np.asarray(state["mean"], np.float32)
        return cls(str(state["name"]), levels, bool(state["has_rare"]), bool(state["has_missing"]), mean)


@dataclass(frozen=True)
class TextCode:
    """A column of sentences: the shares of their words."""

    name: str
    encoder: TextEncoder
    kind: str = "text"

    @classmethod
    def learn(cls, column: Column) -> TextCode:
        return cls(column.name, TextEncoder().fit(_documents(column)))

    @property
    def names(self) -> list[str]:
        return [f"{self.name}:{word}" for word in self.encoder.get_feature_names_out()]

    def encode(self, column: Column) -> tuple[sparse.csr_array, str]:
        rows = sparse.csr_array(self.encoder.transform(_documents(column)), copy=True)
        sums = np.asarray(rows.sum(axis=1), np.float64)
        rows.data /= np.repeat(np.where(sums > 0, sums, 1), np.diff(rows.indptr))
        return rows.astype(np.float32), ""

    def get_state(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "encoder": self.encoder.get_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TextCode:
        return cls(str(state["name"]), TextEncoder.from_state(state["encoder"]))


def code_from_state(state: Mapping[str, Any]) -> ColumnCode:
    match state["kind"]:
        case "number" | "time":
            return NumberCode.from_state(state)
        case "category":
            return CategoryCode.from_state(state)
        case "text":
            return TextCode.from_state(state)
    raise ValueError(f"Unknown kind of column {state['kind']!r}: upgrade tnesi.")


def _documents(column: Column) -> list[str]:
    return [str(value) for value in as_texts(column).values]


def _mean(weights: Array) -> Array:
    return np.asarray(weights.mean(axis=0, dtype=np.float64), np.float32)


def _blend(weights: Array, mean: Array, known: Array | bool) -> Array:
    """Return the mean with a share of the levels; rows that are not `known` get the mean alone."""
    share = np.float32(LEVEL_SHARPNESS) * np.broadcast_to(known, len(weights)).astype(np.float32)[:, None]
    return np.asarray(mean + share * (weights - mean), np.float32)


def _comparable(values: Array, *knots: Array) -> tuple[Array, ...]:
    """Return all in one type: integers where all are, ticks of the knots' unit for times, else float64."""
    kind = knots[0].dtype
    if kind.kind in "mM":
        return values.astype(kind).view(np.int64), *(each.view(np.int64) for each in knots)
    if values.dtype.kind in "iu" and kind.kind in "iu":
        if values.dtype.kind == kind.kind:
            return values, *knots
        # of int64 and uint64: what does not fit into the other is beyond its end
        own, others = np.iinfo(values.dtype), np.iinfo(kind)
        within = np.clip(values, max(own.min, others.min), min(own.max, others.max))
        return within.astype(kind), *knots
    return values.astype(np.float64), *(each.astype(np.float64) for each in knots)


def _short(knot: Any) -> str:
    if isinstance(knot, (np.datetime64, np.timedelta64)):
        return str(knot)
    return str(knot) if isinstance(knot, (int, np.integer)) else f"{knot:.4g}"
