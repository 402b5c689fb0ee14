"""A warning about tables whose columns cannot be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from tnesi.data import Data, load_named, open_data
from tnesi.data.scales import unequal_columns


def table(found: Any, *, scaled: bool = False) -> Data:
    X = found.data / found.data.max(axis=0) if scaled else found.data
    return open_data(pd.DataFrame(X, columns=found.feature_names))


@pytest.mark.parametrize(("load", "column"), [(load_wine, "proline"), (load_breast_cancer, "worst area")])
def test_different_units(load: Any, column: str) -> None:
    told = unequal_columns(table(load()))
    assert told is not None
    assert f"'{column}' dominates" in told
    assert unequal_columns(table(load(), scaled=True)) is None


@pytest.mark.parametrize(
    "data",
    [
        table(load_iris()),
        load_named("digits"),
        open_data(np.array([[1000.0, 1, 1]])),  # no names to report
        open_data(sparse.csr_array(np.eye(3)[[0, 0, 0]])),
        open_data(pd.DataFrame({"a": [100, 200], "b": [1, 2]})),
        open_data(pd.DataFrame(np.diag([1e9] + [0] * 199), columns=[f"word{i}" for i in range(200)])),
        open_data(pd.DataFrame({"a": [0, 0], "b": [0, 0], "c": [0, 0]})),
        open_data(pd.DataFrame(np.full((2, 3), 1.7e308), columns=["a", "b", "c"])),
    ],
    ids=["iris", "images", "no names", "sparse", "two columns", "words", "zeros", "largest"],
)
def test_nothing_to_report(data: Data) -> None:
    assert unequal_columns(data) is None
