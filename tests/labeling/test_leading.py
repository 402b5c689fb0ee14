"""Labels that lead: EM with a field per class, against naive Bayes with EM and correspondence analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from tnesi.labeling import leading
from tnesi.labeling.leading import Leading
from tnesi.model.linear_classes import transformed

_WORDS, _TOPICS, _LENGTH = 40, 3, 30


def leading_of(X: Any, weight: Any = None) -> Leading:
    return Leading.of(transformed(X.astype(np.float32), "shares"), weight)


def some(truth: Any, n: int, seed: int = 0) -> Any:
    """Return the labels of n rows of each class, -1 for the others."""
    rng = np.random.default_rng(seed)
    label = np.full(truth.size, -1, np.int32)
    for k in range(truth.max() + 1):
        label[rng.permutation(np.flatnonzero(truth == k))[:n]] = k
    return label


@pytest.fixture(scope="module")
def documents() -> tuple[Any, Any]:
    """Return documents of the same length, as counts of words, and their topics."""
    rng = np.random.default_rng(0)
    topics = 0.7 / _WORDS + 0.3 * rng.dirichlet(np.full(_WORDS, 0.2), _TOPICS)
    truth = rng.integers(_TOPICS, size=240)
    return np.stack([rng.multinomial(_LENGTH, topics[k]) for k in truth]), truth


def naive_bayes_em(X: Any, label: Any, n_classes: int, temperatures: Any) -> Any:
    """Return the posterior by multinomial naive Bayes with EM (Nigam et al. 2000), for classes of equal size.

    The prior of the word probabilities counts as one average document. At a temperature of v words, the likelihood of a
    document is raised to the power v / (number of its words); Nigam's is v = number of its words.
    """
    words, pseudo = X.sum(axis=1, keepdims=True), X.mean(axis=0)
    given = np.eye(n_classes)[label] * (label >= 0)[:, None]
    t = given
    for v in [*temperatures, temperatures[-1]]:
        count = t.T @ X + pseudo
        log_p = np.log(count / count.sum(axis=1, keepdims=True))
        found = softmax(v / words * (X @ log_p.T), axis=1)
        t = np.where(label[:, None] >= 0, given, found)
    return found


@pytest.mark.parametrize("coldest", [1.0, 3.0])
@pytest.mark.parametrize("n", [1, 5])
def test_naive_bayes_em_is_a_special_case(
    documents: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, coldest: float, n: int
) -> None:
    """With n_eff equal to the number of words it is Nigam's, and with other values the same EM at a temperature."""
    X, truth = documents
    monkeypatch.setattr(leading, "_COLDEST", coldest)
    label, first = some(truth, n), _LENGTH / coldest
    classes = leading_of(X).learn(label, _TOPICS, first)
    temperatures = first * coldest ** (np.minimum(np.arange(20), 14) / 14)
    assert temperatures[-1] == pytest.approx(_LENGTH)
    expected = naive_bayes_em(X, label, _TOPICS, temperatures)
    assert np.ptp(expected[:, 0]) > 0.9
    np.testing.assert_allclose(classes.posterior(X.astype(np.float32)), expected, atol=2e-3)


def test_sparse_rows_are_the_same(documents: tuple[Any, Any]) -> None:
    X, truth = documents
    label, both = some(truth, 2), (leading_of(X), leading_of(sparse.csr_array(X)))
    critical = [one.critical(_TOPICS) for one in both]
    assert critical[0] == pytest.approx(critical[1], rel=1e-3)
    dense, thin = (one.learn(label, _TOPICS, critical[0]).weights for one in both)
    np.testing.assert_allclose(dense, thin, atol=1e-3)


def test_weights_are_repetitions(documents: tuple[Any, Any], rng: np.random.Generator) -> None:
    X, truth = documents
    label, count = some(truth, 5), rng.integers(0, 4, len(X))
    kept = count > 0
    weighted = leading_of(X[kept], count[kept].astype(np.float32))
    repeated = leading_of(np.repeat(X, count, axis=0))
    assert weighted.critical(_TOPICS) == pytest.approx(repeated.critical(_TOPICS), rel=1e-3)
    np.testing.assert_allclose(
        weighted.learn(label[kept], _TOPICS, 12.0).weights,
        repeated.learn(np.repeat(label, count), _TOPICS, 12.0).weights,
        atol=1e-3,
    )


