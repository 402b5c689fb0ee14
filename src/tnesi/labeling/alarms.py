"""Signs that a result should not be trusted, as sentences for people."""

from __future__ import annotations

import numpy as np

from tnesi.model.classifier_model import ClassifierModel
from tnesi.types import Array

_LIKELY_WRONG = 0.4
"""Expected share of errors from which a result is doubtful."""
_CONTRADICTED, _CLEARLY, _FEWEST, _NAMED = 0.15, 0.8, 2, 3
"""Labels are suspicious if more than this share of them are contradicted by predictions with a probability of 0.8, and
at least two. Three of them are named."""
_DOMINANT, _ODDS = 0.6, 3.0
"""A class dominates if it takes more than this share of the rows, with odds this many times those of its labels.

Odds rather than shares are compared because a share cannot exceed 1: with two or three classes, no class can have three
times its share of the labels.
"""


def alarms(model: ClassifierModel) -> list[str]:
    """Return warnings about a learned classifier, the most serious first; none where it looks sound."""
    layer = model.layer
    if layer is None:
        return []
    found = []
    if layer.accuracy is not None and 1 - layer.accuracy > _LIKELY_WRONG:
        percent = f"{100 * (1 - layer.accuracy):.0f} %"
        if model.label is not None and np.bincount(model.label[model.label >= 0]).max() > 1:
            found.append(
                f"About {percent} of the predictions are probably wrong: labels are often predicted wrongly from the "
                "others. Label more rows, or use data that tell the classes apart."
            )
        else:
            found.append(
                f"Up to about {percent} of the predictions may be wrong: with so few labels, several methods disagree. "
                "Label more rows."
            )
    if layer.plain_accuracy is not None:
        found.append(
            "A plain classifier seems better: logistic regression on the labeled rows alone predicts clearly more of "
            f'the held-out labels correctly ({100 * layer.plain_accuracy:.0f} %). Use labeling="logistic".'
        )
    if model.rows is not None and model.label is not None:
        points = contradicted(model)
        n_labels = np.count_nonzero(model.label >= 0)
        if points.size >= _FEWEST and points.size > _CONTRADICTED * n_labels:
            some = ", ".join(str(row) for row in model.rows.numbers[points[:_NAMED]])
            found.append(
                f"{points.size} of {n_labels} labels contradict confident predictions from similar rows (for example "
                f"row {some}). Check them. If they are right, the clusters of the data are not your classes."
            )
        shares = class_shares(model)
        most = int(shares.argmax())
        if dominates(shares, most, model.label):
            name = "unknown" if most >= layer.n_known else layer.names[most]
            found.append(
                f"{100 * shares[most]:.0f} % of the rows became {str(name)!r}, far more than of the labels. Check some "
                "of them, and label those that are wrong."
            )
    return found


def contradicted(model: ClassifierModel) -> Array:
    """Return the labeled rows that are clearly predicted as another class, if their own label does not decide."""
    assert model.rows is not None
    assert model.label is not None
    assert model.layer is not None
    points = np.flatnonzero(model.label >= 0)
    t = model.layer.posterior(model.rows.activities[points]) if model.inferred is None else model.inferred[points]
    return np.asarray(points[(t.argmax(axis=1) != model.label[points]) & (t.max(axis=1) >= _CLEARLY)])


def class_shares(model: ClassifierModel) -> Array:
    """Return the share of each class in the predictions of the stored rows."""
    assert model.rows is not None
    assert model.layer is not None
    count = np.bincount(model.best, model.rows.weight, len(model.layer.names))
    return np.asarray(count / count.sum())


def dominates(shares: Array, k: int, label: Array) -> bool:
    """Return whether class `k` takes suspiciously more rows than its labels suggest."""
    if shares[k] <= _DOMINANT:
        return False
    given = float(np.mean(label[label >= 0] == k))
    return bool(shares[k] * (1 - given) > _ODDS * given * (1 - shares[k]))
