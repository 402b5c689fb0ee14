"""Describe the classes of a model in words, for the command line and the page."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.labeling.alarms import alarms
from tnesi.labeling.alarms import class_shares as shares_of_rows
from tnesi.types import Array

DOUBTFUL = 0.8
"""Classes with a lower confidence may be swapped."""
METHODS = {
    "vote": "Several methods vote on the class of a row.",
    "clusters": "The labels name clusters of similar rows (clusters).",
    "spreading": "Unlabeled rows got the class of similar rows (spreading).",
    "leading": "The labels led the search for one cluster per class (leading).",
    "logistic": "The classes were learned from labeled rows only, by logistic regression (logistic).",
    "self-labeling": "Unlabeled rows with a clear prediction were labeled with it (self-labeling).",
    "supervised": "The classes were learned from labeled rows only (supervised).",
    "": "The classes were learned from labeled rows only because learning was interrupted.",
}
_MOST_DOUBTS = 5


class Doubt(NamedTuple):
    """Two classes that may be swapped, and the confidence that they are not."""

    name: Any
    rival: Any
    confidence: float


def doubts(model: SimpletronClassifier) -> list[Doubt]:
    """Return the pairs of classes that may be swapped, most doubtful first; none if unknown.

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
    """Return the names of the classes; the last one is "unknown" if the model has an unknown class."""
    names = [str(name) for name in model.settle().classes_.tolist()]
    return [*names[:-1], "unknown"] if model.has_unknown_class_ else names


def class_shares(model: SimpletronClassifier) -> Array | None:
    """Return the share of each class in the predictions of the training rows; None without stored rows."""
    if not hasattr(model.settle(), "label_distributions_"):
        return None
    return shares_of_rows(model.model_)


def second_layer_lines(model: SimpletronClassifier, *, with_alarms: bool = True) -> list[str]:
    """Describe how the second layer was learned, the class sizes, doubtful classes, and what is alarming."""
    said = [METHODS[model.settle().labeling_]]
    if votes := model.votes_:
        parts = (f"{name} {100 * share:.0f} %" for name, share in votes.items())
        said = [f"{METHODS['vote'][:-1]}: {', '.join(parts)}."] if len(votes) > 1 else said
    shares = class_shares(model)
    if shares is not None:
        names, low, high = class_names(model), int(shares.argmin()), int(shares.argmax())
        ends = [f"{100 * shares[k]:.1f} % of the rows ({names[k]})" for k in (low, high)]
        same = shares[low] == shares[high]
        said.append(
            "All classes have the same size." if same else f"The smallest class has {ends[0]}, the largest {ends[1]}."
        )
    if model.expected_accuracy_ is not None:
        said.append(f"Expected error: about {100 * (1 - model.expected_accuracy_):.0f} %.")  # not known more precisely
    if with_alarms:
        said += [f"Warning: {alarm}" for alarm in alarms(model.model_)]
    if model.has_unknown_class_ and hasattr(model, "unknown_share_"):
        said.append(f"{100 * model.unknown_share_:.1f} % of the rows belong to unknown classes.")
    found = doubts(model)
    said += [
        f"{name} and {rival} may be swapped (confidence {sure:.2f}): label one more row of each."
        for name, rival, sure in found[:_MOST_DOUBTS]
    ]
    if len(found) > _MOST_DOUBTS:
        said.append(f"{len(found) - _MOST_DOUBTS} more pairs of classes may be swapped.")
    return said
