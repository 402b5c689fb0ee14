"""Cross-validation with unlabeled rows, which are used for training but not scored.

scikit-learn's splitters and scorers treat the marker of unlabeled rows (-1) as another class. `SemiSupervisedKFold`
puts all unlabeled rows into every training set and none into a test set; `labeled_scorer` leaves them out of a score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRequest

from tnesi.errors import InvalidDataError
from tnesi.labeling.labels import encode_labels, given_labels
from tnesi.types import Array

__all__ = ["SemiSupervisedKFold", "labeled_scorer"]

Scorer = Callable[..., float]


class SemiSupervisedKFold(BaseCrossValidator):
    """Stratified folds of the labeled rows; all unlabeled rows are part of every training set.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds. A class with fewer labels is missing from some test sets.
    shuffle : bool, default=False
        Whether to shuffle the labeled rows of each class before splitting.
    random_state : int, RandomState instance or None, default=None
        Seeds the shuffling.
    unlabeled : object, default=-1
        The marker of rows without a label. Missing values and empty strings are always unlabeled.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from tnesi import SimpletronClassifier
    >>> from tnesi.model_selection import SemiSupervisedKFold
    >>> X, y = load_digits(return_X_y=True)
    >>> y[200:] = -1
    >>> cross_val_score(SimpletronClassifier(random_state=0), X, y, cv=SemiSupervisedKFold(4)).shape
    (4,)
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: int | np.random.RandomState | None = None,
        unlabeled: object = -1,
    ) -> None:
        self.n_splits, self.shuffle, self.random_state, self.unlabeled = n_splits, shuffle, random_state, unlabeled

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: object, y: object = None, groups: object = None) -> Iterator[tuple[Array, Array]]:
        """Yield the training rows, which include all unlabeled ones, and the test rows of each fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Ignored.
        y : array-like of shape (n_samples,)
            Labels, with the marker for unlabeled rows.
        groups : None
            Ignored.
        """
        if y is None:
            raise InvalidDataError("SemiSupervisedKFold needs the labels", parameter="y", advice="pass {y}")
        codes, _ = encode_labels(y, self.unlabeled)
        labeled = np.flatnonzero(codes >= 0)
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        for _, test in folds.split(labeled, codes[labeled]):
            train = np.ones(codes.size, dtype=bool)
            train[labeled[test]] = False
            yield np.flatnonzero(train), labeled[test]


def labeled_scorer(scoring: str | Scorer | None = None, *, unlabeled: object = -1) -> Scorer:
    """Return a scorer that leaves unlabeled rows out, for `cross_val_score`, `GridSearchCV` and the like.

    Parameters
    ----------
    scoring : str, callable or None, default=None
        What to compute on the labeled rows: the name of a score, a scorer, or None for the `score` of the estimator.
        With metadata routing, a scorer that has requested ``sample_weight`` gets the weights of these rows.
    unlabeled : object, default=-1
        The marker of rows without a label.

    Returns
    -------
    scorer : callable
        Called with an estimator, `X`, `y` and optionally `sample_weight`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from tnesi.model_selection import labeled_scorer
    >>> X, y = np.ones((4, 1)), np.array([0, 0, 1, -1])
    >>> always_zero = DummyClassifier(strategy="constant", constant=0).fit(X[:3], y[:3])
    >>> round(labeled_scorer("accuracy")(always_zero, X, y), 3)
    0.667
    """
    return _LabeledScorer(scoring, unlabeled)


class _LabeledScorer:
    """A scorer that can be pickled for parallel jobs, unlike a closure."""

    def __init__(self, scoring: str | Scorer | None, unlabeled: object) -> None:
        self._scoring, self._unlabeled = scoring, unlabeled

    def __call__(self, estimator: object, X: object, y: object, sample_weight: object = None) -> float:
        labeled, labels = given_labels(y, self._unlabeled)
        if not labeled.size:
            raise InvalidDataError(
                "no row to score has a label",
                parameter="y",
                advice="use SemiSupervisedKFold, whose test sets are labeled",
            )
        weight = {} if sample_weight is None else {"sample_weight": _safe_indexing(sample_weight, labeled)}
        scorer = check_scoring(estimator, scoring=self._scoring)
        return float(scorer(estimator, _safe_indexing(X, labeled), labels, **weight))

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks for: with metadata routing, weights reach it if it has requested them."""
        scorer = get_scorer(self._scoring) if isinstance(self._scoring, str) else self._scoring
        if scorer is None or not hasattr(scorer, "get_metadata_routing"):
            return MetadataRequest(owner="labeled_scorer")
        return scorer.get_metadata_routing()
