"""A vote of several ways to learn from labels, which is never far from the best of them.

Where classes are clusters, naming clusters and labels that lead need one label per class. Where they are not, these two
are far off, and spreading or plain logistic regression are better. Which case it is cannot be seen from one label per
class, and a wrong choice is expensive. Therefore all four vote.

The accuracy of each way is estimated from the labels that it predicts when they are held out. Before there are such
labels, it is the share of rows on which a way agrees with the others. Probabilities are sharpened until their mean is
this accuracy a, and averaged with weights (a / (1 - a))^2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from tnesi.labeling.calibration import sharpness_for
from tnesi.labeling.features import Features
from tnesi.labeling.labeler import TRUST, Labeler, class_shares
from tnesi.labeling.left_out import LeftOut
from tnesi.model.classes import FieldClasses, sharpened
from tnesi.model.classifier_model import Vote
from tnesi.model.linear_classes import LinearClasses, Transform, transformed
from tnesi.model.rows import Matrix
from tnesi.types import Array

Learn = Callable[[Array, Array, int], LinearClasses]
"""Learns linear classes from labeled rows, their classes, and the number of classes."""

_BEFORE = {"clusters": -0.5, "spreading": 1.0, "leading": 0.0, "logistic": -0.5, "supervised": 0.0}
"""Prior log odds of the accuracy of each way, added to those of the agreement: spreading is the most dependable."""
_LEAST, _MOST = 0.05, 0.99
"""Range of estimated accuracies."""
_CLEAR_ROWS = 1000
"""Rows from which the agreement of several runs shows that the data are clustered. Runs agree on few rows by chance."""
_SAME = 0.9
"""The share of rows on which spreading must agree with named clusters, for these to be trusted without more labels."""
_FAINT = 0.01
"""A vote with a smaller share is left out."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What one way has learned from all labels, and how it predicts held-out ones.

    Attributes
    ----------
    method : {"clusters", "spreading", "leading", "logistic", "supervised"}
    classes : FieldClasses or LinearClasses
    held : (L, K) array
        Probabilities of the classes for the labeled rows, learned without their labels. Rows of labels that are never
        held out are not used.
    sample : (S, K) array
        Probabilities for a sample of the rows, from all labels.
    """

    method: str
    classes: FieldClasses | LinearClasses
    held: Array
    sample: Array


@dataclass(frozen=True, eq=False)
class Voted:
    """The votes, with the main one first, and what is known of the result.

    Attributes
    ----------
    votes : tuple of Vote
        Shares sum to 1.
    sharpness : float
        The power to which the average is raised.
    accuracy : float
        Estimated accuracy of the result.
    n_tested : int
        Held-out labels behind this estimate.
    agreement : float
        Mean share of rows on which two ways agree.
    """

    votes: tuple[Vote, ...]
    sharpness: float
    accuracy: float
    n_tested: int
    agreement: float


def vote(labeler: Labeler, features: Features, label: Array, n_classes: int) -> Voted:
    """Learn from labels (-1 for none) in all ways, and combine them."""
    test = LeftOut.of(label, n_classes, labeler.seed)
    rows, near = labeler.sample
    sampled = features.store.take(rows)
    linear: list[tuple[str, Learn, Transform]] = [
        ("leading", features.lead, "shares"),
        ("logistic", features.regress, "roots"),
    ]
    if test.points.size == label.size:
        trials, clustered, linear = [_average(labeler, test, near)], 0.0, linear[1:]
    else:
        trials = [_name(labeler, test, near), _spread(labeler, test, near)]
        clustered = labeler.clusters(n_classes).agreement
    for method, learn, kind in linear:
        trials.append(_learn_linear(method, learn, features, test, transformed(sampled, kind), labeler.n_threads))
    return _combine(trials, test, clustered, label.size)


def _name(labeler: Labeler, test: LeftOut, near: sparse.csr_array) -> Trial:
    classes = labeler.name(test.all, test.n_classes)
    held = np.eye(test.n_classes)[labeler.name_left_out(test)]
    return Trial("clusters", classes, held, classes.posterior(near))


def _spread(labeler: Labeler, test: LeftOut, near: sparse.csr_array) -> Trial:
    classes, held = labeler.spread(test)
    return Trial("spreading", classes, held, classes.posterior(near))


def _average(labeler: Labeler, test: LeftOut, near: sparse.csr_array) -> Trial:
    """Learn from rows that all have labels."""

    def learn(label: Array) -> FieldClasses:
        return FieldClasses.average(labeler.activities, label, labeler.weight, test.n_classes)

    held = np.zeros((test.points.size, test.n_classes))
    for out, _ in test.rounds():
        label = test.all.copy()
        label[test.points[out]] = -1
        held[out] = learn(label).posterior(labeler.activities[test.points[out]])
    classes = learn(test.all)
    return Trial("supervised", classes, held, classes.posterior(near))


def _learn_linear(
    method: str, learn: Learn, features: Features, test: LeftOut, sampled: Matrix, n_threads: int
) -> Trial:
    def fit(used: Array) -> LinearClasses:
        return learn(test.points[used], test.label[used], test.n_classes)

    rounds = test.rounds()
    with ThreadPoolExecutor(n_threads) as pool:
        classes, *of_rounds = pool.map(fit, [np.ones(test.points.size, bool), *(rest for _, rest in rounds)])
    held = np.zeros((test.points.size, test.n_classes))
    for (out, _), found in zip(rounds, of_rounds, strict=True):
        held[out] = found.posterior(features.store.take(test.points[out]))
    return Trial(method, classes, held, classes.posterior_of(sampled))


def _combine(trials: Sequence[Trial], test: LeftOut, agreement: float, n_rows: int) -> Voted:
    pairs = _agreements(trials)
    others = (pairs.sum(axis=1) - 1) / (len(trials) - 1)
    bias = np.array([_BEFORE[trial.method] for trial in trials])
    before = expit(logit(np.clip(others, _LEAST / 2, 1 - _LEAST / 2)) + bias)
    believed = _believed(others, test.n_classes)
    if agreement > TRUST and n_rows >= _CLEAR_ROWS and pairs[0, 1] > _SAME:
        before[0] = believed[0] = agreement
    accuracy = np.clip(
        [test.expected(_right(trial.held, test), a) for trial, a in zip(trials, before, strict=True)], _LEAST, _MOST
    )
    odds = (accuracy / (1 - accuracy)) ** 2
    share = np.where(odds < _FAINT * odds.sum(), 0, odds)
    share /= share.sum()
    powers = [sharpness_for(trial.sample, a) for trial, a in zip(trials, accuracy, strict=True)]
    each = list(zip(trials, share, powers, accuracy, strict=True))
    sample = np.sum([x * sharpened(trial.sample, power) for trial, x, power, _ in each], axis=0)
    held = np.sum([x * _held(trial, power, a) for trial, x, power, a in each], axis=0)
    right = _right(held, test) * test.worth(class_shares(sample.argmax(axis=1), test.n_classes))
    expected = float(np.clip(test.expected(right, float(share @ believed)), _LEAST, _MOST))
    votes = [Vote(trial.method, float(x), trial.classes.sharpened(power)) for trial, x, power, _ in each if x > 0]
    return Voted(
        votes=tuple(sorted(votes, key=lambda one: -one.share)),
        sharpness=sharpness_for(sample, expected),
        accuracy=expected,
        n_tested=int(np.count_nonzero(test.part >= 0)),
        agreement=float(pairs[~np.eye(len(trials), dtype=bool)].mean()),
    )


def _held(trial: Trial, power: float, accuracy: float) -> Array:
    """Return the sharpened probabilities of held-out labels; where clusters name them, they are those of the names."""
    if trial.method != "clusters":
        return sharpened(trial.held, power)
    return np.asarray(accuracy * trial.held + (1 - accuracy) / trial.held.shape[1])


def _right(held: Array, test: LeftOut) -> Array:
    return np.asarray((held.argmax(axis=1) == test.label) & (test.part >= 0))


def _agreements(trials: Sequence[Trial]) -> Array:
    """Return the shares of the sample on which two ways predict the same class."""
    best = [trial.sample.argmax(axis=1) for trial in trials]
    return np.array([[np.mean(one == other) for other in best] for one in best])


def _believed(agreement: Array, n_classes: int) -> Array:
    """Return the accuracy that an agreement with the other ways suggests.

    Ways that follow the same clusters agree even where these are not the classes, so what exceeds chance counts less.
    """
    chance = 1 / n_classes
    above = np.clip((agreement - chance) / (1 - chance), 0, 1)
    return np.asarray(chance + (1 - chance) * above**1.5)
