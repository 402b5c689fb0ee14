"""Bad input raises an error that says what to do next."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.execution import Dask, Local
from tnesi.paper import EM, NeuralSimpletron, OnlineRule

X = np.random.default_rng(0).integers(1, 9, (40, 6)).astype(float)
y = np.arange(40) % 2


def changed(value: float) -> np.ndarray:
    bad = X.copy()
    bad[3, 2] = value
    return bad


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (changed(-1), "Negative values.*shift or clip"),
        (changed(np.nan), "contains NaN"),
        (changed(np.inf), "contains infinity"),
        (X[0], "Expected 2D array"),
        (X[None], "dim 3"),
        (X[:, :1], "n_features = 1"),
        (X[:0], "0 sample"),
        (X.astype(complex) * 1j, "Complex data"),
        (np.array([["a", "b"], ["c", "d"]]), "could not convert string"),
    ],
)
def test_data(bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PoissonMixture(row_sum=30).fit(bad)
    with pytest.raises(ValueError, match=message):
        SimpletronClassifier(PoissonMixture(row_sum=30)).fit(bad, y[: len(bad)])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (-X, "Negative values in data.*shift or clip"),
        (np.where(X[0, 0] == X, np.nan, X), "contains NaN"),
        (np.where(X[0, 0] == X, np.inf, X), "contains infinity"),
        (X[:, :1], "n_features = 1"),
        (X[:0], "minimum of 1 is required"),
        (np.full(X.shape, 1e308), "overflows"),
    ],
)
def test_sparse_data(bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PoissonMixture(row_sum=30).fit(sparse.csr_array(bad))
    with pytest.raises(ValueError, match=message):
        SimpletronClassifier(PoissonMixture(row_sum=30)).fit(sparse.coo_matrix(bad), np.resize(y, len(bad)))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_all_zero_rows_are_ordinary_data(kind: Any) -> None:
    """Zero rows are counted, reported once, and learned from."""
    blank = np.where(np.isin(np.arange(40), [17, 30])[:, None], 0, X)
    for model in (
        PoissonMixture(5, row_sum=30, random_state=0),
        SimpletronClassifier(PoissonMixture(5, row_sum=30), random_state=0),
    ):
        with pytest.warns(UserWarning, match="2 of 40 rows are all zero") as caught:
            model.fit(kind(blank), y)
        assert sum("all zero" in str(one.message) for one in caught) == 1
        assert model.n_zero_rows_ == 2
        assert model.fit(kind(X), y).n_zero_rows_ == 0
        even = kind(np.ones((1, 6)))
        np.testing.assert_array_equal(model.predict(kind(np.zeros((1, 6)))), model.predict(even))


def test_very_many_blank_rows_of_a_wide_sparse_matrix() -> None:
    """Zero rows would become dense: refused before they fill the memory."""
    wide = sparse.csr_array((np.ones(2, np.float32), ([0, 1], [5, 7])), shape=(20_000, 100_000))
    with pytest.raises(ValueError, match=r"19,998 rows are all zero.*would take .* GB of memory"):
        PoissonMixture(2).fit(wide)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_prior_that_outweighs_the_data(kind: Any) -> None:
    """Fields would differ by rounding errors, in other ways for sparse rows than for dense ones."""
    with pytest.raises(ValueError, match=r"prior_strength=1e\+06 outweighs the data \(8 rows per field\).*at most 80;"):
        PoissonMixture(5, row_sum=30, prior_strength=1e6).fit(kind(X))
    PoissonMixture(5, row_sum=30, prior_strength=80, max_iter=3, tol=0).fit(kind(X))


def test_fields_that_do_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tnesi.system.memory.free_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"11 fields of 6 features need .* GB .*n_components=6 or fewer, or use fewer"):
        PoissonMixture(11, row_sum=30).fit(X)
    with pytest.raises(ValueError, match=r"n_components=3 or fewer, or fewer mixtures, or use fewer features"):
        SimpletronClassifier(PoissonMixture(4, row_sum=30), n_mixtures=4).fit(X, y)
    monkeypatch.setattr("tnesi.system.memory.free_memory", lambda: 100)
    with pytest.raises(ValueError, match="not even one field fits; use fewer features"):
        PoissonMixture(row_sum=30).fit(sparse.csr_array(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0: pass an integer of at least 1, or 'auto'"),
        ({"n_components": 2.5}, r"n_components=2\.5"),
        ({"n_components": "many"}, "n_components='many'"),
        ({"n_components": 41}, "n_components=41 exceeds the number of distinct rows .*: pass fewer"),
        ({"truncation": 0}, "truncation=0"),
        ({"n_components": 5, "truncation": 6}, "truncation=6 exceeds the number of fields .*: pass at most"),
        ({"row_sum": 6}, "row_sum=6 must be larger than the number of features"),
        ({"row_sum": -1}, "row_sum=-1"),
        ({"row_sum": "big"}, "row_sum='big'"),
        ({"row_sum": np.nan}, "row_sum=nan"),
        ({"row_sum": np.inf}, "row_sum=inf: pass a number of more than 0 and at most 1e"),
        ({"row_sum": 1e300}, "row_sum=1e.300"),
        ({"n_jobs": "2"}, "n_jobs='2'"),
        ({"n_jobs": 2.5}, "n_jobs=2.5"),
        ({"n_jobs": 2**40}, "at most 1024"),
        ({"execution": Local(callback=3)}, "callback=3: pass a function"),
        ({"execution": Local(resume=True)}, "resume=True needs the folder with the state: pass it as checkpoint"),
        ({"execution": "dask"}, "execution='dask' is not an execution"),
        ({"search": "guess"}, "search='guess'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_iter": True}, "max_iter=True"),
        ({"tol": -1}, "tol=-1"),
        ({"tol": None}, "tol=None"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PoissonMixture(**parameters).fit(X)
    with pytest.raises(ValueError, match=message):
        SimpletronClassifier(PoissonMixture(**parameters)).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"mixture": 80},
            r"mixture=80 is not a mixture: pass a PoissonMixture, such as PoissonMixture\(500\), or None",
        ),
        ({"mixture": PoissonMixture(max_iter=0)}, "max_iter=0"),
        ({"n_jobs": "2"}, "n_jobs='2'"),
        ({"keep_rows": "all"}, "keep_rows='all': pass an integer of at least 2, or 'auto'"),
    ],
)
def test_parameters_of_the_classifier(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimpletronClassifier(**{"mixture": PoissonMixture(row_sum=30), **parameters}).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"threshold": 1.5}, "threshold=1.5: pass a number of at least 0 and at most 1"),
        ({"self_labeling": "yes"}, "self_labeling='yes': pass True or False"),
        ({"recurrent": 1}, "recurrent=1: pass True or False"),
        ({"rule": "hebbian"}, r"rule='hebbian': pass OnlineRule\(\.\.\.\), EM\(\.\.\.\) or None"),
        ({"rule": OnlineRule(max_iter=0)}, "max_iter=0"),
        ({"rule": OnlineRule(batch_size=0)}, "batch_size=0"),
        ({"rule": OnlineRule(learning_rate=0)}, "learning_rate=0: pass a number of more than 0"),
        ({"rule": OnlineRule(label_learning_rate=-1)}, "label_learning_rate=-1"),
        ({"rule": EM(max_iter=0)}, "max_iter=0"),
        ({"rule": EM(label_max_iter=0)}, "label_max_iter=0"),
        ({"rule": EM(tol=-1)}, "tol=-1"),
        ({"rule": EM(prior_strength=-1)}, "prior_strength=-1"),
        ({"execution": Local(checkpoint="state")}, "without checkpoints"),
        ({"execution": Dask()}, "networks learn in this process"),
    ],
)
def test_parameters_of_networks(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeuralSimpletron(**{"row_sum": 30, **parameters}).fit(X, y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.where(np.arange(40) < 3, 5, -1), "of one class"),
        (y[:39], "inconsistent numbers of samples"),
        (None, "y"),
        (np.stack([y, y], axis=1), "1d array"),
        (y + 0.5, "continuous"),
    ],
)
def test_labels(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimpletronClassifier(PoissonMixture(row_sum=30)).fit(X, labels)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(39), "sample_weight.shape"),
        (-np.ones(40), "Negative values"),
        (np.zeros(40), "at least one non-zero"),
        (np.where(y == 1, 0.0, 1.0), "fewer than two classes"),
        (np.where(np.arange(40) == 3, np.nan, 1.0), "NaN"),
    ],
)
def test_weights(weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimpletronClassifier(PoissonMixture(row_sum=30)).fit(X, y, sample_weight=weight)


def test_after_fit() -> None:
    clf = SimpletronClassifier(PoissonMixture(5, truncation=3, row_sum=30), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="6 features"):
        clf.predict(X[:, :5])
    with pytest.raises(ValueError, match=r"39 labels.*40 rows"):
        clf.fit_labels(y[:39])
    with pytest.raises(ValueError, match="y has no labels"):
        clf.fit_labels(np.full(40, -1))
    assert clf.predict(np.zeros((1, 6))).shape == (1,)
    with pytest.raises(ValueError, match="n_samples=0"):
        clf.mixture_.sample(0)


def test_absent_rows_are_not_counted_as_blank() -> None:
    blank, weight = X.copy(), np.ones(40)
    blank[[5, 30]], weight[:10] = 0, 0
    mixture = PoissonMixture(row_sum=30, max_iter=1, tol=0)
    with pytest.warns(UserWarning, match="1 of 30 rows are all zero"):
        mixture.fit(blank, sample_weight=weight)
    weight[30] = 0
    assert mixture.fit(blank, sample_weight=weight).n_zero_rows_ == 0


@pytest.mark.parametrize("factor", [1e-300, 1e-40, 1e38, 1e300])
def test_only_proportions_of_weights_count_for_maximum_likelihood(factor: float) -> None:
    weight = 1.0 + np.arange(40) % 3
    expected, scaled = (
        SimpletronClassifier(
            PoissonMixture(8, row_sum=30, prior_strength=0), labeling="supervised", random_state=0
        ).fit(X, y, sample_weight=w)
        for w in (weight, weight * factor)
    )
    np.testing.assert_allclose(scaled.mixture_.means_, expected.mixture_.means_, rtol=1e-4)
    np.testing.assert_allclose(scaled.class_weights_, expected.class_weights_, atol=1e-4)


@pytest.mark.parametrize("factor", [1e-300, 1e-3, 0.5])
def test_weights_below_one_are_proportions(factor: float) -> None:
    """So that a prior worth one row does not outweigh all data."""
    plain = PoissonMixture(8, row_sum=30, random_state=0).fit(X)
    scaled = PoissonMixture(8, row_sum=30, random_state=0).fit(X, sample_weight=np.full(40, factor))
    np.testing.assert_allclose(scaled.means_, plain.means_, rtol=1e-4)


def stop(record: dict[str, Any]) -> bool:
    raise RuntimeError("the callback failed")


@pytest.mark.parametrize(
    ("parameters", "data"),
    [
        ({"row_sum": 3}, X),
        ({"n_components": 1000}, X),
        ({"n_components": 4, "execution": Local(callback=stop)}, X),
        ({}, -X[:, :5]),
        ({"execution": Local(callback=stop)}, X[:, :5]),
    ],
)
def test_a_failed_fit_leaves_the_model_as_it_was(parameters: dict[str, Any], data: Any) -> None:
    mixture = PoissonMixture(8, truncation=3, row_sum=30, random_state=0)
    for model, own in ((clone(mixture), lambda model: model), (SimpletronClassifier(mixture), attrgetter("mixture"))):
        before = model.fit(X, y).predict(X)
        own(model).set_params(**parameters)
        with pytest.raises((ValueError, RuntimeError)):
            model.fit(data, y)
        np.testing.assert_array_equal(model.predict(X), before)


def test_a_failed_first_fit_leaves_no_model() -> None:
    clf = SimpletronClassifier(PoissonMixture(row_sum=3))
    with pytest.raises(ValueError, match="row_sum=3"):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_a_failed_refit_of_the_labels_loses_nothing() -> None:
    clf = SimpletronClassifier(PoissonMixture(5, truncation=3, row_sum=30), random_state=0).fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match="of one class"):
        clf.fit_labels(np.where(y == 1, 1, -1))
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    assert clf.classes_.tolist() == [0, 1]


def test_rows_that_are_equal_once_normalized() -> None:
    same = np.outer(np.arange(1, 41), X[0])
    mixture = PoissonMixture(row_sum=30, random_state=0).fit(same)
    assert mixture.n_components_ == 1
    clf = SimpletronClassifier(PoissonMixture(row_sum=30), random_state=0).fit(same, y)
    assert np.isfinite(clf.predict_proba(same)).all()
