"""PoissonMixture: the first layer alone, an unsupervised mixture of many Poisson fields."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from tnesi.estimators.blocks import checked_blocks
from tnesi.estimators.mixture_parameters import check_mixture, parameters_from
from tnesi.estimators.parameters import check_integer, unchanged_on_failure, whole_batch
from tnesi.estimators.reading import mention_zero_rows, read_rows
from tnesi.execution.dask.cluster import cluster_for
from tnesi.model.activities import Activities
from tnesi.model.mixture_model import MixtureModel
from tnesi.model.rows import Rows, ZeroRows
from tnesi.system.threads import resolve_threads
from tnesi.training.checkpoint import checkpoints_in, kept_seeds
from tnesi.training.mixture import DEFAULT_TRUNCATION, LearnedMixture, MixtureParameters, learn_mixture
from tnesi.training.monitor import Listener, Monitor, listener_for
from tnesi.training.stream import MixtureStream, learn_batch

Array = npt.NDArray[Any]


class PoissonMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):
    """Truncated mixture of Poisson distributions for non-negative data: the unsupervised first layer.

    Every row is normalized to a constant sum, so only the proportions within a row count. A component is called
    a field: a template of D weights. A point is explained by its few best fields only (truncation).

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of fields C. "auto" is a sixth of the rows, at most 10,000, never more than the distinct rows.
    truncation : int or None, default=15
        How many fields C' may explain a point. None is the non-truncated mixture, far slower. The default
        shrinks to the number of fields where there are fewer.
    row_sum : float or "auto", default="auto"
        The sum A to which each row is normalized, larger than the number of features; a larger one makes the
        fields more selective. "auto" chooses it from the data; the choice is `row_sum_`.
    solver : {"em", "hebbian"}, default="em"
        "em" is truncated variational EM with exact M-steps. "hebbian" is the published online rule.
    search : {"neighbors", "exact"}, default="neighbors"
        How EM and prediction find a point's best fields. "neighbors" looks near the best field found so far and
        its cost does not grow with the number of fields; "exact" looks at all of them. With 512 fields or fewer,
        or with a truncation below 5 the two are the same. The Hebbian solver always looks at all fields.
    max_iter : int, default=100
        Largest number of iterations over the data.
    tol : float, default=2e-3
        Stop when an iteration gains less than this, in nats per row; 0 always makes `max_iter` iterations.
    prior_strength : float, default=1.0
        Every field is drawn to the mean of the data as if it had seen so many rows there (EM only): fields of few
        rows then explain new ones better. 0 is maximum likelihood, as published. More than ten times the rows per
        field is refused.
    batch_size : int, default=25
        Rows in a mini-batch (Hebbian solver only).
    learning_rate : float, default=0.2
        The rate is this times C / N (Hebbian solver only).
    zero_rows : {"uniform", "error"}, default="uniform"
        How to handle rows that are all zero, such as blank images and empty documents. "uniform" treats them as evenly
        spread over all features, and `fit` warns once that there are some. "error" refuses them. In a sparse matrix
        they become dense, and may take 1 GB together; beyond that they are refused.
    half_life : float or None, default=None
        Of `partial_fit`: a row counts half when so many others (their weights, if they have any) have come after it.
        In the long run the fields then know 1.44 half-lives of rows, and follow a stream that changes. None is never to
        forget.
    random_state : int, RandomState instance or None, default=None
        Decides the start and, for the Hebbian solver, the order of the rows.
    n_threads : int or None, default=None
        Threads to use; None is all processors that the process may use, or OMP_NUM_THREADS. The result does not
        depend on it.
    verbose : int, default=0
        Print a line per iteration.
    callback : callable or None, default=None
        Called with the newest record of `history_` after each iteration; a true answer stops the fit.
    engine : {"local", "dask"}, default="local"
        Where the passes over the data run: in this process, or on the workers of a Dask cluster, with the same result.
    scheduler : distributed.Client, str or None, default=None
        The cluster for ``engine="dask"``: a client, or the address of a scheduler; None is the client in use, or else
        a cluster on this machine for the time of the fit.
    checkpoint : str, path or None, default=None
        A folder in which `fit` keeps its state after each iteration, so that it can be resumed.
    resume : bool, default=False
        Whether `fit` goes on from what is in `checkpoint`; the result is that of an undisturbed one.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        The fields W; every row sums to `row_sum_` (nearly, with the Hebbian solver).
    row_sum_ : float
        A, as given or chosen.
    n_components_, truncation_ : int
        C and C', as given or chosen. `truncation_` is C for the non-truncated mixture.
    history_ : list of dict
        A record per iteration: free energy, share of rows with a new best field, search used, seconds. `partial_fit`
        adds a record per batch, with the number of its `rows`, and keeps the last 1,000: the free energy is that of
        the batch before it was learned from, so it says how well new rows are explained (of the first batch: after).
    lower_bound_ : float
        Free energy of the training rows, nats per row: a lower bound of their log-likelihood. After `partial_fit`, that
        of the last record.
    n_iter_ : int
        Number of iterations, and of batches.
    n_samples_seen_ : int
        Number of rows learned from (not in model files).
    n_zero_rows_ : int
        Number of rows learned from that are all zero (not in model files).
    converged_ : bool
        Whether `tol` was reached before `max_iter`.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` had names that are all strings.

    Notes
    -----
    Ctrl-C during `fit` ends learning after the last complete iteration (the last complete mini-batch for the
    Hebbian solver): `fit` warns and returns, and the model can be used as it is. Before the first iteration there is
    nothing to keep: KeyboardInterrupt is raised. A `fit` that fails leaves the model as it was.

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
        solver: Literal["em", "hebbian"] = "em",
        search: Literal["neighbors", "exact"] = "neighbors",
        max_iter: int = 100,
        tol: float = 2e-3,
        prior_strength: float = 1.0,
        batch_size: int = 25,
        learning_rate: float = 0.2,
        zero_rows: ZeroRows = "uniform",
        half_life: float | None = None,
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
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.engine = engine
        self.scheduler = scheduler
        self.checkpoint = checkpoint
        self.resume = resume

    _learned: LearnedMixture | None = None
    _stream: MixtureStream | None = None

    @classmethod
    def from_learned(
        cls, learned: LearnedMixture, feature_names: Array | None = None, parameters: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a fitted mixture from what was learned elsewhere: by a classifier, or before a model was saved."""
        mixture = cls(**parameters or {})
        mixture.n_features_in_ = learned.model.n_features
        if feature_names is not None:
            mixture.feature_names_in_ = feature_names
        mixture._keep(learned)
        return mixture

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the fields.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Non-negative data. uint8 and float32 are used as they are; other types become float32. Sparse data, which
            become CSR of float32, are never made dense. What does not fit into memory is read in blocks: a mapped
            array, a Zarr, HDF5 or Dask array, or anything that `tnesi.data.open_data` reads (its ``rows``). All but
            mapped arrays of uint8 or float32 in C order are copied to a temporary file once. With ``engine="dask"`` a
            Dask array stays on the cluster.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 3 counts like three equal rows, a row of weight 0 is absent. Weights of which none reaches
            1 are proportions: they are scaled so that the largest is 1.

        Returns
        -------
        self : PoissonMixture
        """
        self.check_parameters()
        parameters, monitor = self._parameters(), Monitor(float(self.tol), self._listener())
        with unchanged_on_failure(self), checkpoints_in(self.checkpoint), self._cluster() as cluster:
            seed = int(check_random_state(self.random_state).randint(2**31)) if self.checkpoint is not None else None
            if seed is not None:
                (seed,) = kept_seeds(self.checkpoint, [seed], resume=self.resume)
            given = read_rows(self, X, sample_weight, self.zero_rows, cluster)
            fit = learn_mixture(given, parameters, self.random_state, monitor, seed=seed)
            self._keep(fit.learned)
        mention_zero_rows(given)
        if trouble := fit.trouble(parameters):
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from more rows, each of which has to be seen once only: stepwise EM.

        The first batch decides what `fit` would decide: the number of fields ("auto": a sixth of its rows), the row_sum,
        the start. It should be like what will follow, and as large as can be had. The others may be of any size. After
        `fit`, learning goes on from its fields; `fit` always begins anew. `max_iter`, `tol`, `engine` and `checkpoint`
        have no say here, nor has the answer of `callback`.

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
        Ctrl-C waits for the end of the batch; in the first one, it leaves the mixture as it was. A model file holds
        what predicts, and not what learning goes on from: keep a pickle for that.

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
        if self.solver != "em":
            raise ValueError(f"solver={self.solver!r}: partial_fit is a form of EM; pass solver='em', or call fit")
        first = self._learned is None and self._stream is None
        known = getattr(self, "n_zero_rows_", 0)
        with whole_batch(self, first=first):
            given = read_rows(self, X, sample_weight, self.zero_rows, reset=first, batch=True)
            stream, _, _ = learn_batch(
                self._stream, self._learned, given, self._parameters(), self.random_state, self.half_life
            )
            self._keep_stream(stream)
            if listener := self._listener():
                listener(stream.history[-1])
        mention_zero_rows(given, known)
        return self

    @property
    def model_(self) -> MixtureModel:
        """What has been learned, as a value."""
        check_is_fitted(self)
        if self._stream is not None:
            return self._stream.model
        assert self._learned is not None
        return self._learned.model

    @property
    def learned_(self) -> LearnedMixture:
        """What has been learned, with the record of how."""
        check_is_fitted(self)
        if self._stream is not None:
            return self._stream.learned()
        assert self._learned is not None
        return self._learned

    @property
    def means_(self) -> Array:
        """The fields W, an array of shape (n_components, n_features)."""
        return self.model_.fields.w

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

    def transform(self, X: Any) -> sparse.csr_array | Array:
        """Return the activities of the fields, a sparse array of shape (n_samples, n_components).

        With ``set_output(transform="pandas")`` or ``"polars"`` it is a frame, which is dense.
        """
        found = [own.to_csr(self.n_components_) for _, own in self._activated(X)]
        joined = found[0] if len(found) == 1 else sparse.csr_array(sparse.vstack(found, format="csr"))
        return joined.toarray() if self._frames_wanted() else joined

    def _frames_wanted(self) -> bool:
        """Whether `set_output`, or scikit-learn's configuration, asks for frames."""
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        return bool((own or get_config()["transform_output"]) != "default")

    def predict(self, X: Any) -> Array:
        """Return the best field of each row."""
        return np.concatenate([own.best for _, own in self._activated(X)])

    def score_samples(self, X: Any) -> Array:
        """Return the free energy of each row in nats, a lower bound of its log-likelihood."""
        model = self.model_.with_threads(resolve_threads(self.n_threads))
        return np.concatenate([model.free_energy(rows, own) for rows, own in self._activated(X)])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean free energy of the rows in nats."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the generative model: a field at random, then Poisson counts around it.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Counts y; they include the 1 that normalization adds to every feature.
        fields : ndarray of shape (n_samples,)
            The fields they were drawn from.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, 1)
        return self.model_.sample(n_samples, check_random_state(self.random_state))

    def _activated(self, X: Any) -> Iterator[tuple[Rows, Activities]]:
        """Yield rows with their activities, block by block where the data are not in memory."""
        check_is_fitted(self)
        model = self.model_.with_threads(resolve_threads(self.n_threads))
        for block in checked_blocks(self, X, reset=False):
            yield model.activate(block, None, self.zero_rows)

    def _listener(self) -> Listener | None:
        return listener_for(self.verbose, self.callback)

    def _cluster(self) -> Any:
        return cluster_for(self.engine, self.scheduler, resolve_threads(self.n_threads))

    def _parameters(self) -> MixtureParameters:
        return parameters_from(self.get_params(deep=False))

    def check_parameters(self) -> None:
        """Raise ValueError for parameters with which nothing could be learned; `fit` does so, too."""
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
    """Return the seed that was given as `random_state`; 0 where that was none."""
    return int(random_state) if isinstance(random_state, Integral) else 0
