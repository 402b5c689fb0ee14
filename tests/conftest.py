"""Fixtures shared by all tests: data that come with scikit-learn, and real data where they are to be found."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits

from tnesi.data import Data, DataNotFoundError, load_named

# Where the tests run in the background of a shell, Ctrl-C is ignored, and their children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "tnesi", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tnesi")


def _found(name: str) -> Data:
    try:
        return load_named(name, download=False)
    except DataNotFoundError as error:
        if os.environ.get("CI"):
            raise  # CI has the data: there, missing data are a failure
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def mnist() -> Data:
    return _found("mnist")


@pytest.fixture(scope="session")
def fashion_mnist() -> Data:
    return _found("fashion-mnist")


@pytest.fixture(scope="session")
def emnist_digits() -> Data:
    return _found("emnist-digits")


@pytest.fixture(scope="session")
def emnist_letters() -> Data:
    return _found("emnist-letters")


@pytest.fixture(scope="session")
def counts() -> Any:
    """Rows around 300 centres, none of them without any count."""
    rng = np.random.default_rng(0)
    centres = rng.gamma(0.3, 20.0, (300, 21))
    found = rng.poisson(centres[rng.integers(0, 300, 2100)]).clip(0, 254).astype(np.uint8)
    found[:, 0] += 1
    return found


@pytest.fixture(scope="session")
def digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
