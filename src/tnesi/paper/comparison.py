"""Compare the default classifier with those of scikit-learn on the same labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from threadpoolctl import threadpool_limits

from tnesi.data import Data, few_labels
from tnesi.errors import DoubtfulResultWarning, InvalidParameterError
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.paper.statistics import Summary
from tnesi.system.progress import Progress
from tnesi.types import Array

__all__ = ["compare"]


OURS = "tnesi"
_DRAWS_PER_MIXTURE = 5


def compare(
    data: Data, labels_per_class: Sequence[int] = (1, 2, 5, 10), draws: int = 10, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Return the test error of `SimpletronClassifier` and three classifiers of scikit-learn, all with default settings.

    Parameters
    ----------
    data : Data
        Dense rows with integer labels and a test part. scikit-learn's classifiers get the features scaled to at most 1.
    labels_per_class : sequence of int
        Numbers of labels to compare.
    draws : int
        Random draws of labels for each number, the same for all classifiers. Five draws share a first layer, which
        does not depend on labels.
    progress : Progress, optional
        Receives progress messages.

    Returns
    -------
    rows : list of dict
        For each method and number of labels the summary of the errors in percent, as `report.figures` draws it.
    """
    if data.test is None or data.y is None or data.test.y is None:
        raise InvalidParameterError(
            "{name} needs labels and a test part", advice="use a named data set", parameter="data", name=data.name
        )
    progress = progress or Progress()
    others = _others()
    progress.begin(len(labels_per_class) * draws * (1 + len(others)))
    scale = float(data.X.max())
    scaled, scaled_test = np.asarray(data.X / scale), np.asarray(data.test.X / scale)
    errors: dict[tuple[str, int], list[float]] = {(m, k): [] for m in (OURS, *others) for k in labels_per_class}
    for draw in range(draws):
        if draw % _DRAWS_PER_MIXTURE == 0:
            seed = draw // _DRAWS_PER_MIXTURE
            progress.tell(f"learning fields without labels ({seed + 1} of {-(-draws // _DRAWS_PER_MIXTURE)})")
            ours = SimpletronClassifier(random_state=seed).fit(data.X, np.full(len(data.y), -1))
        for k in labels_per_class:
            y = few_labels(data.y, k, np.random.default_rng([draw, k]))
            progress.tell(f"draw {draw + 1} of {draws}, {k} labels per class: {OURS}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DoubtfulResultWarning)  # the error is measured
                ours.fit_labels(y)
            errors[OURS, k].append(_error(ours.predict(data.test.X), data.test.y))
            progress.advance()
            for name, classifier in others.items():
                progress.tell(f"draw {draw + 1} of {draws}, {k} labels per class: {name}")
                rows = np.flatnonzero(y >= 0) if isinstance(classifier, LogisticRegression) else np.arange(len(y))
                with threadpool_limits(1):  # matrices are too small for more
                    predicted = classifier.fit(scaled[rows], y[rows]).predict(scaled_test)
                errors[name, k].append(_error(predicted, data.test.y))
                progress.advance()
    return [
        {"task": data.name, "method": method, "labels_per_class": k, "ours": asdict(Summary.of(found))}
        for (method, k), found in errors.items()
    ]


def _others() -> dict[str, ClassifierMixin]:
    return {
        "LogisticRegression": LogisticRegression(),  # of the labeled rows alone
        "SelfTrainingClassifier": SelfTrainingClassifier(LogisticRegression()),
        "LabelSpreading": LabelSpreading(),
    }


def _error(predicted: Array, truth: Array) -> float:
    return 100 * float(np.mean(predicted != truth))
