"""SimpletronClassifier: both layers, a classifier from very few labels and much unlabeled data."""

from __future__ import annotations

import os
import warnings
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from tnesi.estimators.blocks import checked_blocks
from tnesi.estimators.committee import activate, check_committee, learn_committee
from tnesi.estimators.mixture_parameters import DEFAULT_TRUNCATION, MOST
from tnesi.estimators.parameters import check_integer, unchanged_on_failure
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.second_layer import SecondLayer, check_second_layer, interrupted, new_top_layer
from tnesi.estimators.stream_labels import check_labeled_stream, learn_labeled_batch, learn_second_layer
from tnesi.estimators.streaming import whole_batch
from tnesi.estimators.training_rows import TrainingRows
from tnesi.execution.dask.cluster import cluster_for
from tnesi.labeling.labels import given_labels, is_unlabeled
from tnesi.model.rows import Matrix, ZeroRows
from tnesi.training.checkpoint import checkpoints_in, kept_seeds
from tnesi.training.monitor import Listener

Array = npt.NDArray[Any]


class SimpletronClassifier(ClassifierMixin, SecondLayer):
    """Neural Simpletron: a classifier for non-negative data of which very few rows are labeled.

    The first layer is a :class:`PoissonMixture`, learned without labels. The second one learns which classes
    the fields belong to, from the labels and from the unlabeled rows.

    Parameters
    ----------
    n_components, truncation, norm, solver, search, max_iter, tol, shrinkage, batch_size, learning_rate,
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
        norm: float | Literal["auto"] = "auto",
        solver: Literal["em", "hebbian"] = "em",
        search: Literal["neighbors", "exact"] = "neighbors",
        max_iter: int = 100,
        tol: float = 2e-3,
        shrinkage: float = 1.0,
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
        self.norm = norm
        self.solver = solver
        self.search = search
        self.max_iter = max_iter
        self.tol = tol
        self.shrinkage = shrinkage
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
        self._check_parameters()
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: pass labels, with -1 for unlabeled")
        with unchanged_on_failure(self), checkpoints_in(self.checkpoint), cluster_for(self) as cluster:
            rows = TrainingRows.of(self, X, y, sample_weight, cluster)
            trouble = self._learn(rows)
        rows.given.mention_zero_rows()
        if trouble:
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from more rows, some of which may have labels.

        The fields learn as :meth:`PoissonMixture.partial_fit` says. The second layer is learned when it is asked for
        (by `predict` and the like), as `fit` would, on `keep_rows` rows with the fields as they are then: those with
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
        self._check_parameters()
        check_labeled_stream(self)
        known = getattr(self, "n_zero_rows_", 0)
        with whole_batch(self, first=not hasattr(self, "mixtures_")):
            given = learn_labeled_batch(self, X, y, classes, sample_weight)
        given.mention_zero_rows(known)
        return self

    def _learn_kept(self) -> None:
        learn_second_layer(self)

    def _learn(self, rows: TrainingRows) -> str | None:
        """Learn both layers; return what to warn of."""
        random = check_random_state(self.random_state)
        drawn = [int(random.randint(2**31)) for _ in range(1 + self.n_mixtures)]
        seed, top_seed, *others = kept_seeds(self.checkpoint, drawn, resume=self.resume)
        top = new_top_layer(self, rows.label, rows.classes.size, rows.given.weight, top_seed)
        learns_along = (self.solver == "hebbian" or self.recurrent) and rows.classes.size > 0
        committee = learn_committee(self, [seed, *others], rows, top if learns_along else None)
        self.mixtures_, self.activities_ = committee.mixtures, committee.activities
        self.n_iter_ = max(mixture.n_iter_ for mixture in self.mixtures_)
        self._weight, self._present = rows.given.weight, rows.given.present
        self._recurrent, self._labeler = self.recurrent, None
        self._stream, self.n_samples_seen_, self.n_zero_rows_ = None, rows.given.n_rows, rows.given.n_zero
        self.__dict__.pop("kept_rows_", None)
        if not rows.classes.size:
            self._keep_none(rows.label, rows.classes)
            return committee.trouble
        if learns_along:
            if self.solver == "em":
                top.learn(self.activities_)
            self._keep(top.classes, top.label, rows.classes, "hebbian")
            return committee.trouble or interrupted(top)
        trouble = self._learn_labels(top, rows.classes)
        return committee.trouble or trouble

    @property
    def mixture_(self) -> PoissonMixture:
        """The first mixture of the first layer, by default the only one."""
        return self.mixtures_[0]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, an array of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        blocks = checked_blocks(self, X, reset=False)
        return np.concatenate([self._classes.posterior(self._activities_of(block)) for block in blocks])

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        check_is_fitted(self)
        best = np.argmax(self.predict_proba(X), axis=1)  # first: a stream may learn now of a class of the unknown
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

    def _activities_of(self, X: Matrix) -> sparse.csr_array:
        """Return the activities of checked rows."""
        prior = self._classes.prior(None) if self._recurrent else None
        return activate(self.mixtures_, X, prior, self)

    def _check_parameters(self) -> None:
        if self.keep_rows != "auto":
            check_integer("keep_rows", self.keep_rows, 2, ", or 'auto'", most=MOST)
        check_second_layer(self)
        check_committee(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        # only the proportions within a row count: of scikit-learn's blobs in a plane one dimension is left
        tags.classifier_tags.poor_score = True
        return tags
