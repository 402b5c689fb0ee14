"""What became of the labels, in words: for the command line and the page."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.types import Array

DOUBTFUL = 0.8
"""Classes with a lower confidence may have been confused."""
METHODS = {
    "clusters": "The labels name clusters that were found without labels (clusters).",
    "spreading": "Unlabeled rows got the class of similar rows (spreading).",
    "self-labeling": "Unlabeled rows labeled themselves where the classifier was sure (self-labeling).",
    "supervised": "The classes were learned from labeled rows only (supervised).",
    "": "The classes were learned from labeled rows only, as learning was interrupted.",
}
_MOST_DOUBTS = 5


class Doubt(NamedTuple):
    """Two classes that may have each other's rows, and the confidence that they have not."""

    name: Any
    rival: Any
    confidence: float


def doubts(model: SimpletronClassifier) -> list[Doubt]:
    """Return the pairs of classes that may be confused, the most doubtful first; none where that is not known.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> doubts(SimpletronClassifier(random_state=0).fit(X, y))
    []
    """
    found: dict[frozenset[Any], Doubt] = {}
    if hasattr(model.settle(), "label_confidence_"):
        names, rivals = model.classes_.tolist(), model.label_rivals_.tolist()
        for k in np.argsort(model.label_confidence_, kind="stable"):
            doubt = Doubt(names[k], rivals[k], float(model.label_confidence_[k]))
            if doubt.confidence < DOUBTFUL:
                found.setdefault(frozenset(doubt[:2]), doubt)
    return list(found.values())


def class_names(model: SimpletronClassifier) -> list[str]:
    """Return what the classes are called; the one of unknown classes, which is the last, by that name."""
    names = [str(name) for name in model.settle().classes_.tolist()]
    return [*names[:-1], "unknown"] if model.has_unknown_class_ else names


def class_shares(model: SimpletronClassifier) -> Array | None:
    """Return the shares of the classes in the training rows, as they are predicted; None where these are not known."""
    if not hasattr(model.settle(), "label_distributions_"):
        return None
    best = model.label_distributions_.argmax(axis=1)
    rows = model.model_.rows
    count = np.bincount(best, None if rows is None else rows.weight, len(model.classes_))
    return np.asarray(count / count.sum())


def second_layer_lines(model: SimpletronClassifier) -> list[str]:
    """Say how the second layer was learned, how large the classes are, and what is doubtful."""
    said = [METHODS[model.settle().labeling_]]
    shares = class_shares(model)
    if shares is not None:
        names, low, high = class_names(model), int(shares.argmin()), int(shares.argmax())
        ends = [f"{100 * shares[k]:.1f} % of the rows ({names[k]})" for k in (low, high)]
        said.append(f"The smallest class has {ends[0]}, the largest {ends[1]}.")
    if model.has_unknown_class_ and hasattr(model, "unknown_share_"):
        said.append(f"{100 * model.unknown_share_:.1f} % of the rows are of unknown classes.")
    found = doubts(model)
    said += [
        f"Class {name} may be confused with {rival} (confidence {sure:.2f}): label one more row of each."
        for name, rival, sure in found[:_MOST_DOUBTS]
    ]
    if len(found) > _MOST_DOUBTS:
        said.append(f"{len(found) - _MOST_DOUBTS} more pairs of classes may be confused.")
    return said
