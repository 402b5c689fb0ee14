"""The methods of the peers benchmark: tnesi, and what people would use otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from naive_bayes import naive_bayes_em
from peers_graph import Neighbors, neighbor_rows, neighbors
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from tnesi import SimpletronClassifier

Array = npt.NDArray[Any]

OURS = "tnesi"
LOGISTIC = "logistic regression"
LARGE = 20_000
"""With more rows, draws of labels share what can be learned without labels, and slow methods get fewer draws."""
DRAWS_PER_MIXTURE = 5
SELF_TRAINING_ROWS = 5_000
"""Unlabeled rows that self-training gets at most: it fits a classifier to all of them in each iteration."""


@dataclass(frozen=True)
class Task:
    """One draw of labels.

    Attributes
    ----------
    X, X_test : array or csr_array
        The rows; without a test part, `X_test` is None.
    y : (N,) array
        Classes of the labeled rows, -1 for the others.
    class_sizes : (K,) array
        True shares of the classes, for the methods that use them.
    draw : int
    graph_file : Path
        Where the neighbors of these features are kept.
    """

    X: Any
    X_test: Any
    y: Array
    class_sizes: Array
    draw: int
    graph_file: Path

    @property
    def labeled(self) -> Array:
        return self.y >= 0

    @property
    def asked(self) -> Any:
        """The rows to predict: those of the test part, or the unlabeled ones."""
        return self.X[~self.labeled] if self.X_test is None else self.X_test

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng((self.draw, len(self.y)))


class Prediction(NamedTuple):
    """Classes of the rows that are asked for, and what else is known."""

    labels: Array
    probabilities: Array | None = None
    facts: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Shared(NamedTuple):
    """What draws share, and how long it took."""

    value: Any
    seconds: float = 0
    cpu_seconds: float = 0


@dataclass(frozen=True)
class Method:
    """A method with its default parameters.

    Attributes
    ----------
    learn : callable
        Takes a task and what draws share, returns a prediction.
    share : callable or None
        Takes a task, returns what draws share.
    share_key : callable
        Takes a task; draws with an equal key share.
    refuses : callable
        Takes a task, returns why the method cannot be used, or "".
    sees_test : bool
        Whether it learns from the rows of the test part.
    told_sizes : bool
        Whether it knows the sizes of the classes.
    slow : bool
        Whether it takes minutes for a draw on many rows.
    """

    learn: Callable[[Task, Any], Prediction]
    share: Callable[[Task], Shared] | None = None
    share_key: Callable[[Task], Any] = lambda task: None
    refuses: Callable[[Task], str] = lambda task: ""
    sees_test: bool = False
    told_sizes: bool = False
    slow: bool = False


def _supervised(new: Callable[[Task], Any], task: Task, shared: None, *, probabilities: bool = False) -> Prediction:
    classifier = new(task).fit(task.X[task.labeled], task.y[task.labeled])
    asked = task.asked
    return Prediction(classifier.predict(asked), classifier.predict_proba(asked) if probabilities else None)


def _nearest(task: Task, shared: None) -> Prediction:
    per_class = int(np.median(np.bincount(task.y[task.labeled])))
    classifier = KNeighborsClassifier(n_neighbors=min(5, per_class))
    classifier.fit(neighbor_rows(task.X[task.labeled]), task.y[task.labeled])
    return Prediction(classifier.predict(neighbor_rows(task.asked)))


def _self_training(task: Task, shared: None) -> Prediction:
    unlabeled = np.flatnonzero(~task.labeled)
    if len(unlabeled) > SELF_TRAINING_ROWS:
        unlabeled = task.rng.choice(unlabeled, SELF_TRAINING_ROWS, replace=False)
    rows = np.concatenate([np.flatnonzero(task.labeled), unlabeled])
    classifier = SelfTrainingClassifier(LogisticRegression(max_iter=2_000)).fit(task.X[rows], task.y[rows])
    return Prediction(classifier.predict(task.asked), facts={"rows_used": len(rows)})


def _em(task: Task, shared: None) -> Prediction:
    return Prediction(naive_bayes_em(task.X, task.y).predict(task.asked))


def _graph(task: Task) -> Shared:
    """Find the neighbors of training and test rows."""
    if task.X_test is None:
        rows = task.X
    else:
        stack = sparse.vstack if sparse.issparse(task.X) else np.vstack
        rows = stack([task.X, task.X_test])
    found = neighbors(rows, len(task.y), task.graph_file)
    return Shared(found, found.seconds, found.cpu_seconds)


def _spreading(task: Task, found: Neighbors) -> Prediction:
    """Use LabelSpreading(kernel="knn") with neighbors that are known: rows are given by their numbers."""
    n = len(task.y)
    edges = found.graph

    def kernel(train: Array, asked: Array) -> Any:
        graph = edges[asked.ravel()]
        return graph if len(asked) == n and (asked == train).all() else graph.T

    model = LabelSpreading(kernel=kernel).fit(np.arange(n)[:, None], task.y)
    if task.X_test is None:
        return Prediction(model.transduction_[~task.labeled])
    return Prediction(model.predict(np.arange(n, len(edges.indptr) - 1)[:, None]))


def _poisson(balanced: bool, task: Task, found: Neighbors) -> Prediction:
    graphlearning = import_module("graphlearning")
    n = len(task.y)
    distances = np.column_stack([found.distances[:, 0], np.maximum(found.distances[:, 1:], 1e-6)])  # it divides by them
    weights = graphlearning.weightmatrix.knn(None, distances.shape[1] - 1, knn_data=(found.rows, distances))
    labeled = np.flatnonzero(task.labeled)
    if balanced:
        model = graphlearning.ssl.poisson_mbo(weights, class_priors=task.class_sizes)
    else:
        model = graphlearning.ssl.poisson(weights)
    labels = model.fit_predict(labeled, task.y[labeled])
    return Prediction(labels[~task.labeled] if task.X_test is None else labels[n:])


def _first_layer(task: Task) -> Shared:
    """Fit the classifier without labels, for several draws on many rows."""
    if len(task.y) <= LARGE:
        return Shared(None)
    began, cpu_began = time.perf_counter(), time.process_time()
    classifier = SimpletronClassifier(random_state=_seed(task)).fit(task.X, np.full(len(task.y), -1))
    return Shared(classifier, time.perf_counter() - began, time.process_time() - cpu_began)


def _seed(task: Task) -> int:
    return task.draw // DRAWS_PER_MIXTURE if len(task.y) > LARGE else task.draw


def _ours(task: Task, fitted: SimpletronClassifier | None) -> Prediction:
    if fitted is None:
        classifier = SimpletronClassifier(random_state=_seed(task)).fit(task.X, task.y)
    else:
        classifier = fitted.fit_labels(task.y)
    facts = {"labeling": classifier.labeling_, "n_fields": int(classifier.class_weights_.shape[1])}
    if task.X_test is None:
        asked = ~task.labeled
        return Prediction(classifier.transduction_[asked], classifier.label_distributions_[asked], facts)
    return Prediction(classifier.predict(task.X_test), classifier.predict_proba(task.X_test), facts)


def _signed(task: Task) -> str:
    return "needs non-negative numbers" if task.X.min() < 0 else ""


def _sparse(task: Task) -> str:
    return "needs dense rows" if sparse.issparse(task.X) else ""


METHODS: dict[str, Method] = {
    OURS: Method(_ours, _first_layer, _seed, _signed),
    LOGISTIC: Method(partial(_supervised, lambda task: LogisticRegression(max_iter=2_000), probabilities=True)),
    "random forest": Method(partial(_supervised, lambda task: RandomForestClassifier(random_state=task.draw))),
    "multinomial naive Bayes": Method(partial(_supervised, lambda task: MultinomialNB()), refuses=_signed),
    "Gaussian naive Bayes": Method(partial(_supervised, lambda task: GaussianNB()), refuses=_sparse),
    "k-NN": Method(_nearest),
    "self-training": Method(_self_training),
    "label spreading": Method(_spreading, _graph),
    "naive-Bayes EM": Method(_em, refuses=_signed),
}
if find_spec("graphlearning") is not None:
    METHODS["Poisson"] = Method(partial(_poisson, False), _graph, sees_test=True)
    METHODS["PoissonMBO"] = Method(partial(_poisson, True), _graph, sees_test=True, told_sizes=True, slow=True)