def test_the_order_of_rows_and_classes_does_not_matter(documents: tuple[Any, Any], rng: np.random.Generator) -> None:
    X, truth = documents
    label, order, other = some(truth, 2), rng.permutation(len(X)), np.array([2, 0, 1, -1], np.int32)
    weights = leading_of(X).learn(label, _TOPICS, 12.0).weights
    of_order = leading_of(X[order]).learn(label[order], _TOPICS, 12.0).weights
    np.testing.assert_allclose(of_order, weights, atol=1e-3)
    renamed = leading_of(X).learn(other[label], _TOPICS, 12.0).weights
    np.testing.assert_allclose(renamed[:, other[:3]], weights, atol=1e-3)


def test_features_that_never_occur_say_nothing(documents: tuple[Any, Any]) -> None:
    X, truth = documents
    wider = np.hstack([X[:, :10], np.zeros((len(X), 3)), X[:, 10:]])
    both = leading_of(X), leading_of(wider)
    assert both[0].critical(_TOPICS) == pytest.approx(both[1].critical(_TOPICS), rel=1e-3)
    narrow, wide = (one.learn(some(truth, 2), _TOPICS, 12.0).weights for one in both)
    assert (wide[10:13] == 0).all()
    np.testing.assert_allclose(np.delete(wide, [10, 11, 12], axis=0), narrow, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [240, 25])
def test_critical_value_is_that_of_correspondence_analysis(
    documents: tuple[Any, Any], rng: np.random.Generator, n_classes: int, weighted: bool, n_rows: int
) -> None:
    X = documents[0][:n_rows]
    X = X[:, X.sum(axis=0) > 0]
    w = rng.integers(1, 4, len(X)) if weighted else np.ones(len(X))
    p = X / X.sum(axis=1, keepdims=True)
    m = np.average(p, axis=0, weights=w)
    z = np.sqrt(w / w.sum())[:, None] * (p - m) / np.sqrt(m)
    eigenvalues = np.linalg.svd(z, compute_uv=False) ** 2
    assert leading_of(X, w).critical(n_classes) == pytest.approx(1 / eigenvalues[n_classes - 2], rel=1e-2)


def test_the_critical_value_of_clusters_is_below_their_length() -> None:
    """Contrasts between clusters can exist from a small n_eff on; without clusters, it takes longer documents."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(_WORDS, 0.3), _TOPICS)
    clear = np.stack([rng.multinomial(_LENGTH, topics[k % _TOPICS]) for k in range(300)])
    none = rng.multinomial(_LENGTH, topics.mean(axis=0), 300)
    assert 3 * leading_of(clear).critical(_TOPICS) < leading_of(none).critical(_TOPICS)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, 3], [3, 1], [1, 4], [5, 1]]),
        np.tile([[2, 1, 1]], (5, 1)),
        np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        np.array([[1, 0, 0], [0, 0, 0], [0, 0, 1]]),
    ],
    ids=["two features", "equal rows", "three rows", "an all-zero row"],
)
def test_tiny_data(X: Any) -> None:
    rows = leading_of(X)
    critical = rows.critical(2)
    assert 0 < critical < np.inf
    label = np.full(len(X), -1, np.int32)
    label[[0, -1]] = [0, 1]
    classes = rows.learn(label, 2, critical)
    t = classes.posterior(X.astype(np.float32))
    assert np.isfinite(t).all()
    if (X[0] != X).any():
        assert t[0, 0] > 0.5 > t[-1, 0]


@pytest.mark.parametrize("seed", range(3))
def test_one_label_per_class_leads_to_clusters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(_WORDS, 0.3), 6)
    truth = rng.integers(6, size=900)
    X = np.stack([rng.multinomial(60, topics[k]) for k in truth]).astype(np.float32)
    rows, label = leading_of(X), some(truth, 1, seed)
    critical = rows.critical(6)
    with_all = rows.learn(label, 6, critical).posterior(X)
    assert np.mean(with_all.argmax(axis=1) == truth) > 0.99


def test_an_all_zero_row_without_a_label_moves_nothing_but_the_mean(documents: tuple[Any, Any]) -> None:
    X, truth = documents
    label = some(truth, 2)
    with_zero = leading_of(np.vstack([X, np.zeros((1, _WORDS))]))
    t = with_zero.learn(np.append(label, np.int32(-1)), _TOPICS, 12.0).posterior(X.astype(np.float32))
    expected = leading_of(X).learn(label, _TOPICS, 12.0).posterior(X.astype(np.float32))
    np.testing.assert_allclose(t, expected, atol=0.02)
