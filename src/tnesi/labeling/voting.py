"""A vote of several ways to learn from labels, which is never far from the best of them.

Where classes are clusters, naming clusters and labels that lead need one label per class. Where they are not, these two
are far off, and spreading or plain logistic regression are better. Which case it is cannot be seen from one label per
class, and a wrong choice is expensive. Therefore all four vote.

The accuracy of each way is estimated from the labels that it predicts when they are held out. Before there are such
labels, it is the share of rows on which a way agrees with the others. Probabilities are sharpened until their mean is
this accuracy a, and averaged with weights (a / (1 - a))^2. The more labels there are, the more these weights follow the
probabilities of held-out labels.

Logistic regression itself is a vote of several forms, weighted by the likelihoods of held-out labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from tnesi.labeling.calibration import sharpness_for
from tnesi.labeling.features import Features
from tnesi.labeling.labeler import TRUST, Labeler, class_shares
from tnesi.labeling.left_out import LeftOut
from tnesi.labeling.logistic import FORMS
from tnesi.model.classes import FieldClasses, sharpened
from tnesi.model.classifier_model import Vote
from tnesi.model.linear_classes import LinearClasses, transformed
from tnesi.model.rows import Matrix
from tnesi.types import Array

Learn = Callable[[Array, Array, int], LinearClasses]
"""Learns linear classes from labeled rows, their classes, and the number of classes."""

_BEFORE = {"clusters": -1.0, "spreading": 1.0, "leading": 0.0, "logistic": 0.5, "supervised": 0.0}
"""Prior log odds of the accuracy of each way, added to those of the agreement: spreading is the most dependable."""
_LEAST, _MOST = 0.05, 0.99
"""Range of estimated accuracies."""
_CLEAR_ROWS = 1000
"""Rows from which the agreement of several runs shows that the data are clustered. Runs agree on few rows by chance."""
_SAME = 0.9
"""The share of rows on which spreading must agree with named clusters, for these to be trusted without more labels."""
_AGREEMENT = (-2.1, 1.3, 0.7)
"""How the accuracy of the vote depends on agreement: constant, slope, and factor of log(K / 2), all in log odds."""
_BELIEF = 8
"""Least weight of this accuracy, in labels. It is off by about ten points."""
_STEADY = 10.0
"""Weight of the shares that accuracies suggest, against the probabilities of held-out labels, in labels per class."""
_STACKING_STEPS = 50
_SURPRISE = 1e-3
"""Least probability of a held-out label, so that no single label decides."""
_CLEARLY_BETTER = 2.5
"""Logistic regression predicts clearly more held-out labels if their number exceeds this many standard deviations."""
_FAINT, _FAINT_FORM = 0.01, 0.05
"""A vote, or a form of logistic regression, with a smaller share is left out."""
_FEW_LABELS = 500
"""Up to this number of labels, all held-out ones choose between the forms; of more, those of the first round."""
_POWERS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.7, 8.0)
"""Forms of logistic regression are compared at the sharpness that suits each of them."""


@dataclass(frozen=True, eq=False)
class Member:
    """Classes learned from all labels, and how they predict held-out ones.

    Attributes
    ----------
    classes : FieldClasses or LinearClasses
    held : (L, K) array
        Probabilities of the classes for the labeled rows, learned without their labels. Rows of labels that are never
        held out are not used.
    sample : (S, K) array
        Probabilities for a sample of the rows, from all labels.
    share : float
        Its share of the vote of its way.
    """

    classes: FieldClasses | LinearClasses
    held: Array
    sample: Array
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Trial:
    """What one way has learned.

    Attributes
    ----------
    method : {"clusters", "spreading", "leading", "logistic", "supervised"}
    members : sequence of Member
        Their shares sum to 1.
    """

    method: str
    members: Sequence[Member]

    @property
    def held(self) -> Array:
        return np.asarray(sum(one.share * one.held for one in self.members))

    @property
    def sample(self) -> Array:
        return np.asarray(sum(one.share * one.sample for one in self.members))


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
    plain_accuracy : float or None
        Share of held-out labels that logistic regression predicts, if clearly more than the vote does.
    """

    votes: tuple[Vote, ...]
    sharpness: float
    accuracy: float
    n_tested: int
    agreement: float
    plain_accuracy: float | None = None


