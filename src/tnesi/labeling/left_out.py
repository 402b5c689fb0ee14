"""Cross-validation of labels: each is held out and predicted from the others.

If only one stretch of the rows has labels, those of consecutive rows are held out together. Consecutive rows are often
alike (digits by one writer, frames of one film), and methods that remember them would look better than they are for the
rest of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tnesi.types import Array

_ROUNDS = 3
_STRETCH = 0.5
"""Labels are in one stretch if they span less than this share of the rows."""
_ENOUGH, _MANY_IN_ALL = 200, 1000
"""Labels per class, and in all, from which one round of cross-validation is enough."""
_BEFORE = 10
"""Weight of the prior accuracy of a method, in labels per class."""
_MANY = 50
"""Labels per class from which clusters must be significantly better to be preferred."""


@dataclass(frozen=True)
class LeftOut:
    """Labels divided into a few stratified parts.

    Attributes
    ----------
    all : (N,) array of int32
        Labels of all rows, -1 for none.
    points, label : (L,) arrays
        The labeled rows and their classes.
    part : (L,) array
        The round in which each label is held out. -1 means never: it is the only one of its class, or one round is
        enough.
    """

    all: Array
    n_classes: int
    points: Array
    label: Array
    part: Array

    @classmethod
    def of(cls, label: Array, n_classes: int, seed: int) -> LeftOut:
        points = np.flatnonzero(label >= 0)
        given = label[points]
        count = np.bincount(given, minlength=n_classes)
        n_rounds = int(min(_ROUNDS, count[count > 1].min(initial=_ROUNDS)))
        part = np.full(given.size, -1)
        rng = np.random.default_rng(seed)
        in_one_stretch = np.ptp(points) < _STRETCH * label.size
        for k in np.flatnonzero(count > 1):
            mine = np.flatnonzero(given == k)
            if in_one_stretch:
                part[mine[::-1]] = np.arange(mine.size) * n_rounds // mine.size  # the first round has the last rows
            else:
                part[mine] = rng.permutation(mine.size) % n_rounds
        if given.size >= min(_ENOUGH * n_classes, _MANY_IN_ALL):
            part[part > 0] = -1
        return cls(label, n_classes, points, given, part)

    def rounds(self) -> list[tuple[Array, Array]]:
        """Return for each round which labels are held out, and which are used."""
        return [(self.part == f, self.part != f) for f in range(self.part.max() + 1)]

    def expected(self, right: Array, before: float, least: int = 0) -> float:
        """Return the expected accuracy; the prior accuracy counts like one label per class, or `least` labels."""
        tested, weight = self.part >= 0, max(self.n_classes, least)
        return float((right[tested].sum() + weight * before) / (tested.sum() + weight))

    def worth(self, share: Array) -> Array:
        """Return the weight of each label (1 on average) if classes have the given shares of the data.

        Labels are often not a representative sample: balanced over the classes, or mostly of confusable ones.
        """
        out = (share / np.maximum(np.bincount(self.label, minlength=self.n_classes), 1))[self.label]
        return np.asarray(out / out.mean())

    def prefers(self, first: Array, first_trust: float, second: Array, second_trust: float) -> bool:
        """Return whether a method that only names clusters is better than one that learns from the labels.

        The required significance grows with the number of labels, since the second method improves with all of them.
        """
        gain = first.sum() - second.sum() + _BEFORE * self.n_classes * (first_trust - second_trust)
        per_class = self.label.size / self.n_classes
        sure = per_class / _MANY * max(1.0, per_class / _MANY)
        return bool(gain > sure * np.sqrt(np.sum(first != second)))
