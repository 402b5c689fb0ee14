"""TableEncoder: columns of any kind, with every column adding 1 to the sum of a row."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tnesi import SimpletronClassifier
from tnesi.encoders import TableEncoder

N = 40


def customers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(N) + 7_000,
            "age": np.where(np.arange(N) % 5, rng.normal(40, 9, N), np.nan),
            "balance": rng.normal(0, 500, N).round(2),
            "plan": rng.choice(["basic", "plus", "?"], N),
            "joined": pd.Timestamp("2020-02-28 12:00") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "active": rng.random(N) < 0.5,
            "currency": "EUR",
        }
    )


def fitted(table: Any, **parameters: Any) -> TableEncoder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return TableEncoder(**parameters).fit(table)


@parametrize_with_checks([TableEncoder(), TableEncoder(n_bins=3, sparse_output=False)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_customers() -> None:
    table = customers()
    with pytest.warns(UserWarning, match="left out") as caught:
        encoder = TableEncoder().fit(table)
    rows = encoder.transform(table)
    assert rows.dtype == np.float32
    assert rows.min() >= 0
    np.testing.assert_allclose(rows.sum(axis=1), 5, rtol=1e-5)  # two of the seven columns are left out
    assert rows.shape[1] == len(set(encoder.get_feature_names_out()))
    assert encoder.kinds_ == {
        "customer_id": "drop",
        "age": "number",
        "balance": "number",
        "plan": "category",
        "joined": "time",
        "active": "category",
        "currency": "drop",
    }
    assert encoder.messages_ == [
        "Column 'customer_id' looks like an identifier (40 different values in 40 rows) and is left out.",
        "Column 'currency' has the same value in every row and is left out.",
    ]
    assert [str(warning.message) for warning in caught] == encoder.messages_


def as_dict(frame: pd.DataFrame) -> Any:
    return {name: frame[name].tolist() for name in frame}


def as_structured(frame: pd.DataFrame) -> Any:
    return frame.to_records(index=False)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, as_dict, as_structured])
def test_same_rows_from_every_library(convert: Any) -> None:
    frame = customers()
    expected = fitted(frame)
    encoder = fitted(convert(frame))
    assert encoder.kinds_ == expected.kinds_
    assert encoder.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(encoder.transform(convert(frame)), expected.transform(frame), atol=1e-6)
    np.testing.assert_allclose(expected.transform(convert(frame)), expected.transform(frame), atol=1e-6)


def test_state_holds_everything() -> None:
    table = customers().assign(note=[f"the customer called about item {i} of the contract" for i in range(N)])
    encoder = fitted(table)
    state = encoder.get_state()
    arrays: list[Any] = []

    def to_json(value: Any) -> Any:
        assert isinstance(value, np.ndarray)
        arrays.append(value)
        return {"array": len(arrays) - 1}

    header = json.loads(
        json.dumps(state, default=to_json), object_hook=lambda d: arrays[d["array"]] if set(d) == {"array"} else d
    )
    assert all(array.dtype.kind in "iuf" for array in arrays)
    again = TableEncoder.from_state(header)
    assert again.get_params() == encoder.get_params()
    assert again.messages_ == encoder.messages_
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert (again.transform(table) != encoder.transform(table)).nnz == 0
    with pytest.raises(ValueError, match="fit a new one"):
        again.partial_fit(table)
    with pytest.raises(ValueError, match="state of a VectorEncoder, not of a TableEncoder"):
        TableEncoder.from_state({**state, "encoder": "VectorEncoder"})


def test_copies() -> None:
    table = customers()
    encoder = fitted(table)
    expected = encoder.transform(table)
    for other in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        np.testing.assert_array_equal(other.transform(table), expected)
    assert not hasattr(clone(encoder), "kinds_")


def test_named_output() -> None:
    table = customers()
    frame = fitted(table).set_output(transform="pandas").transform(table)
    assert list(frame.columns) == fitted(table).get_feature_names_out().tolist()
    frame = fitted(table).set_output(transform="polars").transform(table)
    assert frame.height == N


@pytest.mark.parametrize("base", [2**62, 1_700_000_000_000_000_000])
def test_large_integers_stay_apart(base: int) -> None:
    """Neighbors that float64 cannot tell apart."""
    values = base + np.arange(0, 40, dtype=np.int64)[np.random.default_rng(0).permutation(40)] * 3
    rows = fitted({"n": values}).transform({"n": values})
    assert len(np.unique(rows, axis=0)) == 40
    stamps = values.view("M8[ns]")
    np.testing.assert_array_equal(fitted({"n": stamps}).transform({"n": stamps}), rows)


def test_nullable_integers_keep_their_precision() -> None:
    values = [2**60 + 3 * i for i in range(30)]
    table = {"n": [*values, None]}
    expected = fitted(table).transform(table)
    for table in (
        pd.DataFrame({"n": pd.array([*values, None], dtype="Int64")}),
        pl.DataFrame({"n": [*values, None]}),
        pa.table({"n": [*values, None]}),
    ):
        np.testing.assert_array_equal(fitted(table).transform(table), expected)
    assert len(np.unique(expected, axis=0)) == 31


@given(
    st.lists(st.floats(allow_nan=False, width=64) | st.none(), min_size=2, max_size=60),
    st.integers(2, 9),
)
def test_numbers(values: list[float | None], n_bins: int) -> None:
    """Any numbers: weights are non-negative, sum to 1, and follow the order of the numbers."""
    finite = {value for value in values if value is not None and np.isfinite(value)}
    if len(finite) < 1 or len(set(values)) < 2:
        return
    encoder = fitted({"n": values}, n_bins=n_bins, kinds={"n": "number"})
    rows = encoder.transform({"n": values})
    assert np.isfinite(rows).all()
    assert rows.min() >= 0
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-5)
    names = encoder.get_feature_names_out().tolist()
    if "n~high" in names:
        order = np.argsort([-np.inf if v is None else v for v in values], kind="stable")
        present = [i for i in order if values[i] is not None]
        assert (np.diff(rows[present, names.index("n~high")]) >= -1e-6).all()


anything = st.text(max_size=5) | st.integers() | st.floats(allow_infinity=False) | st.booleans() | st.none()


@given(st.lists(anything, min_size=1, max_size=40))
@pytest.mark.filterwarnings("ignore:Column 'mixed'")
def test_anything_in_a_column(values: list[Any]) -> None:
    """Mixed types never break anything."""
    table = {"mixed": values, "n": list(range(len(values) + 1, 1, -1))}
    encoder = fitted(table, kinds={"n": "number"})
    rows = encoder.transform(table)
    assert np.isfinite(rows.data if sparse.issparse(rows) else rows).all()
    assert rows.min() >= 0
    assert rows.sum(axis=1).max() <= 2 + 1e-5


@given(st.permutations(range(7)))
def test_order_of_columns_does_not_matter(order: list[int]) -> None:
    table = customers()
    encoder = fitted(table)
    shuffled = table.iloc[:, order].assign(extra="ignored")
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(table))


def test_blocks_give_the_same_as_the_whole() -> None:
    table = pd.concat([customers()] * 5, ignore_index=True).drop(columns="customer_id")
    whole = fitted(table)
    parts = TableEncoder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for start in range(0, len(table), 30):
            parts.partial_fit(table.iloc[start : start + 30])
        once = TableEncoder().fit_blocks(table.iloc[start : start + 30] for start in range(0, len(table), 30))
    assert parts.n_samples_seen_ == whole.n_samples_seen_ == once.n_samples_seen_ == 200
    expected = whole.transform(table)
    np.testing.assert_array_equal(once.transform(table), expected)
    np.testing.assert_array_equal(parts.transform(table), expected)
    blocks = [whole.transform(table.iloc[start : start + 30]) for start in range(0, len(table), 30)]
    np.testing.assert_array_equal(np.concatenate(blocks), expected)


def test_a_block_with_an_error_changes_nothing() -> None:
    encoder = fitted({"n": [1.0, 2, 3, 4]})
    expected = encoder.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="lacks the columns 'n'"):
        encoder.partial_fit({"other": [1.0, 2]})
    assert encoder.get_feature_names_out().tolist() == expected
    assert encoder.partial_fit({"n": [5.0]}).n_samples_seen_ == 5
    with pytest.raises(ValueError, match="no blocks"):
        TableEncoder().fit_blocks([])


def test_a_stream_is_sampled_evenly() -> None:
    """A sorted stream of 4,000 rows, of which 400 are kept: the median knot is near the middle."""
    encoder = TableEncoder(sample_size=400)
    for start in range(0, 4_000, 100):
        encoder.partial_fit({"n": np.arange(start, start + 100) / 3 + 0.1})
    middle = float(encoder.get_feature_names_out()[2].removeprefix("n~"))
    assert encoder.n_samples_seen_ == 4_000
    assert abs(middle - 2_000 / 3) < 4_000 / 3 * 0.1  # four standard errors of the median of 400


def test_missing_values_of_all_kinds() -> None:
    given = ["3", "", "?", "NA", None, "nan", " 5 ", "N/A", "4"]
    encoder = fitted({"n": given})
    assert encoder.get_feature_names_out().tolist() == ["n~3", "n~4", "n~5", "n=missing"]
    rows = encoder.transform({"n": given})
    assert (rows[:, 3] > rows[0, 3]).tolist() == [value not in ("3", " 5 ", "4") for value in given]


def test_unseen_values() -> None:
    """Missing values get the mean weights, so that they do not affect similarities."""
    table = {"c": ["a", "b"] * 10, "n": [1.0, 2, 3, 4] * 5}
    encoder = fitted(table)
    with pytest.warns(UserWarning, match="'c' has only categories that did not occur"):
        row = encoder.transform({"c": ["new"], "n": [None]})
    np.testing.assert_allclose(row[0], encoder.transform(table).mean(axis=0), rtol=1e-5)
    outside = encoder.transform({"c": ["a", None], "n": [99, -99]})[:, 2:]
    np.testing.assert_array_equal(outside, encoder.transform({"c": ["a", "b"], "n": [4, 1]})[:, 2:])
    rare = fitted({"c": ["a", "b"] * 10 + ["seldom", "once"]})
    assert rare.get_feature_names_out().tolist() == ["c=a", "c=b", "c=rare"]
    rows = rare.transform({"c": ["new", "seldom", "a"]})
    np.testing.assert_array_equal(rows[0], rows[1])
    assert rows[0, 2] > rows[2, 2]


def test_most_categories_are_grouped() -> None:
    values = [f"c{i}" for i in range(100) for _ in range(1 + i % 7)]
    encoder = fitted({"c": values}, max_levels=10)
    assert len(encoder.get_feature_names_out()) == 11


def test_zip_codes_are_categories() -> None:
    assert fitted({"zip": ["01234", "80331", "01234", "10115"]}).kinds_ == {"zip": "category"}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["2024-01-31", "2023-12-01", None], "time"),
        (["2024-01-31T10:00:00.123456789", "2024-01-31T10:00:00.123456790"], "time"),
        (["1", "2", "3.5"], "number"),
        ([True, False, None], "category"),
        (["yes", "no", "yes"], "category"),
        ([b"a", b"b", b"a"], "category"),
        ([3, "a", 4, "b"], "category"),
        (["1e3", "inf", "-2"], "number"),
        (["a long answer to the first question", "another answer that is long as well"], "text"),
        (
            ["これはとても長い日本語の文章のひとつです。はい。", "もうひとつの長い日本語の文章がここにあります。"],
            "text",
        ),
    ],
)
def test_kinds(values: list[Any], kind: str) -> None:
    assert fitted({"x": values}).kinds_ == {"x": kind}


@pytest.mark.parametrize(
    ("name", "values", "left_out"),
    [
        ("id", np.random.default_rng(0).choice(10**6, 50, replace=False), True),
        ("x", np.random.default_rng(0).permutation(50), True),  # numbers the rows
        ("income", np.random.default_rng(0).choice(10**6, 50, replace=False), False),
        ("code", [f"{i:08x}-{i}" for i in range(50)], True),
        ("city", ["Rome", "Oslo"] * 25, False),
        ("humidity", np.random.default_rng(0).random(50), False),
        ("constant", [1.5] * 50, True),
        ("missing or not", [None, "x"] * 25, False),
        ("empty", [None] * 50, True),
    ],
)
def test_columns_without_information_are_dropped(name: str, values: Any, left_out: bool) -> None:
    encoder = fitted({name: values, "other": [1, 2] * 25})
    assert (encoder.kinds_[name] == "drop") == left_out
    assert any(repr(name) in message for message in encoder.messages_) == left_out
    if left_out:
        assert fitted({name: values, "other": [1, 2] * 25}, kinds={name: "category"}).kinds_[name] == "category"


def test_mostly_numbers() -> None:
    with pytest.warns(UserWarning, match=r"'n' has one value that is not numbers \(first: row 3, 'about 7'\)"):
        encoder = TableEncoder().fit(
            {"n": [str(i % 9) for i in range(3)] + ["about 7"] + [str(i % 9) for i in range(20)]}
        )
    assert encoder.kinds_ == {"n": "number"}
    with pytest.warns(UserWarning, match="'m' mixes numbers and texts"):
        encoder = TableEncoder().fit({"m": [1, 2, "a", "b"] * 5})
    assert encoder.kinds_ == {"m": "category"}


def test_infinite_values_count_as_the_outermost() -> None:
    with pytest.warns(UserWarning, match=r"'n' has 2 infinite values \(first: row 0\)"):
        encoder = TableEncoder().fit({"n": [np.inf, *np.linspace(0, 1, 30), -np.inf]})
    rows = encoder.transform({"n": [np.inf, -np.inf, 1.0, 0.0]})
    np.testing.assert_array_equal(rows[0], rows[2])
    np.testing.assert_array_equal(rows[1], rows[3])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame([[1, 2]] * 2, columns=["a", "a"]), "Two columns are named 'a'"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["b", "b"]), "Two columns are named 'b'"),
        ({"a": [1, 2], "b": [1]}, "'a' has 2, 'b' has 1"),
        ({"a": [[1], [2]]}, "column 'a' holds a list"),
        ({"a": [np.inf, -np.inf]}, "infinite values only"),
        ({"a": [5, 5]}, "no column to learn from"),
        ({}, "no columns"),
        (np.zeros(3), "Expected 2D array"),
        (np.zeros((2, 2, 2)), "Expected 2D array"),
        ({"a": np.zeros((2, 2))}, "VectorEncoder"),
        (np.array([[1j]]), "Complex data"),
        ("text", "Expected a table"),
        (sparse.csr_array(np.eye(3)), "Sparse input is not a table"),
    ],
)
def test_bad_tables(table: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(table)


def test_a_table_of_another_kind() -> None:
    encoder = fitted(customers())
    with pytest.raises(ValueError, match="lacks columns 'age', 'plan'"):
        encoder.transform(customers().drop(columns=["age", "plan"]))
    with pytest.raises(ValueError, match="'age' held numbers when the encoder was fitted"):
        encoder.transform(customers().assign(age="old"))
    with pytest.raises(ValueError, match="expecting 7 features"):
        encoder.transform(np.zeros((3, 2)))
    encoder.transform(customers().drop(columns=["currency", "customer_id"]))  # these were left out anyway


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bins": 1}, "n_bins=1"),
        ({"max_levels": 0}, "max_levels=0"),
        ({"kinds": {"nope": "number"}}, "'nope', which the table does not have"),
        ({"kinds": {"age": "float"}}, "choose one of number, time, category, text, drop"),
        ({"kinds": {"plan": "number"}}, "No value of column 'plan' is a number"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(customers(), **parameters)


def test_texts_in_a_table() -> None:
    table = {"n": [1.0, 2, 3], "review": ["very good soup and bread", "the bread was not good", "nice soup, very nice"]}
    rows = fitted(table).transform(table)
    assert sparse.issparse(rows)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows.sum(axis=1), 2, rtol=1e-5)
    assert "review:soup" in fitted(table).get_feature_names_out()
    dense = fitted(table, sparse_output=False).transform(table)
    np.testing.assert_allclose(dense, rows.toarray())


def test_few_labels() -> None:
    """Three labels on the wine data: raw columns fail, encoded ones do not."""
    X, y = load_wine(return_X_y=True)
    few = np.full(len(y), -1)
    first = [int(np.flatnonzero(y == k)[5]) for k in range(3)]
    few[first] = y[first]
    model = make_pipeline(TableEncoder(), SimpletronClassifier(random_state=0)).fit(X, few)
    raw = SimpletronClassifier(random_state=0).fit(X, few)
    assert model.score(X, y) > 0.85
    assert raw.score(X, y) < 0.8
