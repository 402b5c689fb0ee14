"""Clusters for the tests of the engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def processes() -> Iterator[Client]:
    """Two worker processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def threads() -> Iterator[Client]:
    """A worker with three threads in this process; tasks get the client's own objects."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=3, processes=False, dashboard_address="127.0.0.1:0") as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client
