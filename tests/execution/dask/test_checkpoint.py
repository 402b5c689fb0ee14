"""Fits on a cluster save their state like local ones, and each can resume from the other's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from tnesi import PoissonMixture
from tnesi.execution import Dask, Local, store


class Stop(Exception):  # noqa: N818 - nothing went wrong
    pass


def stop(record: dict[str, Any]) -> None:
    if record["iteration"] == 3:
        raise Stop


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("parameters", [{}, {"search": "exact"}, {"n_components": 600}])
@pytest.mark.parametrize("engines", [("dask", "dask"), ("local", "dask"), ("dask", "local")])
def test_going_on_gives_the_same_bits(
    digits: tuple[Any, Any],
    tmp_path: Path,
    client: Client,
    parameters: dict[str, Any],
    engines: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "_GRAIN", 256)
    X, _ = digits
    settings: dict[str, Any] = {
        "n_components": 60,
        "row_sum": 180,
        "max_iter": 6,
        "tol": 0,
        "random_state": 0,
    } | parameters
    expected = PoissonMixture(**settings).fit(X)
    where: dict[str, Any] = {"local": Local, "dask": partial(Dask, client)}
    first, second = (where[name] for name in engines)
    with pytest.raises(Stop):
        PoissonMixture(execution=first(checkpoint=tmp_path, callback=stop), **settings).fit(X)
    found = PoissonMixture(execution=second(checkpoint=tmp_path, resume=True), **settings).fit(X)
    np.testing.assert_array_equal(expected.means_, found.means_)
    np.testing.assert_array_equal(expected.score_samples(X), found.score_samples(X))
    assert [r["free_energy"] for r in expected.history_] == [r["free_energy"] for r in found.history_]
