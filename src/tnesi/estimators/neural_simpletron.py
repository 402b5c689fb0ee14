"""NeuralSimpletron: the networks of the papers, learned with the published online rule; public as `tnesi.paper`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from tnesi.errors import InvalidParameterError
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.estimators.mixture_parameters import LARGEST_PRIOR_STRENGTH, MOST, check_fields, check_run
from tnesi.estimators.parameters import check_choice, check_integer, check_real, reject, unchanged_on_failure
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.reading import read_rows, warn_zero_rows
from tnesi.estimators.simpletron_classifier import stored_rows
from tnesi.execution.device_engine import device_for
from tnesi.execution.settings import Dask, Local
from tnesi.labeling.labels import encode_labels
from tnesi.labeling.second_layer import interruption
from tnesi.model.classifier_model import ClassifierModel, SecondLayer
from tnesi.system.threads import resolve_threads
from tnesi.training.committee import learn_committee
from tnesi.training.mixture import DEFAULT_TRUNCATION, MixtureParameters
from tnesi.training.monitor import listener_for
from tnesi.training.rules import EM, OnlineRule
from tnesi.training.self_labeling import ClassLearner
from tnesi.types import Array


class NeuralSimpletron(FittedClassifier):
    """A Neural Simpletron as in the papers, with the parameters published for MNIST.

    `tnesi.paper.presets` has the members of the family by name. For your own data use
    :class:`tnesi.SimpletronClassifier`, which is more accurate and much faster.

    Parameters
    ----------
    n_components : int or "auto", default=10000
        Number of fields C. "auto" is a sixth of the rows.
    truncation : int or None, default=15
        Number of fields C' that may explain a row. None is the network without truncation.
    row_sum : float or "auto", default=900
        The sum A to which each row is normalized.
    self_labeling : bool, default=True
        Whether the second layer also learns from unlabeled rows.
    recurrent : bool, default=False
        Whether the second layer acts on the first, which then also learns from the labels.
    inferred_feedback : bool, default=False
        Whether labels that a recurrent network has inferred act on the first layer like given ones (not published).
    threshold : float, default=0.6
        Minimum margin between the two best classes for a row to be self-labeled.
    rule : OnlineRule, EM or None, default=None
        How the network learns: the published rule, or EM. None means ``OnlineRule()``. After the published rule,
        predictions compare a row with all fields; after EM, with the fields near its best one.
    unlabeled : object, default=-1
        The marker of unlabeled rows in `y`.
    execution : Local or None, default=None
        Its `callback` receives a record after each pass. Networks have no checkpoints.
    random_state : int, RandomState instance or None, default=None
        Seeds the initialization and the order of the rows.
    n_jobs : int or None, default=None
        Number of threads. None and -1 use all processors. The result does not depend on it.
    verbose : int, default=0
        Whether to print a line per pass.

    Attributes
    ----------
    classes_, class_weights_, mixture_, labeling_, activities_, label_distributions_, transduction_, n_iter_ :
        See :class:`tnesi.SimpletronClassifier`.

    References
    ----------
    D. Forster and J. Lücke, "Truncated variational EM for semi-supervised neural simpletrons", IJCNN 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tnesi.paper import NeuralSimpletron, OnlineRule
    >>> X, y = load_digits(return_X_y=True)
    >>> y[100:] = -1
    >>> network = NeuralSimpletron(80, row_sum=180, rule=OnlineRule(max_iter=5), random_state=0).fit(X, y)
    >>> network.labeling_
    'self-labeling'
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] = 10_000,
        *,
        truncation: int | None = DEFAULT_TRUNCATION,
        row_sum: float | Literal["auto"] = 900,
        self_labeling: bool = True,
        recurrent: bool = False,
        inferred_feedback: bool = False,
        threshold: float = 0.6,
        rule: OnlineRule | EM | None = None,
        unlabeled: Any = -1,
        execution: Local | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.truncation = truncation
        self.row_sum = row_sum
        self.self_labeling = self_labeling
        self.recurrent = recurrent
        self.inferred_feedback = inferred_feedback
        self.threshold = threshold
        self.rule = rule
        self.unlabeled = unlabeled
        self.execution = execution
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn both layers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Non-negative data, labeled and unlabeled rows together.
        y : array-like of shape (n_samples,)
            Labels; unlabeled rows have the marker `unlabeled`. If no row has a label, only the first layer of a
            feed-forward network learns.
        sample_weight : array-like of shape (n_samples,), default=None
            See :meth:`tnesi.SimpletronClassifier.fit`.

        Returns
        -------
        self : NeuralSimpletron
        """
        self.check_parameters()
        run = self._run()
        with unchanged_on_failure(self), device_for(run, resolve_threads(self.n_jobs)) as device:
            given = read_rows(self, X, sample_weight, device=device)
            check_consistent_length(X, y)
            label, names = encode_labels(y, self.unlabeled, present=given.present, none_is_fine=not self.recurrent)
            random = check_random_state(self.random_state)
            seed, top_seed = (int(random.randint(2**31)) for _ in range(2))
            learner = self._class_learner(label, names.size, given.weight, top_seed) if names.size else None
            along = learner if isinstance(self._rule, OnlineRule) or self.recurrent else None
            committee = learn_committee(
                given, self._parameters(), [seed], listener_for(self.verbose, run.callback), along
            )
            rows = stored_rows(given, committee.activities)
            models = tuple(mixture.model for mixture in committee.mixtures)
            model = ClassifierModel(models, recurrent=bool(self.recurrent), rows=rows, label=label)
            warning = None
            if learner is not None:
                if along is None:
                    learner.begin(rows.activities.shape[1])
                if isinstance(self._rule, EM):
                    learner.learn(rows.activities)
                model, warning = replace(model, layer=self._layer_of(learner, names)), interruption(learner)
            parameters = {
                "n_components": self.n_components,
                "truncation": self.truncation,
                "row_sum": self.row_sum,
                "prior_strength": self._rule.prior_strength if isinstance(self._rule, EM) else 0.0,
                "search": "exact" if isinstance(self._rule, OnlineRule) else "neighbors",
                "random_state": seed,
                "n_jobs": self.n_jobs,
            }
            feature_names = getattr(self, "feature_names_in_", None)
            self._keep_mixtures([PoissonMixture.from_learned(committee.mixtures[0], feature_names, parameters)])
            self.n_samples_seen_, self.n_zero_rows_ = given.n_rows, given.n_zero
            self._keep_model(model, names)
        warn_zero_rows(given)
        if warning := committee.warning or warning:
            warnings.warn(warning, stacklevel=2)
        return self

    def _run(self) -> Local:
        return self.execution or Local()

    def fit_labels(self, y: Any) -> Self:
        """Relearn the second layer of a feed-forward network for other labels, on the stored activities.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels of all rows given to `fit`, or of those with a positive weight.

        Returns
        -------
        self : NeuralSimpletron
        """
        check_is_fitted(self)
        self.check_parameters()
        if self.recurrent:
            raise InvalidParameterError(
                "the first layer of a recurrent network has also learned from the labels",
                parameter="recurrent",
                advice="call fit instead",
            )
        model, rows, label, names = self._relabeled(y)
        learner = self._class_learner(
            label, names.size, rows.weight, int(check_random_state(self.random_state).randint(2**31))
        )
        learner.begin(rows.activities.shape[1])
        learner.learn(rows.activities)
        with unchanged_on_failure(self):
            self._keep_model(replace(model, layer=self._layer_of(learner, names), label=label))
        if warning := interruption(learner):
            warnings.warn(warning, stacklevel=2)
        return self

    @property
    def _rule(self) -> OnlineRule | EM:
        return OnlineRule() if self.rule is None else self.rule

    def check_parameters(self) -> None:
        """Raise InvalidParameterError if a parameter is invalid, as `fit` does."""
        check_fields(self.n_components, self.truncation, self.row_sum)
        for name in ("self_labeling", "recurrent", "inferred_feedback"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                reject(name, getattr(self, name), "pass True or False")
        check_real("threshold", self.threshold, 0, 1)
        rule = self._rule
        if not isinstance(rule, (OnlineRule, EM)):
            reject("rule", rule, "pass OnlineRule(...), EM(...) or None")
        if rule.max_iter is not None or isinstance(rule, EM):
            check_integer("max_iter", rule.max_iter, 1, most=MOST)
        check_integer("batch_size", rule.batch_size, 1, most=MOST)
        check_real("label_learning_rate", rule.label_learning_rate, 0, open_low=True)
        if isinstance(rule, OnlineRule):
            check_real("learning_rate", rule.learning_rate, 0, open_low=True)
            check_choice("e_step", rule.e_step, ("exact", "partial"))
            if rule.e_step == "partial" and (self.recurrent or self.truncation is None):
                reject("e_step", rule.e_step, "partial E-steps need a truncated feed-forward network; pass 'exact'")
        else:
            check_integer("label_max_iter", rule.label_max_iter, 1, most=MOST)
            check_real("tol", rule.tol, 0)
            check_real("prior_strength", rule.prior_strength, 0, LARGEST_PRIOR_STRENGTH)
        check_run(self.execution, self.n_jobs)
        if isinstance(self.execution, Dask) or (self.execution is not None and self.execution.checkpoint is not None):
            reject(
                "execution",
                self.execution,
                "networks learn in this process, without checkpoints: pass Local(callback=...)",
            )

    def _parameters(self) -> MixtureParameters:
        given: dict[str, Any] = {
            "n_components": self.n_components,
            "truncation": self.truncation,
            "row_sum": self.row_sum,
            "n_threads": self._n_threads(),
            "verbose": self.verbose,
        }
        if isinstance(self._rule, OnlineRule):
            return MixtureParameters(**given, online=self._rule, tol=0.0, search="exact")
        rule = self._rule
        return MixtureParameters(**given, max_iter=rule.max_iter, tol=rule.tol, prior_strength=rule.prior_strength)

    def _class_learner(self, label: Array, n_classes: int, weight: Array | None, seed: int) -> ClassLearner:
        rule = self._rule
        most_labels = int(np.bincount(label[label >= 0], minlength=1).max())
        return ClassLearner(
            label=label,
            weight=weight,
            n_classes=n_classes,
            self_label=bool(self.self_labeling),
            threshold=self.threshold,
            recurrent=bool(self.recurrent),
            inferred_feedback=bool(self.inferred_feedback),
            learning_rate=rule.label_learning_rate,
            max_iter=rule.label_max_iter if isinstance(rule, EM) else rule.passes(most_labels),
            batch_size=rule.batch_size,
            exact=isinstance(rule, EM),
            n_threads=resolve_threads(self.n_jobs),
            rng=np.random.default_rng(seed),
        )

    def _layer_of(self, learner: ClassLearner, names: Array) -> SecondLayer:
        return SecondLayer(learner.classes, names, "self-labeling" if self.self_labeling else "supervised")
