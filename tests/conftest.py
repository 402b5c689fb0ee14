"""Fixtures shared by all tests: data that come with scikit-learn, and real data where they are to be found."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits

from tnesi.data import DataNotFoundError, ImageData, load_fashion_mnist, load_mnist

settings.register_profile(
    "tnesi", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tnesi")


def _found(load: Callable[[], ImageData]) -> ImageData:
    try:
        return load()
    except DataNotFoundError as error:
        if os.environ.get("CI"):
            raise  # CI has the data: there, missing data are a failure
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def mnist() -> ImageData:
    return _found(load_mnist)


@pytest.fixture(scope="session")
def fashion_mnist() -> ImageData:
    return _found(load_fashion_mnist)


@pytest.fixture(scope="session")
def digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