def vote(labeler: Labeler, features: Features, label: Array, n_classes: int) -> Voted:
    """Learn from labels (-1 for none) in all ways, and combine them."""
    test = LeftOut.of(label, n_classes, labeler.seed)
    rows, near = labeler.sample
    sampled = features.store.take(rows)
    if test.points.size == label.size:
        trials, clustered = [_average(labeler, test, near)], 0.0
    else:
        of_sample = transformed(sampled, "shares")
        trials = [_name(labeler, test, near), _spread(labeler, test, near)]
        trials.append(_lead(features, test, of_sample, labeler.n_threads))
        clustered = labeler.clusters(n_classes).agreement
    trials.append(regress(features, test, sampled, labeler.n_threads))
    return _combine(trials, test, clustered, label.size)


def _name(labeler: Labeler, test: LeftOut, near: sparse.csr_array) -> Trial:
    classes = labeler.name(test.all, test.n_classes)
    held = np.eye(test.n_classes)[labeler.name_left_out(test)]
    return Trial("clusters", [Member(classes, held, classes.posterior(near))])


def _spread(labeler: Labeler, test: LeftOut, near: sparse.csr_array) -> Trial:
    classes, held = labeler.spread(test)
    return Trial("spreading", [Member(classes, held, classes.posterior(near))])


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
    return Trial("supervised", [Member(classes, held, classes.posterior(near))])


def _lead(features: Features, test: LeftOut, of_sample: Matrix, n_threads: int) -> Trial:
    used = [np.ones(test.points.size, bool), *(rest for _, rest in test.rounds())]
    with ThreadPoolExecutor(n_threads) as pool:
        classes, *of_rounds = pool.map(partial(_learn, features.lead, test), used)
    held = np.zeros((test.points.size, test.n_classes))
    for (out, _), found in zip(test.rounds(), of_rounds, strict=True):
        held[out] = found.posterior(features.store.take(test.points[out]))
    return Trial("leading", [Member(classes, held, classes.posterior_of(of_sample))])


def regress(features: Features, test: LeftOut, sampled: Matrix, n_threads: int) -> Trial:
    """Learn all forms of logistic regression; those that predict held-out labels become members."""
    rounds = test.rounds()
    held = np.zeros((len(FORMS), test.points.size, test.n_classes))

    def learn(task: tuple[int, Array]) -> LinearClasses:
        form, used = task
        return _learn(partial(features.regress, form=FORMS[form]), test, used)

    def hold_out(forms: Sequence[int], some: Sequence[tuple[Array, Array]]) -> None:
        places = [(form, out) for form in forms for out, _ in some]
        learned = pool.map(learn, [(form, rest) for form in forms for _, rest in some])
        for (form, out), one in zip(places, learned, strict=True):
            held[form, out] = one.posterior(features.store.take(test.points[out]))

    for form in FORMS:
        features.scale(form)  # is kept for all rounds
    share = np.full(len(FORMS), 1 / len(FORMS))
    with ThreadPoolExecutor(n_threads) as pool:
        n_first = 1 if test.points.size > _FEW_LABELS else len(rounds)
        hold_out(range(len(FORMS)), rounds[:n_first])
        if rounds:
            tested = (test.part >= 0) & (test.part < n_first)
            share = _shares_of_forms(held[:, tested], test.label[tested])
        kept = [form for form in range(len(FORMS)) if share[form] > 0]
        hold_out(kept, rounds[n_first:])
        found = pool.map(learn, [(form, np.ones(test.points.size, bool)) for form in kept])
        members = [
            Member(one, held[form], one.posterior_of(transformed(sampled, one.transform)), float(share[form]))
            for form, one in zip(kept, found, strict=True)
        ]
    return Trial("logistic", members)


def _learn(learn: Learn, test: LeftOut, used: Array) -> LinearClasses:
    return learn(test.points[used], test.label[used], test.n_classes)


def _shares_of_forms(held: Array, label: Array) -> Array:
    """Return shares proportional to the likelihoods of held-out labels (F x L x K), each at its best sharpness."""
    place = np.arange(label.size), label
    fit = np.array(
        [max(np.log(np.maximum(sharpened(one, power)[place], _SURPRISE)).sum() for power in _POWERS) for one in held]
    )
    share = np.exp(fit - fit.max())
    share /= share.sum()
    share[share < _FAINT_FORM] = 0
    return np.asarray(share / share.sum())


