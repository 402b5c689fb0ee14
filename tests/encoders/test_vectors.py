"""VectorEncoder: signed vectors as positive and negative parts of their principal directions."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tnesi import SimpletronClassifier
from tnesi.encoders import VectorEncoder


@parametrize_with_checks([VectorEncoder(), VectorEncoder(n_directions=None, center=False)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def embeddings(n: int = 60, d: int = 30, seed: int = 0) -> tuple[Any, Any]:
    """Generate embeddings of three topics, far from the origin like those of many models."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return (3 + rng.normal(0, 1, (3, d))[y] + rng.normal(0, 0.7, (n, d))).astype(np.float32), y


finite = st.floats(-1e300, 1e300, allow_subnormal=False)


@given(arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 6)), elements=finite))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_rows_are_non_negative_and_of_length_one(vectors: Any) -> None:
    rows = VectorEncoder(n_directions=None).fit_transform(vectors / 1e10)
    assert rows.dtype == np.float32
    assert rows.min() >= 0
    half = rows.shape[1] // 2
    assert not (np.minimum(rows[:, :half], rows[:, half:]) > 0).any()  # a number has one sign
    lengths = np.linalg.norm(rows, axis=1)
    assert np.all(np.isclose(lengths, 1, atol=1e-4) | (lengths == 0))


def test_directions_are_principal_ones() -> None:
    X, _ = embeddings()
    encoder = VectorEncoder(n_directions=5).fit(X)
    singular = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5]
    np.testing.assert_allclose(np.abs((encoder.directions_ * singular).sum(axis=1)), 1, atol=1e-3)
    projected = (X - X.mean(axis=0)) @ encoder.directions_.T
    rows = encoder.transform(X)
    decoded = rows[:, :5] - rows[:, 5:]
    np.testing.assert_allclose(decoded, projected / np.linalg.norm(projected, axis=1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize(("wanted", "found"), [(7, 7), (100, 30), (None, 30), (1.0, 1)])
def test_number_of_directions(wanted: Any, found: int) -> None:
    X, _ = embeddings()
    assert VectorEncoder(n_directions=wanted).fit_transform(X).shape == (60, 2 * found)
    shares = [VectorEncoder(n_directions=share).fit(X).n_directions_ for share in (0.2, 0.6, 0.95)]
    assert shares == sorted(shares)
    assert VectorEncoder().fit(X).n_directions_ == 16
    assert VectorEncoder().fit(X[:, :4]).n_directions_ == 4


@given(st.lists(st.integers(1, 59), max_size=4, unique=True))
def test_blocks_give_the_same_as_the_whole(cuts: list[int]) -> None:
    X, _ = embeddings()
    X = X + np.float32(1e3)  # a mean far from zero must not cost precision
    whole, parts = VectorEncoder(n_directions=3).fit(X), VectorEncoder(n_directions=3)
    for block in np.split(X, sorted(cuts)):
        parts.partial_fit(block)
    assert parts.n_samples_seen_ == 60
    np.testing.assert_allclose(parts.mean_, whole.mean_)
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), atol=1e-4)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X),
        lambda X: pd.Series(list(X)),
        lambda X: pd.DataFrame({"vector": list(X)}),
        lambda X: pl.Series(X.tolist()),
        lambda X: pl.DataFrame({"vector": X.tolist()}),
        lambda X: pl.DataFrame(X),
        lambda X: pa.array(X.tolist()),
        lambda X: pa.chunked_array([X[:20].tolist(), X[20:].tolist()]),
        lambda X: pa.table({"vector": X.tolist()}),
        lambda X: pa.table({f"d{i}": X[:, i] for i in range(X.shape[1])}),
        lambda X: np.array([*X, None], dtype=object)[:-1],
    ],
)
def test_vectors_of_any_library(wrap: Any) -> None:
    X, _ = embeddings()
    expected = VectorEncoder().fit_transform(X)
    np.testing.assert_allclose(VectorEncoder().fit_transform(wrap(X)), expected, atol=1e-5)


def test_parquet(tmp_path: Any) -> None:
    X, _ = embeddings()
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    pq.write_table(pa.table({"vector": fixed}), tmp_path / "vectors.parquet")
    rows = VectorEncoder().fit_transform(pq.read_table(tmp_path / "vectors.parquet"))
    np.testing.assert_allclose(rows, VectorEncoder().fit_transform(X), atol=1e-6)


def test_state() -> None:
    X, _ = embeddings()
    for encoder in (VectorEncoder().fit(X), VectorEncoder(n_directions=None).fit(pd.DataFrame(X).add_prefix("v"))):
        state = encoder.get_state()
        json.dumps({name: value for name, value in state.items() if not isinstance(value, np.ndarray)})
        again = VectorEncoder.from_state(state)
        given = pd.DataFrame(X).add_prefix("v") if hasattr(encoder, "feature_names_in_") else X
        np.testing.assert_array_equal(again.transform(given), encoder.transform(given))
        assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
        assert again.get_params() == encoder.get_params()
        with pytest.raises(ValueError, match="fit a new one"):
            again.partial_fit(given)
    copied = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(copied.transform(given), encoder.transform(given))
    with pytest.raises(ValueError, match="is damaged"):
        VectorEncoder.from_state(VectorEncoder().fit(X).get_state() | {"mean": np.zeros(3)})


def test_zero_vectors_become_zero_rows() -> None:
    X, _ = embeddings()
    assert not VectorEncoder().fit(X).transform(np.zeros((2, 30))).any()


def test_many_dimensions_are_not_rotated() -> None:
    X = np.random.default_rng(0).normal(size=(3, 5_000))
    encoder = VectorEncoder().fit(X)
    assert encoder.transform(X).shape == (3, 10_000)
    assert encoder.messages_ == ["The vectors have 5000 dimensions, more than 4096: they are not rotated."]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, np.nan]], "NaN"),
        ([[1.0, np.inf]], "infinity"),
        (sparse.csr_array(np.eye(2)), "[Ss]parse"),
        (pd.Series([[1.0, 2.0], [1.0]]), "Vector 1 has 1 numbers and vector 0 has 2"),
        (pd.Series([[1.0, 2.0], None]), "Vector 1 has 0 numbers"),
        (np.zeros((0, 3)), "0 sample"),
        (1e200 * np.eye(3), "squares are too large"),
    ],
)
def test_bad_vectors(vectors: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        VectorEncoder().fit(vectors)


@pytest.mark.parametrize("wanted", [0, -1, "all"])
def test_bad_parameters(wanted: Any) -> None:
    with pytest.raises(ValueError, match="give a positive number, 'auto' or None"):
        VectorEncoder(n_directions=wanted).fit(np.eye(3))


def test_few_labels() -> None:
    X, y = embeddings(300)
    few = np.where(np.arange(300) < 3, y, -1)
    model = make_pipeline(VectorEncoder(), SimpletronClassifier(random_state=0)).fit(X, few)
    assert model.score(X, y) > 0.95
