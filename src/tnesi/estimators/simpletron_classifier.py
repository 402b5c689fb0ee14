"""SimpletronClassifier: both layers, a classifier from very few labels and much unlabeled data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from tnesi.estimators.blocks import checked_blocks
from tnesi.estimators.classifier_parameters import check_classifier
from tnesi.estimators.mixture_parameters import parameters_from
from tnesi.estimators.parameters import check_integer, unchanged_on_failure, whole_batch
from tnesi.estimators.poisson_mixture import PoissonMixture, seed_of
from tnesi.estimators.reading import mention_zero_rows, read_rows
from tnesi.execution.dask.cluster import cluster_for
from tnesi.execution.given_rows import GivenRows
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.labels import encode_labels, given_labels, is_unlabeled, merge_classes, present_labels
from tnesi.labeling.second_layer import (
    LabelingParameters,
    interruption,
    label_confidence,
    learn_labels,
    new_labeler,
    suggestions,
)
from tnesi.labeling.stream import ClassifierStream, merged_labels
from tnesi.labeling.suggest import Suggestion
from tnesi.model.classifier_model import ClassifierModel, SecondLayer, StoredRows
from tnesi.model.rows import Matrix, ZeroRows
from tnesi.system.threads import resolve_threads
from tnesi.training.checkpoint import checkpoints_in, kept_seeds
from tnesi.training.committee import learn_committee
from tnesi.training.mixture import DEFAULT_TRUNCATION, LearnedMixture, MixtureParameters
from tnesi.training.monitor import Listener, listener_for

Array = npt.NDArray[Any]

_OF_MIXTURE = (
    "n_components",
    "truncation",
    "row_sum",
    "solver",
    "search",
    "max_iter",
    "tol",
    "prior_strength",
    "batch_size",
    "learning_rate",
    "zero_rows",
    "half_life",
    "n_threads",
    "verbose",
    "callback",
    "engine",
    "scheduler",
    "checkpoint",
    "resume",
)
"""Parameters of the first layer."""


class SimpletronClassifier(ClassifierMixin, BaseEstimator):
    """Neural Simpletron: a classifier for non-negative data of which very few rows are labeled.

    The first layer is a :class:`PoissonMixture`, learned without labels. The second one learns which classes
    the fields belong to, from the labels and from the unlabeled rows.

    Parameters
    ----------
    n_components, truncation, row_sum, solver, search, max_iter, tol, prior_strength, batch_size, learning_rate,
    zero_rows, half_life :
        Of the first layer: see :class:`PoissonMixture`. `batch_size` is that of the second layer too.
    n_mixtures : int, default=1
        With more than one, the first layer is a committee of so many mixtures that differ in their random starts: fewer
        errors, for so many times the time and memory. It needs the EM solver and no recurrence.
    label_method : {"auto", "hebbian", "cluster", "soft"}, default="auto"
        How the second layer learns from unlabeled rows. "cluster" finds as many clusters as there are classes without
        any label, then gives them names: best where every class is one cluster. "soft" spreads the labels from row to
        row over the fields that they share. "auto" takes the one that predicts labels left out better; with one label
        per class it asks how clear the clusters and their names are. "hebbian" is self-labeling with the paper's
        update of the second layer, and what "auto" means for the Hebbian solver, with recurrence, or without
        self-labeling.
    unknown_classes : int, default=0
        Number of classes of which there is no label at all. Their rows are found as clusters that get no name ("auto"
        is "cluster" then), and predicted as `unlabeled`, which becomes the last of `classes_`.
    self_labeling : bool, default=True
        Whether unlabeled rows teach the second layer.
    threshold : float, default=0.6
        Minimum margin between the two best classes for a row to be self-labeled ("hebbian" only).
    recurrent : bool, default=False
        Whether the second layer acts on the first one, which then learns from the labels too.
    label_learning_rate : float, default=20.0
        Rate of self-labeling, in units of K / N, or of K / number of labels without self-labeling ("hebbian" only). The
        paper's is 0.2. With the EM solver it falls to a quarter towards the end, and the threshold rises halfway to 1.
    label_max_iter : int, default=100
        Passes of self-labeling over the activities ("hebbian" only). The Hebbian solver learns both layers together, in
        `max_iter` passes.
    unlabeled : object, default=-1
        The marker of rows without a label in `y`. It may be a string, a number, None or NaN. Missing values (None,
        NaN, NA) and empty strings are unlabeled in any case, and so is the text "-1" where the marker is -1.
    keep_rows : int or "auto", default="auto"
        Of `partial_fit`: how many rows are kept to learn the second layer from, labeled ones first. "auto" is six for
        each field, at least 10,000; with fewer, few labels go less far.
    random_state : int, RandomState instance or None, default=None
        Decides the start and the order of the rows.
    n_threads : int or None, default=None
        Threads to use; None is all processors that the process may use. The result does not depend on it.
    verbose : int, default=0
        Print a line per iteration of the first layer.
    callback : callable or None, default=None
        Called with a record after each iteration of the first layer; a true answer stops it. Records of a committee
        say which of its mixtures they are of (``mixture``, from 1, and ``mixtures``), and the answer stops that one.
    engine, scheduler, checkpoint, resume :
        Where the first layer learns, and how it survives an interruption: see :class:`PoissonMixture`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_weights_ : ndarray of shape (n_classes, n_fields)
        R, what each class says of the fields (of all mixtures, one after the other); rows sum to 1.
    mixtures_ : list of PoissonMixture
        The first layer: one mixture, or a committee.
    class_sizes_ : ndarray of shape (n_classes,) or None
        p(k), by which predictions weigh the classes; None where they all count alike.
    label_method_ : str
        The method that was used.
    label_confidence_ : ndarray of shape (n_classes,)
        For each class the probability that its rows are not those of another class that its labels could as well mean.
    label_rivals_ : ndarray of shape (n_classes,)
        That other class.
    unknown_share_ : float
        Share of the training rows that belong to unknown classes.
    mixture_ : PoissonMixture
        The first of them.
    activities_ : csr_array of shape (n_samples, n_fields)
        The first layer's activities of the training rows, which sum to 1; `fit_labels` learns from them.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes for the training rows; labeled rows have their label.
    transduction_ : ndarray of shape (n_samples,)
        Labels of the training rows, given or inferred. Rows of weight 0 are not among them.
    n_iter_ : int
        Number of iterations of the first layer, the largest in a committee, and of batches.
    n_samples_seen_ : int
        Number of rows learned from (not in model files).
    n_zero_rows_ : int
        Number of rows learned from that are all zero (not in model files).
    kept_rows_ : ndarray
        After `partial_fit`: which rows of the stream, counted from 0, are kept. `activities_`, `label_distributions_`,
        `transduction_`, `unknown_share_` and `suggest` are about these.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` had names that are all strings.

    Notes
    -----
    A row none of whose fields any class has reached gets the probability 1 / K for each class, and `predict`
    returns the first of `classes_` for it.

    Ctrl-C during `fit` ends learning of the first layer after the last complete iteration, then the second layer
    learns on what there is: `fit` warns and returns, and the classifier can be used. Another Ctrl-C stops the
    second layer after its last complete pass. Before the first iteration there is nothing to keep:
    KeyboardInterrupt is raised. An interrupted committee has the mixtures that were learned so far, and no other one is
    begun. A `fit` that fails leaves the classifier as it was.

    References
    ----------
    D. Forster and J. Lücke, "Truncated variational EM for semi-supervised neural simpletrons", IJCNN 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from tnesi import SimpletronClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.full(len(y), -1)
    >>> few[:50] = y[:50]
    >>> clf = SimpletronClassifier(random_state=0).fit(X, few)
    >>> bool(clf.score(X[50:], y[50:]) > 0.85)
    True
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        truncation: int | None = DEFAULT_TRUNCATION,
        row_sum: float | Literal["auto"] = "auto",
        solver: Literal["em", "hebbian"] = "em",
        search: Literal["neighbors", "exact"] = "neighbors",
        max_iter: int = 100,
        tol: float = 2e-3,
        prior_strength: float = 1.0,
        batch_size: int = 25,
        learning_rate: float = 0.2,
        zero_rows: ZeroRows = "uniform",
        half_life: float | None = None,
        n_mixtures: int = 1,
        label_method: Literal["auto", "hebbian", "cluster", "soft"] = "auto",
        unknown_classes: int = 0,
        self_labeling: bool = True,
        threshold: float = 0.6,
        recurrent: bool = False,
        label_learning_rate: float = 20.0,
        label_max_iter: int = 100,
        unlabeled: Any = -1,
        keep_rows: int | Literal["auto"] = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Listener | None = None,
        engine: Literal["local", "dask"] = "local",
        scheduler: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> None:
        self.n_components = n_components
        self.truncation = truncation
        self.row_sum = row_sum
        self.solver = solver
        self.search = search
        self.max_iter = max_iter
        self.tol = tol
        self.prior_strength = prior_strength
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.zero_rows = zero_rows
        self.half_life = half_life
        self.n_mixtures = n_mixtures
        self.label_method = label_method
        self.unknown_classes = unknown_classes
        self.self_labeling = self_labeling
        self.threshold = threshold
        self.recurrent = recurrent
        self.label_learning_rate = label_learning_rate
        self.label_max_iter = label_max_iter
        self.unlabeled = unlabeled
        self.keep_rows = keep_rows
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.engine = engine
        self.scheduler = scheduler
        self.checkpoint = checkpoint
        self.resume = resume

    _model: ClassifierModel | None = None
    _mixtures: list[PoissonMixture] | None = None
    _stream: ClassifierStream | None = None
    _labeler: Labeler | None = None
    _confident: tuple[Array, Array] | None = None

    @classmethod
    def from_model(
        cls,
        model: ClassifierModel,
        mixtures: Sequence[PoissonMixture],
        parameters: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return a fitted classifier from what was learned elsewhere; `mixtures` are the estimators of its mixtures."""
        classifier = cls(**parameters or {})
        first = mixtures[0]
        classifier.n_features_in_ = model.n_features
        if hasattr(first, "feature_names_in_"):
            classifier.feature_names_in_ = first.feature_names_in_
        classifier._keep_mixtures(mixtures)
        classifier._keep(model)
        return classifier

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn both layers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Non-negative data, labeled and unlabeled rows together. Sparse data are never made dense;
            :meth:`PoissonMixture.fit` says what can be read that does not fit into memory.
        y : array-like of shape (n_samples,)
            Labels; rows without one have the marker `unlabeled`. If none has a label, only the first layer learns:
            `suggest` and `fit_labels` come next.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 3 counts like three equal rows, a row of weight 0 is absent. Weights of which none reaches
            1 are proportions: they are scaled so that the largest is 1.

        Returns
        -------
        self : SimpletronClassifier
        """
        self.check_parameters()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: pass labels, with -1 for unlabeled")
        cluster_of = cluster_for(self.engine, self.scheduler, resolve_threads(self.n_threads))
        with unchanged_on_failure(self), checkpoints_in(self.checkpoint), cluster_of as cluster:
            given = read_rows(self, X, sample_weight, self.zero_rows, cluster)
            check_consistent_length(X, y)
            label, names = encode_labels(y, self.unlabeled, none_is_fine=not self.recurrent)
            if given.present is not None:
                label, names = present_labels(label, names, given.present)
            trouble = self._learn(given, label, names)
        mention_zero_rows(given)
        if trouble:
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def _learn(self, given: GivenRows, label: Array, names: Array) -> str | None:
        """Learn both layers; return what to warn about."""
        random = check_random_state(self.random_state)
        drawn = [int(random.randint(2**31)) for _ in range(1 + self.n_mixtures)]
        seed, top_seed, *others = kept_seeds(self.checkpoint, drawn, resume=self.resume)
        seeds, parameters = [seed, *others], self._labeling()
        learns_along = (self.solver == "hebbian" or self.recurrent) and names.size > 0
        top = parameters.top_layer(label, names.size, given.weight, top_seed) if learns_along else None
        committee = learn_committee(given, self._mixture_parameters(), seeds, self._listener(), top)
        present = given.present
        number = None if present is None else np.flatnonzero(present)
        n_given = given.n_rows if present is None else present.size
        rows = StoredRows(committee.activities, given.weight, number, n_given)
        models = tuple(mixture.model for mixture in committee.mixtures)
        model, trouble = ClassifierModel(models, None, bool(self.recurrent), rows, label), None
        labeler = None
        if top is not None:
            if self.solver == "em":
                top.learn(rows.activities)
            model = replace(model, layer=SecondLayer(top.classes, names, "hebbian"))
            trouble = interruption(top)
        elif names.size:
            labeler = new_labeler(rows, model.sizes, seed, resolve_threads(self.n_threads))
            learned = learn_labels(labeler, parameters, label, names, top_seed)
            model, trouble = replace(model, layer=learned.layer), learned.trouble
        self._keep_mixtures(self._members(committee.mixtures, seeds))
        self.n_samples_seen_, self.n_zero_rows_ = given.n_rows, given.n_zero
        self._keep(model, names, labeler)
        return committee.trouble or trouble

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from more rows, some of which may have labels.

        The fields learn as :meth:`PoissonMixture.partial_fit` says. The second layer is learned by `settle`, which
        `predict` and the like call, as `fit` would, on `keep_rows` rows with the fields as they are then: those with
        labels and a random sample of the others, recent ones first if there is a `half_life`. Where all rows have
        labels, all of them count and not only those kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Non-negative data.
        y : array-like of shape (n_samples,), default=None
            Labels; rows without one have the marker `unlabeled`. None: no row has one. Labels may come late: pass
            rows again when their labels are known.
        classes : array-like, default=None
            Classes that there will be. It need not be given, and others may follow: a class that appears for the first
            time is added. One without labels is never predicted.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self : SimpletronClassifier

        Notes
        -----
        `half_life` lets labels fade only when newer ones of the same class follow. After `fit`, whose rows are not
        kept, they are remembered as their fields draw them. With recurrence or the Hebbian solver there is no
        `partial_fit`. Ctrl-C waits for the end of the batch; in the first one, it leaves the classifier as it was.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from tnesi import SimpletronClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = SimpletronClassifier(n_components=150, random_state=0).partial_fit(X[:600])
        >>> clf = clf.partial_fit(X[600:700], y[600:700]).partial_fit(X[700:1500])
        >>> bool(clf.score(X[1500:], y[1500:]) > 0.8)
        True
        """
        self.check_parameters()
        if self.solver != "em":
            raise ValueError(f"solver={self.solver!r}: partial_fit is a form of EM; pass solver='em', or call fit")
        if self.recurrent:
            raise ValueError(
                "recurrent=True: the fields of a recurrent network learn from all labels together; call fit"
            )
        before = getattr(self, "n_zero_rows_", 0)
        first = self._stream is None and self._model is None
        with whole_batch(self, first=first):
            given = read_rows(self, X, sample_weight, self.zero_rows, reset=first, batch=True)
            self._learn_batch(given, *self._batch_labels(given, X, y, classes))
        mention_zero_rows(given, before)
        return self

    def _batch_labels(self, given: GivenRows, X: Any, y: Any, classes: Any) -> tuple[Array, Array]:
        """Return the labels of a batch as numbers among all classes known by now, and these classes."""
        known = self._known_names() if hasattr(self, "classes_") else None
        if classes is not None:
            known = merge_classes(known, encode_labels(classes, self.unlabeled, one_is_fine=True)[1])
        n = given.n_rows if given.present is None else given.present.size
        label, own = np.full(n, -1, np.int32), None
        if y is not None:
            check_consistent_length(X, y)
            label, own = encode_labels(y, self.unlabeled, none_is_fine=True, one_is_fine=True)
        label, names = merged_labels(known, label, own)
        return label if given.present is None else label[given.present], names

    def _learn_batch(self, given: GivenRows, label: Array, names: Array) -> None:
        parameters, listener = self._mixture_parameters(), self._listener()
        if self._stream is None and self._model is None:
            random = check_random_state(self.random_state)
            seed, top_seed, *others = (int(random.randint(2**31)) for _ in range(1 + self.n_mixtures))
            stream, activities, kept = ClassifierStream.begin(given, parameters, [seed, *others], top_seed, listener)
        else:
            stream = self._stream or self._stream_after_fit()
            activities, kept = stream.learn_fields(given, parameters, self.half_life, listener)
        stream.keep(given, activities, kept, label, names, self.half_life, self.keep_rows)
        self._stream, self._model, self._mixtures, self._labeler, self._confident = stream, None, None, None, None
        self.classes_, mixture = names, stream.mixtures[0]
        self.n_iter_, self.n_samples_seen_, self.n_zero_rows_ = mixture.n_iter, mixture.n_rows, mixture.n_zero

    def _stream_after_fit(self) -> ClassifierStream:
        """Return a stream that goes on from what `fit` has learned."""
        assert self._model is not None
        seed = int(check_random_state(self.random_state).randint(2**31))
        learned = [mixture.learned_ for mixture in self.mixtures_]
        seeds = [seed_of(mixture.random_state) for mixture in self.mixtures_]
        given = learned, self._known_names(), seed, seeds, self.half_life, self.keep_rows
        return ClassifierStream.after_fit(self._model, *given)

    def settle(self) -> Self:
        """Learn the second layer from the rows that `partial_fit` has kept so far.

        `predict`, `predict_proba`, `score` and `suggest` do so by themselves. Call it before you read attributes such
        as `transduction_` or `class_weights_`. After `fit`, or if nothing has changed, it does nothing.

        Returns
        -------
        self : SimpletronClassifier
        """
        check_is_fitted(self)
        if self._model is None:
            assert self._stream is not None
            stream = self._stream
            model, labeler = stream.model(self._labeling(), self.keep_rows, self.zero_rows)
            with unchanged_on_failure(self):
                self._keep(model, stream.names, labeler, stream)
        return self

    def fit_labels(self, y: Any) -> Self:
        """Learn the second layer again for other labels of the same rows, on the stored activities.

        The first layer stays as it is, so this takes a second where `fit` takes a minute.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of the rows given to `fit`, or only of those with a weight.

        Returns
        -------
        self : SimpletronClassifier
        """
        check_is_fitted(self)
        self.check_parameters()
        if self.recurrent:
            raise ValueError("the first layer of a recurrent network has learned from the labels too: call fit instead")
        if self._stream is not None:
            raise ValueError("the rows of a stream are not all kept: pass those with labels to partial_fit instead")
        model, rows = self._stored("fit_labels learns from")
        label, names = encode_labels(y, self.unlabeled)
        if rows.present is not None and label.size == rows.n_given:
            label, names = present_labels(label, names, rows.present)
        if label.size != len(rows):
            raise ValueError(f"y has {label.size} labels, but fit has learned from {len(rows)} rows: pass one for each")
        seed = int(check_random_state(self.random_state).randint(2**31))
        labeler = self._known_labeler()
        learned = learn_labels(labeler, self._labeling(), label, names, seed)
        with unchanged_on_failure(self):
            self._keep(replace(model, layer=learned.layer, label=label), names, labeler)
        if learned.trouble:
            warnings.warn(learned.trouble, ConvergenceWarning, stacklevel=2)
        return self

    def suggest(self, n: int = 10) -> list[Suggestion]:
        """Say which rows to label next, and why; also where there are no labels yet.

        Without labels these are typical rows of `n` clusters, the largest first. With labels they come from parts of
        the data that no label has reached, from where classes compete, and from classes that could be confused.

        Parameters
        ----------
        n : int, default=10
            How many; fewer where there is no more to ask.

        Returns
        -------
        suggestions : list of Suggestion
            Each has a `row` of those given to `fit`, a `reason`, and the `classes` between which it would decide. The
            most useful come first.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from tnesi import SimpletronClassifier
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = np.full(len(X), -1)
        >>> clf = SimpletronClassifier(random_state=0).fit(X, y)
        >>> for _ in range(3):
        ...     rows = [suggestion.row for suggestion in clf.suggest(10)]
        ...     y[rows] = truth[rows]  # a person looks at them
        ...     _ = clf.fit_labels(y)
        >>> bool(clf.score(X, truth) > 0.9)
        True
        """
        self.settle()
        model, _ = self._stored("suggestions are made from")
        check_integer("n", n, 1)
        confident = None if model.layer is None else self._confidence()
        return suggestions(self._known_labeler(), model, confident, n)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, an array of shape (n_samples, n_classes)."""
        model = self.settle().model_
        self._layer()
        blocks = checked_blocks(self, X, reset=False)
        return np.concatenate([model.posterior(self.activities_of(block)) for block in blocks])

    def activities_of(self, X: Matrix) -> sparse.csr_array:
        """Return the activities of the first layer for rows that need no check, of shape (n_samples, n_fields)."""
        return self.model_.activities_of(X, resolve_threads(self.n_threads), self.zero_rows)

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows that have a label.

        A scorer by name, such as ``scoring="accuracy"``, takes rows without a label for one more class: pass
        `tnesi.model_selection.labeled_scorer` instead.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test rows.
        y : array-like of shape (n_samples,)
            Their labels. Rows without one are left out, with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            Share of the labeled rows that are predicted correctly.
        """
        check_is_fitted(self)
        predicted = self.predict(X)
        if any(is_unlabeled(self.classes_, self.unlabeled)):  # unknown classes are predicted as the marker
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        at, labels = given_labels(y, self.unlabeled)
        if not at.size:
            raise ValueError("no row has a label to compare with: pass the true classes as y")
        if at.size < predicted.size:
            warnings.warn(
                f"{predicted.size - at.size:,} of {predicted.size:,} rows have no label and are left out of the score; "
                "for cross-validation use cv=tnesi.model_selection.SemiSupervisedKFold()",
                stacklevel=2,
            )
        weight = None if sample_weight is None else _safe_indexing(sample_weight, at)
        return float(accuracy_score(labels, predicted[at], sample_weight=weight))

    @property
    def model_(self) -> ClassifierModel:
        """What has been learned, as a value."""
        check_is_fitted(self)
        if self._model is None:
            raise NotFittedError(
                "the second layer has not learned from the last batches yet: call settle() first, or predict"
            )
        return self._model

    @property
    def mixture_(self) -> PoissonMixture:
        """The first mixture of the first layer, by default the only one."""
        return self.mixtures_[0]

    @property
    def mixtures_(self) -> list[PoissonMixture]:
        """The first layer: one mixture, or a committee."""
        check_is_fitted(self)
        if self._mixtures is None:
            assert self._stream is not None
            self._mixtures = self._members([one.learned() for one in self._stream.mixtures], self._stream.seeds)
        return self._mixtures

    @property
    def activities_(self) -> sparse.csr_array:
        """Activities of the training rows, of shape (n_samples, n_fields)."""
        return self._stored("this attribute describes", NotFittedError)[1].activities

    @property
    def kept_rows_(self) -> Array:
        """Which rows of a stream are kept, counted from 0."""
        if self._stream is None:
            raise NotFittedError("kept_rows_ tells which rows of a stream are kept: call partial_fit first")
        return self._stored("this attribute describes", NotFittedError)[1].numbers

    @property
    def class_weights_(self) -> Array:
        """R, of shape (n_classes, n_fields); rows sum to 1."""
        return self._layer().classes.weights

    @property
    def class_sizes_(self) -> Array | None:
        """p(k), by which predictions weigh the classes; None where they all count alike."""
        return self._layer().classes.sizes

    @property
    def label_method_(self) -> str:
        """The method that was used to learn from the labels."""
        return self._layer().method

    @property
    def has_unknown_class_(self) -> bool:
        """Whether the last of `classes_` stands for rows of unknown classes."""
        model = self.model_
        return model.layer is not None and model.layer.unknown

    @property
    def label_distributions_(self) -> Array:
        """Probabilities of the classes for the training rows, of shape (n_samples, n_classes)."""
        return self._labeled().label_distributions

    @property
    def transduction_(self) -> Array:
        """Labels of the training rows, given or inferred."""
        return self._labeled().transduction

    @property
    def unknown_share_(self) -> float:
        """Share of the training rows that belong to unknown classes."""
        return self._labeled().unknown_share

    @property
    def label_confidence_(self) -> Array:
        """For each class the probability that its rows are not those of another class."""
        return self._confidence()[0]

    @property
    def label_rivals_(self) -> Array:
        """The class with which each class may be confused."""
        return np.asarray(self.classes_[self._confidence()[1]])

    def _layer(self) -> SecondLayer:
        layer = self.model_.layer
        if layer is None:
            what, call = "labels", "fit_labels with these labels"
            if self._stream is not None:
                what, call = "labels of two classes", "partial_fit with these rows"
            raise NotFittedError(f"there are no {what} yet: label rows that suggest() names, then call {call}")
        return layer

    def _labeled(self) -> ClassifierModel:
        """Return the model, which has labels and knows its training rows."""
        self._layer()
        return self._stored("this attribute describes", NotFittedError)[0]

    def _stored(self, what_for: str, kind: type[Exception] = ValueError) -> tuple[ClassifierModel, StoredRows]:
        """Return the model and its training rows."""
        model = self.model_
        if model.rows is None or model.label is None:
            raise kind(
                f"the activities of the training rows were not saved with this classifier, and {what_for} them: call "
                "fit, or save the original again with training=True"
            )
        return model, model.rows

    def _confidence(self) -> tuple[Array, Array]:
        model = self._labeled()
        if self._confident is None:
            self._confident = label_confidence(model)
        return self._confident

    def _known_labeler(self) -> Labeler:
        """Return what is known without labels. Its seed is that of the first layer: no label set decides on it."""
        model, rows = self._stored("this needs")
        if self._labeler is None:
            self._labeler = new_labeler(rows, model.sizes, self._first_seed(), 1)
        self._labeler.n_threads = resolve_threads(self.n_threads)
        return self._labeler

    def _first_seed(self) -> int:
        return seed_of(self.mixtures_[0].random_state)

    def _known_names(self) -> Array:
        """Return the classes but for the one of the unknown."""
        unknown = self._model is not None and self._model.layer is not None and self._model.layer.unknown
        return np.asarray(self.classes_[: self.classes_.size - unknown])

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None or self._stream is not None

    def _keep(
        self,
        model: ClassifierModel,
        names: Array | None = None,
        labeler: Labeler | None = None,
        stream: ClassifierStream | None = None,
    ) -> None:
        """Keep what was learned, from a stream or not; `names` are the classes of a model without labels."""
        self._model, self._stream, self._labeler, self._confident = model, stream, labeler, None
        none = np.empty(0, np.int64) if names is None else names
        self.classes_ = none if model.layer is None else model.layer.names

    def _keep_mixtures(self, mixtures: Sequence[PoissonMixture]) -> None:
        self._mixtures = list(mixtures)
        self.n_iter_ = max(mixture.n_iter_ for mixture in mixtures)

    def _members(self, learned: Sequence[LearnedMixture], seeds: Sequence[int]) -> list[PoissonMixture]:
        """Return the mixtures as estimators; the sum to which rows are normalized is chosen once, for the first."""
        parameters = {name: getattr(self, name) for name in _OF_MIXTURE}
        names = getattr(self, "feature_names_in_", None)
        members = []
        for one, seed in zip(learned, seeds, strict=False):  # fewer are learned if they are interrupted
            members.append(PoissonMixture.from_learned(one, names, parameters | {"random_state": seed}))
            parameters["row_sum"] = one.model.row_sum
        return members

    def _listener(self) -> Listener | None:
        return listener_for(self.verbose, self.callback)

    def _mixture_parameters(self) -> MixtureParameters:
        return parameters_from(self.get_params(deep=False))

    def _labeling(self) -> LabelingParameters:
        em = self.solver == "em"
        return LabelingParameters(
            method=self.label_method,
            unknown_classes=self.unknown_classes,
            unlabeled=self.unlabeled,
            self_labeling=bool(self.self_labeling),
            threshold=self.threshold,
            recurrent=bool(self.recurrent),
            learning_rate=self.label_learning_rate,
            max_iter=self.label_max_iter if em else self.max_iter,
            batch_size=self.batch_size,
            exact=em,
            n_threads=resolve_threads(self.n_threads),
        )

    def check_parameters(self) -> None:
        """Raise ValueError for parameters with which nothing could be learned; `fit` does so, too."""
        check_classifier(self.get_params(deep=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        # only the proportions within a row count: of scikit-learn's blobs in a plane one dimension is left
        tags.classifier_tags.poor_score = True
        return tags
