"""PoissonMixture: the first layer alone, an unsupervised mixture of many Poisson fields."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
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
from tnesi.estimators.first_layer import learn_first_layer
from tnesi.estimators.given_rows import GivenRows
from tnesi.estimators.mixture_parameters import DEFAULT_TRUNCATION, check_mixture
from tnesi.estimators.parameters import check_integer, unchanged_on_failure
from tnesi.estimators.streaming import FOR_PREDICTION, check_stream, learn_batch, settle, whole_batch
from tnesi.execution.dask.cluster import cluster_for
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.activities import Activities
from tnesi.model.fields import Prior
from tnesi.model.rows import Matrix, Rows, ZeroRows, normalize
from tnesi.search.neighbors import NeighborSearch
from tnesi.system.threads import resolve_threads
from tnesi.training.checkpoint import checkpoints_in, kept_seeds
from tnesi.training.em import FreeEnergy, log_sum_of_joints
from tnesi.training.monitor import Listener, Monitor, Record, print_record
from tnesi.training.self_labeling import TopLayer
from tnesi.training.stepwise import Stepwise

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
    norm : float or "auto", default="auto"
        The sum A to which each row is normalized, larger than the number of features; a larger one makes the
        fields more selective. "auto" chooses it from the data; the choice is `norm_`.
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
    shrinkage : float, default=1.0
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
    weights_ : ndarray of shape (n_components, n_features)
        The fields W; every row sums to `norm_` (nearly, with the Hebbian solver).
    norm_ : float
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
    >>> mixture.weights_.shape
    (100, 64)
    >>> mixture.transform(X[:2]).shape
    (2, 100)
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
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.engine = engine
        self.scheduler = scheduler
        self.checkpoint = checkpoint
        self.resume = resume

    _stream: Stepwise | None = None
    _mass: Array | None = None

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
        self._check_parameters()
        with unchanged_on_failure(self), checkpoints_in(self.checkpoint), cluster_for(self) as cluster:
            seed = int(check_random_state(self.random_state).randint(2**31)) if self.checkpoint is not None else None
            if seed is not None:
                (seed,) = kept_seeds(self.checkpoint, [seed], resume=self.resume)
            given = GivenRows.of(self, X, sample_weight, cluster)
            _, monitor = self._learn(given, seed=seed)
        given.mention_zero_rows()
        if trouble := self._trouble(monitor):
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from more rows, each of which has to be seen once only: stepwise EM.

        The first batch decides what `fit` would decide: the number of fields ("auto": a sixth of its rows), the norm,
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
        self._check_parameters()
        check_stream(self)
        first = not hasattr(self, "n_components_")
        known = getattr(self, "n_zero_rows_", 0)
        with whole_batch(self, first=first):
            given = GivenRows.of(self, X, sample_weight, reset=first, batch=True)
            learn_batch(self, given)
        given.mention_zero_rows(known)
        return self

    def _learn(
        self, given: GivenRows, top: TopLayer | None = None, place: Record | None = None, seed: int | None = None
    ) -> tuple[Activities, Monitor]:
        """Learn from checked rows, with a second layer, in a committee."""
        monitor = Monitor(float(self.tol), self._listener(), place or {})
        learned = learn_first_layer(self, given, top, monitor, seed)
        self.n_components_, self.truncation_, self.norm_ = len(learned.fields), learned.truncation, learned.norm
        self._search, self._fields, self.weights_ = learned.search, learned.fields, learned.fields.w
        self._stream, self._mass = None, learned.mass
        self.n_samples_seen_, self.n_zero_rows_ = given.n_rows, given.n_zero
        self.history_ = monitor.history
        self.n_iter_ = max(len(monitor.history) - (self.solver == "em"), 1)
        self.lower_bound_ = monitor.history[-1]["free_energy"] if monitor.history else float("nan")
        self.converged_ = monitor.converged
        return learned.activities, monitor

    def _trouble(self, monitor: Monitor) -> str | None:
        """Return what to warn of."""
        if monitor.interrupted:
            return (
                "learning was interrupted: the model is as the last complete iteration left it "
                f"({len(monitor.history) - (self.solver == 'em')} complete)"
            )
        if not monitor.converged and self.tol > 0 and self.n_iter_ >= self.max_iter:
            return (
                f"{self.n_iter_} iterations did not reach tol={self.tol:g}: the model can be used, but more "
                "iterations (max_iter) may improve it"
            )
        return None

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
        n_threads, found = resolve_threads(self.n_threads), []
        for rows, own in self._activated(X):
            energy = FreeEnergy.of(rows, None, -np.log(self.n_components_), n_threads)
            found.append(energy.samples(log_sum_of_joints(self._fields, own, self.norm_)))
        return np.concatenate(found)

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
        random = check_random_state(self.random_state)
        fields = random.randint(self.n_components_, size=n_samples)
        return random.poisson(self.weights_[fields]).astype(np.float64), fields

    def _activated(self, X: Any) -> Iterator[tuple[Rows, Activities]]:
        """Yield rows with their activities, block by block where the data are not in memory."""
        check_is_fitted(self)
        for block in checked_blocks(self, X, reset=False):
            yield self._activate(block)

    def _activate(self, X: Matrix, prior: Prior | None = None, settings: Any = None) -> tuple[Rows, Activities]:
        """Find the fields of checked rows; `settings` is the estimator whose n_threads and zero_rows count."""
        settings = settings or self
        rows = normalize(X, self.norm_, settings.zero_rows)
        search = replace(self._search, n_threads=resolve_threads(settings.n_threads))
        with nullcontext() if isinstance(search, NeighborSearch) else single_threaded_blas():
            return rows, search.find(self._fields, rows, prior)

    def _listener(self) -> Listener | None:
        if not self.verbose:
            return self.callback

        def both(record: dict[str, Any]) -> bool:
            print_record(record)
            return bool(self.callback is not None and self.callback(record))

        return both

    def _check_parameters(self) -> None:
        check_mixture(self)

    def __getattr__(self, name: str) -> Any:
        if name in FOR_PREDICTION and self._stream is not None:
            settle(self)
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags
