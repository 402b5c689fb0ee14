"""Naive Bayes from a few labeled and many unlabeled rows, by expectation maximization (Nigam et al. 2000)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

Array = npt.NDArray[Any]


class NaiveBayes(NamedTuple):
    """Multinomial naive Bayes: ln p(k), of shape (K,), and ln p(d | k), of shape (K, D)."""

    classes: Array
    log_prior: Array
    log_shares: Array

    def predict_proba(self, X: Any) -> Array:
        return np.asarray(softmax(X @ self.log_shares.T + self.log_prior, axis=1))

    def predict(self, X: Any) -> Array:
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])


def naive_bayes_em(X: Any, y: Array, iterations: int = 20) -> NaiveBayes:
    """Learn from rows of which some are labeled (y >= 0).

    The first step learns from the labeled rows, with add-one smoothing, as all others do from the posteriors of all
    rows, in which labeled rows have their class.
    """
    classes, labeled = np.unique(y[y >= 0]), y >= 0
    known = (y[labeled, None] == classes).astype(float)
    model = _maximize(X[labeled], known, classes)
    for _ in range(iterations):
        posterior = model.predict_proba(X)
        posterior[labeled] = known
        model = _maximize(X, posterior, classes)
    return model


def _maximize(X: Any, posterior: Array, classes: Array) -> NaiveBayes:
    sums = np.asarray((X.T @ posterior).T) + 1
    return NaiveBayes(
        classes,
        np.log(posterior.sum(axis=0)) - np.log(len(posterior)),
        np.log(sums) - np.log(sums.sum(axis=1, keepdims=True)),
    )
