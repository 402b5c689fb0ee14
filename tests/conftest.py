"""Fixtures shared by all tests: data that come with scikit-learn, and real data where they are to be found."""

from __future__ import annotations

import os
import runpy
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits

from tnesi import SimpletronClassifier, kernels, save
from tnesi.data import Data, DataNotFoundError, load_named

# Where the tests run in the background of a shell, Ctrl-C is ignored, and their children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that run at the same time share the processors.
if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0)):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // workers)))

# The same examples everywhere and always; `make test-random` looks for others. Tests that are slow for an example take
# a fraction of max_examples.
_PROFILE = {"deadline": None, "database": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", max_examples=60, derandomize=True, **_PROFILE)
settings.register_profile("random", max_examples=600, derandomize=False, **_PROFILE)
settings.load_profile(os.environ.get("TNESI_EXAMPLES", "fixed"))


_SLOW_TESTS = set((Path(__file__).with_name("slow.txt")).read_text().splitlines())
"""Measured by slowest.py."""
_SLOW_FILES = tuple(f"test_{name}.py" for name in ["comparison", "demo", "fuzz"])


def _is_slow_file(path: Path) -> bool:
    return path.name in _SLOW_FILES or (path.parent.name == "dask" and path.name != "test_shared_array.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without slow tests, do not even import files that have no others: each worker would take seconds for it."""
    return True if config.option.markexpr == "not slow" and _is_slow_file(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before -m selects by these marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts a studio, a browser or a cluster as slow. The slowest come first: workers end together."""
    for item in items:
        folder = item.path.parent
        in_browser = folder.name == "browser"
        as_process = folder.name == "studio" and "run" in getattr(item, "fixturenames", ())
        measured = item.nodeid.partition("[")[0] in _SLOW_TESTS
        if in_browser or as_process or measured or _is_slow_file(item.path):
            item.add_marker(pytest.mark.slow)
    items.sort(key=_order)


def _order(item: pytest.Item) -> int:
    slow = item.get_closest_marker("slow")
    return 2 if slow is None else int(not slow.kwargs.get("first"))


def _found(name: str) -> Data:
    try:
        return load_named(name, download=False)
    except DataNotFoundError:
        if os.environ.get("CI"):
            raise  # CI has the data: there, missing data are a failure
        pytest.skip(f"{name} is neither in $TNESI_DATA nor in the cache")


def _found_if_native(name: str) -> Data:
    """Return data from which thousands of fields are learned."""
    if not kernels.NATIVE:
        pytest.skip(f"{name} takes many minutes with the NumPy kernels")
    return _found(name)


@pytest.fixture(scope="session")
def zygotes() -> Iterator[Any]:
    """Start ``tnesi`` as a process that need not import all it needs."""
    running = runpy.run_path(str(Path(__file__).with_name("zygote.py")))["Zygotes"]()
    yield running
    running.end()


@pytest.fixture(scope="session")
def mnist() -> Data:
    return _found_if_native("mnist")


@pytest.fixture(scope="session")
def mnist_model(mnist: Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with what the default classifier learns from MNIST without labels; workers share it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / "mnist.tnesi"
    try:
        (folder / "mnist.tnesi.started").mkdir()
    except FileExistsError:  # by another worker
        deadline = time.monotonic() + 600
        while not path.exists():
            if time.monotonic() > deadline:
                pytest.fail("another worker has not learned the model of MNIST within ten minutes")
            time.sleep(0.1)
    else:
        save(SimpletronClassifier(random_state=0).fit(mnist.X, np.full(len(mnist.y), -1)), path)
    return path


@pytest.fixture(scope="session")
def fashion_mnist() -> Data:
    return _found_if_native("fashion-mnist")


@pytest.fixture(scope="session")
def emnist_digits() -> Data:
    return _found("emnist-digits")


@pytest.fixture(scope="session")
def emnist_letters() -> Data:
    return _found("emnist-letters")


@pytest.fixture(scope="session")
def counts() -> Any:
    """Rows around 300 centers, none of them without any count."""
    rng = np.random.default_rng(0)
    centers = rng.gamma(0.3, 20.0, (300, 21))
    found = rng.poisson(centers[rng.integers(0, 300, 2100)]).clip(0, 254).astype(np.uint8)
    found[:, 0] += 1
    return found


@pytest.fixture(scope="session")
def digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
