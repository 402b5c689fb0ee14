"""PoissonMixture: the first layer alone, an unsupervised mixture of many Poisson fields."""

from __future__ import annotations

import os
import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from tnesi._first_layer import learn_first_layer
from tnesi._given_rows import GivenRows
from tnesi._parameters import check_choice, check_integer, check_real, check_rows, unchanged_on_failure
from tnesi.engine.cluster import cluster_for
from tnesi.engine.em import FreeEnergy, log_sum_of_joints
from tnesi.engine.monitor import Listener, Monitor, Record, print_record
from tnesi.engine.threads import resolve_threads
from tnesi.engine.top import TopLayer
from tnesi.kernels.blas import single_threaded_blas
from tnesi.layers.activities import Activities
from tnesi.layers.fields import Prior
from tnesi.layers.input import Rows, ZeroRows, normalise
from tnesi.search.neighbours import NeighbourSearch

Array = npt.NDArray[Any]

DEFAULT_TRUNCATION = 15
LARGEST_NORM = 1e12
LARGEST_SHRINKAGE = 1e6
MOST_THREADS = 1024
MOST = 2**31 - 1


class PoissonMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):
    """Truncated mixture of Poisson distributions for non-negative data: the unsupervised first layer.

    Every row is normalised to a constant sum, so only the proportions within a row count. A component is called
    a field: a template of D weights. A point is explained by its few best fields only (truncation).

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of fields C. "auto" is a sixth of the rows, at most 10,000, never more than the distinct rows.
    truncation : int or None, default=15
        How many fields C' may explain a point. None is the non-truncated mixture, far slower. The default
        shrinks to the number of fields where there are fewer.
    norm : float or "auto", default="auto"
        The sum A to which each row is normalised, larger than the number of features; a larger one makes the
        fields more selective. "auto" chooses it from the data; the choice is `norm_`.
    solver : {"em", "hebbian"}, default="em"
        "em" is truncated variational EM with exact M-steps. "hebbian" is the published online rule.
    search : {"neighbours", "exact"}, default="neighbours"
        How EM and prediction find a point's best fields. "neighbours" looks near the best field found so far and
        its cost does not grow with the number of fields; "exact" looks at all of them. With 512 fields or fewer,
        or with a truncation below 5 the two are the same. The Hebbian solver always looks at all fields.
    max_iter : int, default=100
        Largest number of iterations over the data.
    tol : float, default=2e-3
        Stop when an iteration gains less than this, in nats per row; 0 always makes `max_iter` iterations.
    shrinkage : float, default=1.0
        Every field is drawn to the mean of the data as if it had seen so many rows there (EM only): fields of few
        rows then explain new ones better. 0 is maximum likelihood, as published.
    batch_size : int, default=25
        Rows in a mini-batch (Hebbian solver only).
    learning_rate : float, default=0.2
        The rate is this times C / N (Hebbian solver only).
    zero_rows : {"error", "uniform"}, default="error"
        What to do with rows that are all zero: refuse them, or treat them as evenly spread.
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
        A record per iteration: free energy, share of rows with a new best field, search used, seconds.
    lower_bound_ : float
        Free energy of the training rows, nats per row: a lower bound of their log-likelihood.
    n_iter_ : int
        Number of iterations.
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
        search: Literal["neighbours", "exact"] = "neighbours",
        max_iter: int = 100,
        tol: float = 2e-3,
        shrinkage: float = 1.0,
        batch_size: int = 25,
        learning_rate: float = 0.2,
        zero_rows: ZeroRows = "error",
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
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.engine = engine
        self.scheduler = scheduler
        self.checkpoint = checkpoint
        self.resume = resume

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the fields.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Non-negative data. uint8 and float32 are used as they are; other types become float32. A dask array stays
            on the cluster with ``engine="dask"``.
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
        with unchanged_on_failure(self), cluster_for(self) as cluster:
            _, monitor = self._learn(GivenRows.of(self, X, sample_weight, cluster))
        if trouble := self._trouble(monitor):
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def _learn(
        self, given: GivenRows, top: TopLayer | None = None, place: Record | None = None
    ) -> tuple[Activities, Monitor]:
        """Learn from checked rows, with a second layer, in a committee."""
        monitor = Monitor(float(self.tol), self._listener(), place or {})
        learned = learn_first_layer(self, given, top, monitor)
        self.n_components_, self.truncation_, self.norm_ = len(learned.fields), learned.truncation, learned.norm
        self._search, self._fields, self.weights_ = learned.search, learned.fields, learned.fields.w
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

    def transform(self, X: Any) -> sparse.csr_array:
        """Return the activities of the fields, a sparse array of shape (n_samples, n_components)."""
        check_is_fitted(self)
        return self._activate(check_rows(self, X, reset=False))[1].to_csr(self.n_components_)

    def predict(self, X: Any) -> Array:
        """Return the best field of each row."""
        check_is_fitted(self)
        return self._activate(check_rows(self, X, reset=False))[1].best

    def score_samples(self, X: Any) -> Array:
        """Return the free energy of each row in nats, a lower bound of its log-likelihood."""
        check_is_fitted(self)
        rows, activities = self._activate(check_rows(self, X, reset=False))
        energy = FreeEnergy.of(rows, None, -np.log(self.n_components_), resolve_threads(self.n_threads))
        return energy.samples(log_sum_of_joints(self._fields, activities, self.norm_))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean free energy of the rows in nats."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the generative model: a field at random, then Poisson counts around it.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Counts y; they include the 1 that normalisation adds to every feature.
        fields : ndarray of shape (n_samples,)
            The fields they were drawn from.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, 1)
        random = check_random_state(self.random_state)
        fields = random.randint(self.n_components_, size=n_samples)
        return random.poisson(self.weights_[fields]).astype(np.float64), fields

    def _activate(self, X: Array, prior: Prior | None = None, settings: Any = None) -> tuple[Rows, Activities]:
        """Find the fields of checked rows; `settings` is the estimator whose n_threads and zero_rows count."""
        settings = settings or self
        rows = normalise(X, self.norm_, settings.zero_rows)
        search = replace(self._search, n_threads=resolve_threads(settings.n_threads))
        with nullcontext() if isinstance(search, NeighbourSearch) else single_threaded_blas():
            return rows, search.find(self._fields, rows, prior)

    def _listener(self) -> Listener | None:
        if not self.verbose:
            return self.callback

        def both(record: dict[str, Any]) -> bool:
            print_record(record)
            return bool(self.callback is not None and self.callback(record))

        return both

    def _check_parameters(self) -> None:
        if self.n_components != "auto":
            check_integer("n_components", self.n_components, 1, ", or 'auto'", most=MOST)
        if self.truncation is not None:
            check_integer("truncation", self.truncation, 1, ", or None for the non-truncated mixture", most=MOST)
            too_many = self.n_components != "auto" and self.truncation > self.n_components
            if too_many and self.truncation != DEFAULT_TRUNCATION:
                raise ValueError(
                    f"truncation={self.truncation} is more than the {self.n_components} fields: pass at most "
                    "n_components, or None for the non-truncated mixture"
                )
        if self.norm != "auto":
            check_real("norm", self.norm, 0, LARGEST_NORM, open_low=True)
        if self.n_threads is not None:
            check_integer("n_threads", self.n_threads, 1, ", or None for all processors", most=MOST_THREADS)
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r}: pass a function, or None")
        check_choice("engine", self.engine, ("local", "dask"))
        if self.engine == "dask" and self.solver == "hebbian":
            raise ValueError("solver='hebbian' goes through the rows one by one: pass engine='local', or solver='em'")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True: pass the folder that has the state as checkpoint")
        check_choice("solver", self.solver, ("em", "hebbian"))
        check_choice("search", self.search, ("neighbours", "exact"))
        check_choice("zero_rows", self.zero_rows, ("error", "uniform"))
        check_integer("max_iter", self.max_iter, 1, most=MOST)
        check_real("tol", self.tol, 0)
        check_real("shrinkage", self.shrinkage, 0, LARGEST_SHRINKAGE)
        check_integer("batch_size", self.batch_size, 1, most=MOST)
        check_real("learning_rate", self.learning_rate, 0, open_low=True)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags
