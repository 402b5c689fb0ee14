"""Labels left out in turn, to see how well the others predict them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tnesi.types import Array

_ROUNDS = 3
_ENOUGH = 200
"""Labels per class of which a third, left out once, tells enough."""
_BEFORE = 10
"""What is expected of a method before a label has tested it counts like so many labels of each class."""
_MANY = 50
"""Labels per class with which chance must not decide, and from which those who learn from labels are believed."""


@dataclass(frozen=True)
class LeftOut:
    """A set of labels, divided into a few parts with labels of all classes.

    Attributes
    ----------
    all : (N,) array of int32
        Labels of all points, -1 for none.
    points, label : (L,) arrays
        The labeled points and their classes.
    part : (L,) array
        In which round a label is left out; -1 is never: it is the only one of its class, or others tell enough.
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
        for k in np.flatnonzero(count > 1):
            mine = np.flatnonzero(given == k)
            part[mine] = rng.permutation(mine.size) % n_rounds
        if given.size >= _ENOUGH * n_classes:
            part[part > 0] = -1
        return cls(label, n_classes, points, given, part)

    def rounds(self) -> list[tuple[Array, Array]]:
        """Return for each round which labels are left out, and which are not."""
        return [(self.part == f, self.part != f) for f in range(self.part.max() + 1)]

    def expected(self, right: Array, before: float) -> float:
        """Return the expected accuracy; what was believed before counts like one label of each class."""
        tested = self.part >= 0
        return float((right[tested].sum() + self.n_classes * before) / (tested.sum() + self.n_classes))

    def worth(self, share: Array) -> Array:
        """Return how much each label counts (1 on the average) where classes have the given shares of the data.

        Labels are often not a fair sample: as many of every class, or mostly of those that are hard to tell apart.
        """
        out = (share / np.maximum(np.bincount(self.label, minlength=self.n_classes), 1))[self.label]
        return np.asarray(out / out.mean())

    def prefers(self, first: Array, first_trust: float, second: Array, second_trust: float) -> bool:
        """Return whether a method that uses the labels for names only is better than one that learns from them.

        The more labels there are, the surer that has to be: all of them teach the other method more than a part.
        """
        gain = first.sum() - second.sum() + _BEFORE * self.n_classes * (first_trust - second_trust)
        per_class = self.label.size / self.n_classes
        sure = per_class / _MANY * max(1.0, per_class / _MANY)
        return bool(gain > sure * np.sqrt(np.sum(first != second)))
