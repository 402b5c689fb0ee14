"""Signs that a result should not be trusted, as sentences for people."""

from __future__ import annotations

import numpy as np

from tnesi.model.classifier_model import ClassifierModel
from tnesi.types import Array

_LIKELY_WRONG = 0.4
"""Expected share of errors from which a result is doubtful."""
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
    if model.rows is not None and model.label is not None:
        shares = class_shares(model)
        most = int(shares.argmax())
        if dominates(shares, most, model.label):
            name = "unknown" if most >= layer.n_known else layer.names[most]
            found.append(
                f"{100 * shares[most]:.0f} % of the rows became {str(name)!r}, far more than of the labels. Check some "
                "of them, and label those that are wrong."
            )
    return found


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
