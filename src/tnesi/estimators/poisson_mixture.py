"""PoissonMixture: the unsupervised first layer, a mixture of many Poisson fields."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from tnesi.estimators.blocks import checked_blocks
from tnesi.estimators.callbacks import CallbackSupport, with_callbacks
from tnesi.estimators.html_summary import mixture_summary
from tnesi.estimators.mixture_parameters import check_mixture
from tnesi.estimators.parameters import check_integer, outputs_frames, unchanged_on_failure, whole_batch
from tnesi.estimators.reading import read_rows, warn_zero_rows
from tnesi.execution.dask.cluster import cluster_for
from tnesi.execution.device_engine import device_for
from tnesi.execution.settings import Listener, Local
from tnesi.model.activities import Activities
from tnesi.model.mixture_model import MixtureModel
from tnesi.model.rows import Rows
from tnesi.search import on_device
from tnesi.system.threads import resolve_threads
from tnesi.training.checkpoint import lock_checkpoints, resumed_seeds
from tnesi.training.mixture import DEFAULT_TRUNCATION, LearnedMixture, MixtureParameters, learn_mixture
from tnesi.training.monitor import Monitor, listener_for
from tnesi.training.stream import MixtureStream, learn_batch
from tnesi.types import Array


class PoissonMixture(CallbackSupport, ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):
    """Truncated mixture of Poisson distributions for non-negative data: the unsupervised first layer.

    Every row is normalized to a constant sum, so only the proportions within a row count. A component is called
    a field: a template of D means. A row is explained by its few best fields only (truncation).

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of fields C. "auto" is a sixth of the rows, at most 10,000 (fewer for rows with more than 3,355 features)
        and at most the number of distinct rows.
    truncation : int or None, default=15
        Number of fields C' that may explain a row. None is the non-truncated mixture, which is much slower. The default
        shrinks to the number of fields where there are fewer.
    row_sum : float or "auto", default="auto"
        The sum A to which each row is normalized. It exceeds the number of features; a larger sum makes the fields more
        selective. "auto" chooses it from the data; the choice is `row_sum_`.
    prior_strength : float, default=1.0
        How strongly fields are pulled toward the mean of the data: the number of average rows that every field is
        assumed to have seen. It makes fields of few rows explain new rows better. 0 is maximum likelihood, as
        published. Values above ten times the rows per field are refused.
    search : {"neighbors", "exact"}, default="neighbors"
        How a row finds its best fields. "neighbors" looks near the best field found so far, at a cost that does not
        grow with the number of fields; "exact" looks at all fields. With 512 fields or fewer, or with a truncation
        below 5, both are the same.
    max_iter : int, default=100
        Maximum number of iterations over the data.
    tol : float, default=2e-3
        Learning stops when an iteration gains less than this, in nats per row. 0 disables the test.
    half_life : float or None, default=None
        Used by `partial_fit`: the weight of a row halves each time this many rows (their weights, if they have any)
        have followed it. Fields then represent about 1.44 half-lives of rows and follow a changing stream. None
        disables forgetting.
    execution : Local, Dask or None, default=None
        Where `fit` runs, its checkpoints and its callback: `tnesi.execution.Local` (the default) or
        `tnesi.execution.Dask`.
    random_state : int, RandomState instance or None, default=None
        Seeds the initialization.
    n_jobs : int or None, default=None
        Number of threads. None and -1 use all processors that the process may use, or OMP_NUM_THREADS. The result does
        not depend on it.
    verbose : int, default=0
        Whether to print a line per iteration.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        The fields W. Each sums to `row_sum_`.
    row_sum_ : float
        A, as given or chosen.
    n_components_, truncation_ : int
        C and C', as given or chosen. `truncation_` is C for the non-truncated mixture.
    history_ : list of dict
        A record per iteration: free energy, share of rows with a new best field, search used, seconds. `partial_fit`
        adds a record per batch, with its number of `rows`, and keeps the last 1,000. The free energy of a batch is
        measured before the fields learn from it (for the first batch, after), so it shows how well they explain new
        rows.
    lower_bound_ : float
        Free energy of the training rows in nats per row: a lower bound of their log-likelihood. After `partial_fit`,
        that of the last record.
    n_iter_ : int
        Number of iterations and batches.
    n_samples_seen_ : int
        Number of rows learned from (not in model files).
    n_zero_rows_ : int
        Number of rows learned from that are all zero (not in model files).
    converged_ : bool
        Whether `tol` was reached before `max_iter`.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where all names in `X` are strings.

    Notes
    -----
    Rows that are all zero (blank images, empty documents) count as evenly spread over all features; `fit` warns once.
    In a sparse matrix they become dense, which may take up to 1 GB; beyond that they are refused.

    Ctrl-C during `fit` ends learning after the last complete iteration: `fit` warns and returns, and the mixture can be
    used. Before the first iteration, KeyboardInterrupt is raised. A `fit` that fails leaves the mixture unchanged.

    References
    ----------
    D. Forster and J. Lücke, "Truncated variational EM for semi-supervised neural simpletrons", IJCNN 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tnesi import PoissonMixture
    >>> X, _ = load_digits(return_X_y=True)
    >>> mixture = PoissonMixture(n_components=100, random_state=0).fit(X)
    >>> mixture.means_.shape
    (100, 64)
    >>> mixture.transform(X[:2]).shape
    (2, 100)
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        truncation: int | None = DEFAULT_TRUNCATION,
        row_sum: float | Literal["auto"] = "auto",
        prior_strength: float = 1.0,
        search: Literal["neighbors", "exact"] = "neighbors",
        max_iter: int = 100,
        tol: float = 2e-3,
        half_life: float | None = None,
        execution: Local | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.truncation = truncation
        self.row_sum = row_sum
        self.prior_strength = prior_strength
        self.search = search
        self.max_iter = max_iter
        self.tol = tol
        self.half_life = half_life
        self.execution = execution
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _learned: LearnedMixture | None = None
    _stream: MixtureStream | None = None

    @classmethod
    def from_learned(
        cls, learned: LearnedMixture, feature_names: Array | None = None, parameters: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a fitted mixture from a learned one: of a classifier, or of a model file."""
        mixture = cls(**parameters or {})
        mixture.n_features_in_ = learned.model.n_features
        if feature_names is not None:
            mixture.feature_names_in_ = feature_names
        mixture._keep(learned)
        return mixture

    @with_callbacks
    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Learn the fields.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Non-negative data. uint8 and float32 are used as they are; other types become float32. Sparse data become
            CSR of float32 and are never made dense. Data larger than memory are read in blocks: mapped arrays, Zarr,
            HDF5 and Dask arrays, and the ``rows`` of `tnesi.data.open_data`. All but mapped arrays of uint8 or float32
            in C order are copied to a temporary file once. With ``execution=Dask(...)`` a Dask array stays on the
            cluster.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 3 counts like three equal rows; a row of weight 0 is ignored. If all weights are below 1,
            they are scaled so that the largest is 1.

        Returns
        -------
        self : PoissonMixture
        """
        self.check_parameters()
        run, task = run_of(self), self._begin_fit(self.max_iter + 1, X, y, sample_weight)
        parameters, monitor = parameters_of(self), Monitor(float(self.tol), task.listener(listener_of(self)))
        with (
            unchanged_on_failure(self),
            lock_checkpoints(run.checkpoint),
            cluster_for(run, resolve_threads(self.n_jobs)) as cluster,
            device_for(run, resolve_threads(self.n_jobs)) as device,
        ):
            seed = int(check_random_state(self.random_state).randint(2**31)) if run.checkpoint is not None else None
            if seed is not None:
                (seed,) = resumed_seeds(run.checkpoint, [seed], resume=run.resume)
            given = read_rows(self, X, sample_weight, cluster, device)
            fit = learn_mixture(given, parameters, self.random_state, monitor, seed=seed)
            self._keep(fit.learned)
            task.end()
        warn_zero_rows(given)
        if warning := fit.warning(parameters):
            warnings.warn(warning, stacklevel=2)
        return self

    def partial_fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Continue learning with more rows, each seen once: stepwise EM.

        The first batch determines the number of fields ("auto": a sixth of its rows), the row sum and the
        initialization. It should be representative and as large as possible; later batches may have any size. After
        `fit`, learning continues from its fields; `fit` always starts over. `max_iter`, `tol` and `execution` are
        ignored, as is the return value of a callback.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Non-negative data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self : PoissonMixture

        Notes
        -----
        Ctrl-C takes effect at the end of the batch; during the first batch it leaves the mixture unchanged. A model
        file stores what prediction needs, not the state of the stream: use pickle for that.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from tnesi import PoissonMixture
        >>> X, _ = load_digits(return_X_y=True)
        >>> mixture = PoissonMixture(n_components=100, random_state=0)
        >>> for start in range(0, len(X), 600):
        ...     _ = mixture.partial_fit(X[start : start + 600])
        >>> mixture.n_samples_seen_
        1797
        """
        self.check_parameters()
        first = self._learned is None and self._stream is None
        known = getattr(self, "n_zero_rows_", 0)
        with whole_batch(self, first=first):
            given = read_rows(self, X, sample_weight, reset=first, batch=True)
            stream, _, _ = learn_batch(
                self._stream, self._learned, given, parameters_of(self), self.random_state, self.half_life
            )
            self._keep_stream(stream)
            if listener := listener_of(self):
                listener(stream.history[-1])
        warn_zero_rows(given, known)
        return self

    @property
    def model_(self) -> MixtureModel:
        """The fitted model, an immutable value."""
        check_is_fitted(self)
        if self._stream is not None:
            return self._stream.model
        assert self._learned is not None
        return self._learned.model

    @property
    def learned_(self) -> LearnedMixture:
        """The fitted model with the history of its learning."""
        check_is_fitted(self)
        if self._stream is not None:
            return self._stream.learned()
        assert self._learned is not None
        return self._learned

    @property
    def means_(self) -> Array:
        """The fields W, an array of shape (n_components, n_features)."""
        return self.model_.fields.w

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, and below it what was learned."""
        diagram = str(estimator_html_repr(self))
        return diagram + mixture_summary(self.model_, self.n_iter_) if self.__sklearn_is_fitted__() else diagram

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned is not None or self._stream is not None

    def _keep(self, learned: LearnedMixture) -> None:
        self._learned, self._stream = learned, None
        model = learned.model
        self.n_components_, self.truncation_, self.row_sum_ = model.n_fields, model.truncation, model.row_sum
        if learned.n_rows is not None:
            self.n_samples_seen_, self.n_zero_rows_ = learned.n_rows, learned.n_zero
        self.history_, self.n_iter_ = learned.history, learned.n_iter
        self.lower_bound_, self.converged_ = learned.lower_bound, learned.converged

    def _keep_stream(self, stream: MixtureStream) -> None:
        self._learned, self._stream = None, stream
        self.n_components_, self.truncation_, self.row_sum_ = stream.n_fields, stream.truncation, stream.row_sum
        self.n_samples_seen_, self.n_zero_rows_ = stream.n_rows, stream.n_zero
        self.history_, self.n_iter_ = stream.history, stream.n_iter
        self.lower_bound_, self.converged_ = stream.lower_bound, False

    def transform(self, X: object) -> sparse.csr_array | Array:
        """Return the activities of the fields, a sparse array of shape (n_samples, n_components).

        With ``set_output(transform="pandas")`` or ``"polars"`` it is a dense frame.
        """
        found = [own.to_csr(self.n_components_) for _, own in self._activated(X)]
        joined = found[0] if len(found) == 1 else sparse.csr_array(sparse.vstack(found, format="csr"))
        return joined.toarray() if outputs_frames(self) else joined

    def predict(self, X: object) -> Array:
        """Return the best field of each row."""
        return np.concatenate([own.best for _, own in self._activated(X)])

    def score_samples(self, X: object) -> Array:
        """Return the free energy of each row in nats, a lower bound of its log-likelihood."""
        model = self.model_.with_threads(resolve_threads(self.n_jobs))
        return np.concatenate([model.free_energy(rows, own) for rows, own in self._activated(X)])

    def score(self, X: object, y: object = None) -> float:
        """Return the mean free energy of the rows in nats."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the generative model: a field at random, then Poisson counts around it.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Counts y; they include the 1 that normalization adds to every feature.
        fields : ndarray of shape (n_samples,)
            The field of each row.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, 1)
        return self.model_.sample(n_samples, check_random_state(self.random_state))

    def _activated(self, X: object) -> Iterator[tuple[Rows, Activities]]:
        """Yield rows with their activities, in blocks if the data are not in memory."""
        check_is_fitted(self)
        n_threads = resolve_threads(self.n_jobs)
        with device_for(run_of(self), n_threads) as device:
            model = on_device(self.model_.with_threads(n_threads), device)
            for block in checked_blocks(self, X, device, reset=False):
                yield model.activate(block)

    def check_parameters(self) -> None:
        """Raise InvalidParameterError if a parameter is invalid, as `fit` does."""
        check_mixture(self.get_params(deep=False))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Return `random_state` if it is a seed, else 0."""
    return int(random_state) if isinstance(random_state, Integral) else 0


def run_of(mixture: PoissonMixture) -> Local:
    """Return the execution settings of a mixture."""
    return mixture.execution or Local()


def listener_of(mixture: PoissonMixture) -> Listener | None:
    """Return the listener that receives a record after each iteration."""
    return listener_for(mixture.verbose, run_of(mixture).callback)


def parameters_of(mixture: PoissonMixture) -> MixtureParameters:
    """Return the parameters of a mixture as training functions take them."""
    run = run_of(mixture)
    return MixtureParameters(
        n_components=mixture.n_components,
        truncation=mixture.truncation,
        row_sum=mixture.row_sum,
        search=mixture.search,
        max_iter=mixture.max_iter,
        tol=mixture.tol,
        prior_strength=mixture.prior_strength,
        n_threads=resolve_threads(mixture.n_jobs),
        checkpoint=None if run.checkpoint is None else Path(run.checkpoint),
        resume=bool(run.resume),
        verbose=mixture.verbose,
    )
