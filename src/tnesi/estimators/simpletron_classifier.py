"""SimpletronClassifier: a classifier from very few labels and a lot of unlabeled data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from tnesi.errors import DoubtfulResultWarning, InvalidDataError
from tnesi.estimators.callbacks import CallbackSupport, with_callbacks
from tnesi.estimators.classifier_parameters import check_classifier
from tnesi.estimators.fitted_classifier import FittedClassifier, NotLearnedError
from tnesi.estimators.parameters import check_integer, unchanged_on_failure, whole_batch
from tnesi.estimators.poisson_mixture import PoissonMixture, listener_of, parameters_of, run_of, seed_of
from tnesi.estimators.reading import read_rows, warn_zero_rows
from tnesi.execution.dask.cluster import cluster_for
from tnesi.execution.device_engine import device_for
from tnesi.execution.given_rows import GivenRows
from tnesi.execution.settings import Listener, Local
from tnesi.execution.store import ArrayStore, FileStore, TensorStore
from tnesi.labeling.alarms import alarms
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.labels import encode_labels, merge_classes
from tnesi.labeling.second_layer import (
    LabelingParameters,
    Method,
    SelfLabeling,
    learn_labels,
    new_labeler,
    suggestions,
)
from tnesi.labeling.stream import ClassifierStream, merged_labels
from tnesi.labeling.suggest import Suggestion
from tnesi.model.classifier_model import ClassifierModel, SecondLayer, StoredRows
from tnesi.system.threads import resolve_threads
from tnesi.training.checkpoint import lock_checkpoints, resumed_seeds
from tnesi.training.committee import learn_committee
from tnesi.training.mixture import LearnedMixture
from tnesi.types import Array


class SimpletronClassifier(CallbackSupport, FittedClassifier):
    """Neural Simpletron: a classifier for non-negative data of which very few rows are labeled.

    The first layer is a :class:`PoissonMixture`, learned without labels. The second layer learns from the labels and
    the unlabeled rows which fields belong to which class.

    Parameters
    ----------
    mixture : PoissonMixture or None, default=None
        The first layer. None means ``PoissonMixture()``.
    labeling : str or SelfLabeling, default="auto"
        How the second layer learns: "auto", "clusters", "spreading", "leading", "logistic", "self-labeling" or
        "supervised".

        - "clusters" finds as many clusters as there are classes without using labels, then names them: best where every
          class is one cluster.
        - "spreading" spreads the labels from row to row over the fields that rows share.
        - "leading" starts one cluster per class at its labeled rows and lets it move: best where classes are clusters
          that are hard to find without labels.
        - "logistic" is logistic regression on the labeled rows.
        - "auto" lets these four vote, with weights that depend on how well they predict held-out labels; with one label
          per class, on how often they agree. If all rows are labeled, "supervised" and "logistic" vote.
        - "self-labeling" lets rows label themselves where the classifier is sure, as in the paper. Pass
          ``SelfLabeling(threshold=...)`` to change its settings.
        - "supervised" learns from the labeled rows only which fields belong to which class.
    n_mixtures : int, default=1
        Number of mixtures in the first layer. With more than one, they form a committee whose members differ in their
        random initialization: fewer errors for proportionally more time and memory.
    unknown_classes : int, default=0
        Number of classes without any label. Their rows are found as clusters that get no name (this needs "clusters",
        which "auto" then means), and are predicted as `unlabeled`, which becomes the last of `classes_`.
    unlabeled : object, default=-1
        The marker of unlabeled rows in `y`: a string, a number, None or NaN. Missing values (None, NaN, NA) and empty
        strings are always unlabeled, and so is the text "-1" where the marker is -1.
    keep_rows : int or "auto", default="auto"
        Number of rows that `partial_fit` keeps to learn the second layer from, labeled ones first. "auto" is six per
        field, at least 10,000.
    random_state : int, RandomState instance or None, default=None
        Seeds the mixtures and the second layer. None means that of `mixture`.
    n_jobs : int or None, default=None
        Number of threads; -1 uses all processors. None means that of `mixture`. The result does not depend on it.
    verbose : int, default=0
        Whether to print a line per iteration of the first layer.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_weights_ : ndarray of shape (n_classes, n_fields)
        R: the distribution of each class over the fields of all mixtures, side by side. Rows sum to 1.
    mixtures_ : list of PoissonMixture
        The first layer: one mixture, or a committee.
    mixture_ : PoissonMixture
        The first of them.
    class_sizes_ : ndarray of shape (n_classes,) or None
        p(k), by which predictions weigh the classes; None where all classes have the same size.
    labeling_ : str
        The method that learned from the labels.
    votes_ : dict
        The share with which each method votes on the class of a row; empty if there is no vote.
    expected_accuracy_ : float or None
        Estimated share of the rows that are predicted correctly; None if it is not known.
    label_confidence_ : ndarray of shape (n_classes,)
        For each class, the probability that its rows are not those of another class that its labels could also mean.
    label_rivals_ : ndarray of shape (n_classes,)
        That other class.
    unknown_share_ : float
        Share of the training rows that belong to unknown classes.
    activities_ : csr_array of shape (n_samples, n_fields)
        Activities of the first layer for the training rows. Rows sum to 1. `fit_labels` learns from them.
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes for the training rows; labeled rows have their label.
    transduction_ : ndarray of shape (n_samples,)
        Labels of the training rows, given or inferred. Rows of weight 0 are left out.
    n_iter_ : int
        Number of iterations of the first layer (the largest in a committee) and of batches.
    n_samples_seen_ : int
        Number of rows learned from (not in model files).
    n_zero_rows_ : int
        Number of rows learned from that are all zero (not in model files).
    kept_rows_ : ndarray
        After `partial_fit`: which rows of the stream, counted from 0, are kept. `activities_`, `label_distributions_`,
        `transduction_`, `unknown_share_` and `suggest` describe these rows.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where all names in `X` are strings.

    Notes
    -----
    A row whose fields belong to no class gets the probability 1 / K for each class, and `predict` returns the first of
    `classes_` for it.

    Ctrl-C during `fit` ends learning of the first layer after the last complete iteration. The second layer then learns
    from the result, and `fit` warns and returns a usable classifier. Another Ctrl-C stops the second layer after its
    last complete pass. Before the first iteration, KeyboardInterrupt is raised. An interrupted committee consists of
    the mixtures learned so far. A `fit` that fails leaves the classifier unchanged.

    A pickle holds the training rows if they are in memory, since `fit_labels` uses them; `tnesi.save` does not store
    them.

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

    _stream: ClassifierStream | None = None
    _labeler: Labeler | None = None

    def __init__(
        self,
        mixture: PoissonMixture | None = None,
        *,
        labeling: Method | SelfLabeling = "auto",
        n_mixtures: int = 1,
        unknown_classes: int = 0,
        unlabeled: object = -1,
        keep_rows: int | Literal["auto"] = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.mixture = mixture
        self.labeling = labeling
        self.n_mixtures = n_mixtures
        self.unknown_classes = unknown_classes
        self.unlabeled = unlabeled
        self.keep_rows = keep_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Learn both layers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Non-negative data, labeled and unlabeled rows together. Sparse data stay sparse. See
            :meth:`PoissonMixture.fit` for data larger than memory.
        y : array-like of shape (n_samples,)
            Labels; unlabeled rows have the marker `unlabeled`. If no row has a label, only the first layer learns:
            continue with `suggest` and `fit_labels`.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 3 counts like three equal rows; a row of weight 0 is ignored. If all weights are below 1,
            they are scaled so that the largest is 1.

        Returns
        -------
        self : SimpletronClassifier
        """
        self.check_parameters()
        if y is None:
            raise InvalidDataError(
                "requires y to be passed, but the target y is None",
                parameter="y",
                advice="pass labels, with -1 for unlabeled",
            )
        base = self._base()
        run = run_of(base)
        n_threads = resolve_threads(base.n_jobs)
        task = self._begin_fit(self.n_mixtures * (base.max_iter + 1), X, y, sample_weight)
        with (
            unchanged_on_failure(self),
            lock_checkpoints(run.checkpoint),
            cluster_for(run, n_threads) as cluster,
            device_for(run, n_threads) as device,
        ):
            given = read_rows(self, X, sample_weight, cluster, device)
            check_consistent_length(X, y)
            label, names = encode_labels(y, self.unlabeled, present=given.present, none_is_fine=True)
            warning = self._learn(given, base, label, names, task.listener(listener_of(base)))
            task.end()
        warn_zero_rows(given)
        if warning:
            warnings.warn(warning, stacklevel=2)
        self._warn_of_doubts()
        return self

    def _learn(
        self, given: GivenRows, base: PoissonMixture, label: Array, names: Array, listener: Listener | None
    ) -> Warning | None:
        """Learn both layers; return a warning if learning was interrupted or did not converge."""
        run = run_of(base)
        random = check_random_state(base.random_state)
        drawn = [int(random.randint(2**31)) for _ in range(1 + self.n_mixtures)]
        seed, top_seed, *others = resumed_seeds(run.checkpoint, drawn, resume=run.resume)
        seeds = [seed, *others]
        committee = learn_committee(given, parameters_of(base), seeds, listener)
        rows = stored_rows(given, committee.activities)
        model = ClassifierModel(tuple(mixture.model for mixture in committee.mixtures), rows=rows, label=label)
        warning, labeler = None, None
        if names.size:
            labeler = new_labeler(rows, model.sizes, seed, resolve_threads(base.n_jobs))
            learned = learn_labels(labeler, self._labeling(), label, names, top_seed)
            model = replace(model, layer=learned.layer, inferred=learned.inferred)
            warning = learned.warning
        if not isinstance(given.store, ArrayStore | FileStore | TensorStore):  # the rows leave with the cluster
            model, labeler = replace(model, rows=replace(rows, store=None)), None
        self._keep_mixtures(self._members(base, committee.mixtures, seeds))
        self.n_samples_seen_, self.n_zero_rows_ = given.n_rows, given.n_zero
        self._keep(model, names, labeler)
        return committee.warning or warning

    def partial_fit(self, X: object, y: object = None, classes: object = None, sample_weight: object = None) -> Self:
        """Continue learning with more rows, some of which may have labels.

        The fields learn as in :meth:`PoissonMixture.partial_fit`. The second layer is learned by `settle`, which
        prediction calls, from `keep_rows` rows and the current fields: the labeled rows and a random sample of the
        others, which favors recent rows if the mixture has a `half_life`. If all rows are labeled, all of them count,
        not only those kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Non-negative data.
        y : array-like of shape (n_samples,), default=None
            Labels; unlabeled rows have the marker `unlabeled`. None means that no row has one. Labels may come late:
            pass rows again when their labels are known.
        classes : array-like, default=None
            Expected classes. Optional: a class that appears for the first time is added. A class without labels is
            never predicted.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self : SimpletronClassifier

        Notes
        -----
        With a `half_life`, labels fade only when newer ones of the same class follow. The rows of an earlier `fit` are
        represented by their reconstruction from the fields. Ctrl-C takes effect at the end of the batch; during the
        first batch it leaves the classifier unchanged.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.utils import shuffle
        >>> from tnesi import PoissonMixture, SimpletronClassifier
        >>> X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
        >>> clf = SimpletronClassifier(PoissonMixture(150), random_state=0).partial_fit(X[:600])
        >>> clf = clf.partial_fit(X[600:700], y[600:700]).partial_fit(X[700:1500])
        >>> bool(clf.score(X[1500:], y[1500:]) > 0.8)
        True
        """
        self.check_parameters()
        before = getattr(self, "n_zero_rows_", 0)
        first = self._stream is None and self._model is None
        with whole_batch(self, first=first):
            given = read_rows(self, X, sample_weight, reset=first, batch=True)
            self._learn_batch(given, *self._batch_labels(given, X, y, classes))
        warn_zero_rows(given, before)
        return self

    def _batch_labels(self, given: GivenRows, X: object, y: object, classes: object) -> tuple[Array, Array]:
        """Return the labels of a batch as indices into all known classes, and these classes."""
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
        base = self._base()
        parameters, listener = parameters_of(base), listener_of(base)
        if self._stream is None and self._model is None:
            random = check_random_state(base.random_state)
            seed, top_seed, *others = (int(random.randint(2**31)) for _ in range(1 + self.n_mixtures))
            stream, activities, kept = ClassifierStream.begin(given, parameters, [seed, *others], top_seed, listener)
        else:
            stream = self._stream or self._stream_after_fit(base)
            activities, kept = stream.learn_fields(given, parameters, base.half_life, listener)
        stream.keep(given, activities, kept, label, names, base.half_life, self.keep_rows)
        self._stream, self._model, self._mixtures, self._labeler, self._confident = stream, None, None, None, None
        self.classes_, mixture = names, stream.mixtures[0]
        self.n_iter_, self.n_samples_seen_, self.n_zero_rows_ = mixture.n_iter, mixture.n_rows, mixture.n_zero

    def _stream_after_fit(self, base: PoissonMixture) -> ClassifierStream:
        """Return a stream that continues from the result of `fit`."""
        assert self._model is not None
        seed = int(check_random_state(base.random_state).randint(2**31))
        learned = [mixture.learned_ for mixture in self.mixtures_]
        seeds = [seed_of(mixture.random_state) for mixture in self.mixtures_]
        given = learned, self._known_names(), seed, seeds, base.half_life, self.keep_rows
        return ClassifierStream.after_fit(self._model, *given)

    def settle(self) -> Self:
        """Learn the second layer from the rows that `partial_fit` has kept so far.

        `predict`, `predict_proba`, `score` and `suggest` call it. Call it before you read attributes such as
        `transduction_` or `class_weights_`. It does nothing after `fit` or if nothing has changed.

        Returns
        -------
        self : SimpletronClassifier
        """
        check_is_fitted(self)
        if self._model is None:
            assert self._stream is not None
            stream = self._stream
            model, labeler = stream.model(self._labeling(), self.keep_rows)
            with unchanged_on_failure(self):
                self._keep(model, stream.names, labeler, stream)
        return self

    def fit_labels(self, y: object, X: object = None) -> Self:
        """Relearn the second layer for other labels of the same rows.

        The first layer stays unchanged, so this takes a second where `fit` takes a minute.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of all rows given to `fit`, or of those with a positive weight.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            The rows that `y` describes. Only a classifier that was loaded from a file, or learned from a Dask array,
            needs them; without them it names clusters or spreads labels, which needs the stored activities only.

        Returns
        -------
        self : SimpletronClassifier
        """
        check_is_fitted(self)
        self.check_parameters()
        if self._stream is not None:
            raise InvalidDataError(
                "not all rows of a stream are kept", advice="pass the rows with labels to partial_fit instead"
            )
        model, rows, label, names = self._relabeled(y)
        seed = int(check_random_state(self._base().random_state).randint(2**31))
        if X is not None:
            rows = self._with_store(rows, X)
            model = replace(model, rows=rows)
            labeler = new_labeler(rows, model.sizes, self._first_seed(), self._n_threads())
        else:
            labeler = self._known_labeler()
        learned = learn_labels(labeler, self._labeling(), label, names, seed)
        with unchanged_on_failure(self):
            self._keep(replace(model, layer=learned.layer, label=label, inferred=learned.inferred), names, labeler)
        if learned.warning:
            warnings.warn(learned.warning, stacklevel=2)
        self._warn_of_doubts()
        return self

    def suggest(self, n: int = 10) -> list[Suggestion]:
        """Return the most useful rows to label next, with reasons.

        Without labels these are typical rows of `n` clusters, the largest first. With labels they come from parts of
        the data without a label, from regions where classes compete, and from classes that may be confused.

        Parameters
        ----------
        n : int, default=10
            Maximum number of rows.

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
        model, _ = self._stored()
        check_integer("n", n, 1)
        confident = None if model.layer is None else self._confidence()
        return suggestions(self._known_labeler(), model, confident, n)

    @property
    def mixtures_(self) -> list[PoissonMixture]:
        """The first layer: one mixture, or a committee."""
        check_is_fitted(self)
        if self._mixtures is None:
            assert self._stream is not None
            learned = [one.learned() for one in self._stream.mixtures]
            self._mixtures = self._members(self._base(), learned, self._stream.seeds)
        return self._mixtures

    @property
    def kept_rows_(self) -> Array:
        """Which rows of a stream are kept, counted from 0."""
        if self._stream is None:
            raise NotLearnedError("kept_rows_ describes the rows of a stream", advice="call partial_fit first")
        return self._stored()[1].numbers

    def check_parameters(self) -> None:
        """Raise InvalidParameterError if a parameter is invalid, as `fit` does."""
        check_classifier(self.get_params(deep=False))

    def _warn_of_doubts(self) -> None:
        for alarm in alarms(self.model_):
            warnings.warn(alarm, DoubtfulResultWarning, stacklevel=3)

    def _base(self) -> PoissonMixture:
        """Return the mixture to learn, with the settings that the classifier overrides."""
        base: PoissonMixture = PoissonMixture() if self.mixture is None else clone(self.mixture)
        base.verbose = max(base.verbose, self.verbose)
        if self.n_jobs is not None:
            base.n_jobs = self.n_jobs
        if self.random_state is not None:
            base.random_state = self.random_state
        return base

    def _members(
        self, base: PoissonMixture, learned: Sequence[LearnedMixture], seeds: Sequence[int]
    ) -> list[PoissonMixture]:
        """Return the mixtures as estimators; the row sum is chosen once, for the first."""
        parameters = base.get_params(deep=False)
        names = getattr(self, "feature_names_in_", None)
        members = []
        for one, seed in zip(learned, seeds, strict=False):  # an interrupted committee has fewer mixtures
            members.append(PoissonMixture.from_learned(one, names, parameters | {"random_state": seed}))
            parameters["row_sum"] = one.model.row_sum
        return members

    def _labeling(self) -> LabelingParameters:
        return LabelingParameters(
            method="self-labeling" if isinstance(self.labeling, SelfLabeling) else self.labeling,
            self_labeling=self.labeling if isinstance(self.labeling, SelfLabeling) else SelfLabeling(),
            unknown_classes=self.unknown_classes,
            unlabeled=self.unlabeled,
            n_threads=self._n_threads(),
        )

    def _run(self) -> Local:
        return run_of(self.mixture or PoissonMixture())

    def _n_threads(self) -> int:
        if self.n_jobs is None and self.mixture is not None:
            return resolve_threads(self.mixture.n_jobs)
        return resolve_threads(self.n_jobs)

    def _layer(self) -> SecondLayer:
        if self._stream is not None and self.model_.layer is None:
            raise NotLearnedError(
                "there are no labels of two classes yet",
                advice="label the rows that suggest() returns, then call partial_fit with these rows",
            )
        return super()._layer()

    def _with_store(self, rows: StoredRows, X: object) -> StoredRows:
        """Return the stored rows with the rows themselves: all that were given to `fit`, or those that are stored."""
        store = read_rows(self, X, None, reset=False).store
        if rows.number is not None and store.n_rows == rows.n_given:
            store = ArrayStore(store.take(rows.number))
        if store.n_rows != len(rows):
            raise InvalidDataError(
                f"X has {store.n_rows} rows, but fit has learned from {len(rows)}",
                parameter="X",
                advice="pass the same rows",
            )
        return replace(rows, store=store)

    def _known_labeler(self) -> Labeler:
        """Return the labeler, whose seed is that of the first layer and does not depend on the labels."""
        model, rows = self._stored()
        if self._labeler is None:
            self._labeler = new_labeler(rows, model.sizes, self._first_seed(), 1)
        self._labeler.n_threads = self._n_threads()
        return self._labeler

    def _first_seed(self) -> int:
        return seed_of(self.mixtures_[0].random_state)

    def _known_names(self) -> Array:
        """Return the classes except the unknown class."""
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
        """Keep a model, of a stream or not; `names` are the classes of a model without labels."""
        self._stream, self._labeler = stream, labeler
        self._keep_model(model, names)


def stored_rows(given: GivenRows, activities: Any) -> StoredRows:
    """Return the training rows as a classifier stores them."""
    number = None if given.present is None else np.flatnonzero(given.present)
    n_given = given.n_rows if given.present is None else given.present.size
    return StoredRows(activities, given.weight, number, n_given, given.store)
