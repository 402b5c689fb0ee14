"""Prediction block by block is prediction."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import Data, DataError, open_data
from tnesi.prediction import evaluate, file_names, predict_blocks, quoted


@pytest.fixture(scope="module")
def model(digits: Any) -> SimpletronClassifier:
    return SimpletronClassifier(PoissonMixture(700, row_sum=180, max_iter=3, tol=0), random_state=0).fit(*digits)


@given(size=st.integers(1, 400), n_rows=st.integers(1, 300))
@settings(max_examples=settings.default.max_examples // 3)
def test_the_size_of_blocks_does_not_matter(model: SimpletronClassifier, digits: Any, size: int, n_rows: int) -> None:
    X = digits[0][:n_rows]
    t = model.predict_proba(X)
    blocks = list(predict_blocks(model, open_data(X).rows, size))
    assert [block.start for block in blocks] == list(range(0, n_rows, size))
    np.testing.assert_array_equal(np.concatenate([block.code for block in blocks]), t.argmax(axis=1))
    np.testing.assert_array_equal(np.concatenate([block.probability for block in blocks]), t.max(axis=1))
    ordered = np.sort(t, axis=1)
    margin = np.concatenate([block.margin for block in blocks])
    np.testing.assert_array_equal(margin, ordered[:, -1] - ordered[:, -2])


def test_many_rows_of_a_mapped_file(model: SimpletronClassifier, digits: Any, tmp_path: Any) -> None:
    X = np.tile(digits[0], (115, 1))  # more than two blocks of the default size
    np.save(tmp_path / "x.npy", X)
    blocks = list(predict_blocks(model, open_data(tmp_path / "x.npy").rows))
    assert len(blocks) == 3
    once = model.predict_proba(digits[0]).argmax(axis=1)
    np.testing.assert_array_equal(np.concatenate([block.code for block in blocks]), np.tile(once, 115))


def test_errors_say_in_which_rows(model: SimpletronClassifier, digits: Any) -> None:
    X = digits[0][:50].copy()
    X[33] = 0
    assert len(list(predict_blocks(model, open_data(X).rows, 10))) == 5
    X = X.astype(np.float32)
    X[33, 4] = np.nan
    with pytest.raises(DataError, match=r"rows 30 to 39.*NaN"):
        list(predict_blocks(model, open_data(X).rows, 10))
    with pytest.raises(DataError, match="5 features, but the model was learned from 64"):
        list(predict_blocks(model, open_data(np.ones((3, 5))).rows))


def last(model: SimpletronClassifier, X: Any, y: Any) -> Any:
    *_, found = evaluate(model, Data(open_data(X).rows, np.asarray(y)), 7)
    return found


def test_evaluation_beside_unknown_classes(digits: Any) -> None:
    """Labels that are no class of the model are right where it says that it does not know; no label is no label."""
    X, y = digits
    few = np.where((np.arange(len(y)) < 300) & (y < 8), y, -1)
    clf = SimpletronClassifier(PoissonMixture(100, row_sum=180), unknown_classes=2, random_state=0).fit(X, few)
    found = last(clf, X[:500], y[:500])
    assert found.classes == [*range(8), -1]
    assert found.confusion.shape == (9, 9)
    predicted = clf.predict(X[:500])
    assert found.error == pytest.approx(100 * np.mean(predicted != np.where(y[:500] < 8, y[:500], -1)))
    some = np.where(np.arange(500) % 2, y[:500], -1)
    assert last(clf, X[:500], some).n_rows == 250


def test_evaluation(model: SimpletronClassifier, digits: Any) -> None:
    X, y = digits[0][:100], digits[1][:100]
    found = last(model, X, y)
    assert found.error == pytest.approx(100 * (1 - model.score(X, y)))
    assert found.n_rows == 100
    assert found.classes == list(range(10))
    floats = last(model, X, y.astype(float))
    np.testing.assert_array_equal(floats.confusion, found.confusion)
    strings = last(model, X, y.astype(str))
    np.testing.assert_array_equal(strings.confusion, found.confusion)


def test_rows_without_a_label_are_left_out_and_unknown_classes_are_wrong(
    model: SimpletronClassifier, digits: Any
) -> None:
    y = np.array(model.predict(digits[0][:40]).tolist(), dtype=object)
    y[:10] = None
    y[10:12] = -1
    y[12:16] = 77.0
    found = last(model, digits[0][:40], y)
    assert found.n_rows == 28
    assert found.classes[-1] == "77"
    assert found.error == pytest.approx(100 * 4 / 28)
    with pytest.raises(DataError, match="none of the labels"):
        last(model, digits[0][:5], [77.0] * 5)
    with pytest.raises(DataError, match="no labels to compare with"):
        last(model, digits[0][:3], np.array([None] * 3))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), min_size=1))
def test_csv_files_have_every_name_as_it_is(names: list[str]) -> None:
    lines = "".join(f"{i},{quoted(name)}\n" for i, name in enumerate(names))
    assert list(csv.reader(io.StringIO(lines, newline=""))) == [[str(i), name] for i, name in enumerate(names)]


def test_names_of_files_are_text() -> None:
    rows = SimpleNamespace(paths=[Path(os.fsdecode(b"\xff3.png")), Path("é.png")])
    assert file_names(rows) == ["\\udcff3.png", "é.png"]
    assert file_names(open_data(np.ones((2, 2))).rows) == []