def _combine(trials: Sequence[Trial], test: LeftOut, agreement: float, n_rows: int) -> Voted:
    pairs = _agreements(trials)
    others = (pairs.sum(axis=1) - 1) / (len(trials) - 1)
    bias = np.array([_BEFORE[trial.method] for trial in trials])
    before = expit(logit(np.clip(others, _LEAST / 2, 1 - _LEAST / 2)) + bias)
    believed = _believed(pairs, test.n_classes)
    if agreement > TRUST and n_rows >= _CLEAR_ROWS and pairs[0, 1] > _SAME:
        before[0] = believed = agreement
    accuracy = np.clip(
        [test.expected(_right(trial.held, test), a) for trial, a in zip(trials, before, strict=True)], _LEAST, _MOST
    )
    calibrated = [_calibrated(trial, a) for trial, a in zip(trials, accuracy, strict=True)]
    share = _shares(accuracy, [trial.held for trial in calibrated], test)
    sample, held = (
        np.sum([x * part for x, part in zip(share, parts, strict=True)], axis=0)
        for parts in ([trial.sample for trial in calibrated], [trial.held for trial in calibrated])
    )
    right = _right(held, test) * test.worth(class_shares(sample.argmax(axis=1), test.n_classes))
    expected = float(np.clip(test.expected(right, believed, _BELIEF), _LEAST, _MOST))
    votes = [
        Vote(trial.method, float(x * one.share), one.classes)
        for trial, x in zip(calibrated, share, strict=True)
        for one in trial.members
        if x > 0
    ]
    return Voted(
        votes=tuple(sorted(votes, key=lambda one: -one.share)),
        sharpness=sharpness_for(sample, expected),
        accuracy=expected,
        n_tested=int(np.count_nonzero(test.part >= 0)),
        agreement=float(pairs[~np.eye(len(trials), dtype=bool)].mean()),
        plain_accuracy=plain_accuracy(trials[-1], _right(held, test), test),
    )


def plain_accuracy(logistic: Trial, right: Array, test: LeftOut) -> float | None:
    """Return the share of held-out labels that logistic regression predicts, if clearly more than are `right`."""
    plain = _right(logistic.held, test)
    differ = np.count_nonzero(plain != right)
    gain = np.count_nonzero(plain) - np.count_nonzero(right)
    if gain <= _CLEARLY_BETTER * np.sqrt(differ):
        return None
    return float(plain[test.part >= 0].mean())


def _calibrated(trial: Trial, accuracy: float) -> Trial:
    """Return the same with probabilities whose mean is the accuracy; held-out labels that clusters name have theirs."""

    def calibrated(one: Member) -> Member:
        power = sharpness_for(one.sample, accuracy)
        named = trial.method == "clusters"
        held = accuracy * one.held + (1 - accuracy) / one.held.shape[1] if named else sharpened(one.held, power)
        return Member(one.classes.sharpened(power), held, sharpened(one.sample, power), one.share)

    return Trial(trial.method, [calibrated(one) for one in trial.members])


def _shares(accuracy: Array, held: Sequence[Array], test: LeftOut) -> Array:
    """Return the shares of the votes: from accuracies, and with many labels from the probabilities of held-out ones.

    The shares w maximize sum_l log sum_i w_i t_i(l) + 10 K sum_i v_i log w_i, by EM, where v are those of accuracies.
    """
    odds = (accuracy / (1 - accuracy)) ** 2
    share = first = odds / odds.sum()
    tested = np.flatnonzero(test.part >= 0)
    if tested.size:
        steady = _STEADY * test.n_classes
        of_label = np.maximum([t[tested, test.label[tested]] for t in held], _SURPRISE)
        for _ in range(_STACKING_STEPS):
            credit = share[:, None] * of_label
            credit /= credit.sum(axis=0)
            share = (steady * first + credit.sum(axis=1)) / (steady + tested.size)
    share = np.where(share < _FAINT, 0, share)
    return np.asarray(share / share.sum())


def _right(held: Array, test: LeftOut) -> Array:
    return np.asarray((held.argmax(axis=1) == test.label) & (test.part >= 0))


def _agreements(trials: Sequence[Trial]) -> Array:
    """Return the shares of the sample on which two ways predict the same class."""
    best = [trial.sample.argmax(axis=1) for trial in trials]
    return np.array([[np.mean(one == other) for other in best] for one in best])


def _believed(pairs: Array, n_classes: int) -> float:
    """Return the accuracy of the vote that the agreement of its ways suggests.

    Two ways that agree are mostly right, and a third that does not agree says little against them. Agreement with many
    classes is better evidence than with two, on which ways that follow the same clusters agree easily.
    """
    chance = 1 / n_classes
    most = float(pairs[~np.eye(len(pairs), dtype=bool)].max())
    above = np.clip((most - chance) / (1 - chance), 0.02, 0.98)
    constant, slope, of_classes = _AGREEMENT
    skill = expit(constant + slope * logit(above) + of_classes * np.log(n_classes / 2))
    return float(chance + (1 - chance) * skill)
