"""Encoding on the workers of a cluster: the same bits as in this process."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from PIL import Image
from scipy import sparse

from tnesi.data import DataError, open_data
from tnesi.encoders import ImageEncoder, TableEncoder, TextEncoder, VectorEncoder, encoding
from tnesi.encoders.encoding import encode, fit_encoder
from tnesi.execution.dask.cluster import Cluster
from tnesi.execution.dask.mapping import mapped

TEXTS = [f"boat number {i} and {'wave' if i % 2 else 'rock'} {i % 7}" for i in range(3_000)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_BLOCK", 200)


def cases() -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        pytest.param(ImageEncoder(), rng.integers(0, 255, (3_000, 9, 9), dtype=np.uint8), id="images"),
        pytest.param(TextEncoder(), TEXTS, id="texts"),
        pytest.param(TextEncoder(n_features=256), TEXTS, id="hashed"),
        pytest.param(TableEncoder(), rng.normal(size=(3_000, 4)), id="table"),
        pytest.param(VectorEncoder(), rng.normal(size=(3_000, 60)), id="vectors"),
    ]


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


@pytest.mark.parametrize(("encoder", "items"), cases())
def test_the_same_bits(encoder: Any, items: Any, processes: Client) -> None:
    data = open_data(items)
    fit_encoder(encoder, data)
    told: list[int] = []
    far = encode(encoder, data, lambda _, done, __: told.append(done), cluster=Cluster(processes))
    np.testing.assert_array_equal(dense(far.data.X), dense(encode(encoder, data).data.X))
    assert told == list(range(200, 3_001, 200))


def test_files_that_cannot_be_read(processes: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    Path("pictures").mkdir()
    for i in range(450):
        Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(f"pictures/{i:03}.png")
    Path("pictures/300.png").write_bytes(b"no picture")
    data, encoder = open_data(Path("pictures")), ImageEncoder()
    fit_encoder(encoder, data)
    here, far = encode(encoder, data), encode(encoder, data, cluster=Cluster(processes))
    np.testing.assert_array_equal(far.data.X, here.data.X)
    assert far.problems == here.problems
    assert len(far.problems) == 1


def test_errors_are_returned(processes: Client) -> None:
    encoder = TableEncoder().fit({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match="lacks column 'a'"):
        encode(encoder, open_data(pd.DataFrame({"b": [1, 2], "c": ["x", "y"]})), cluster=Cluster(processes))


def test_a_worker_that_dies() -> None:
    data, encoder = open_data(TEXTS), TextEncoder()
    fit_encoder(encoder, data)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as local,
        Client(local, set_as_default=False) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill(_: str, done: int, __: int | None) -> None:
            if done == 1_000:
                os.kill(pids[0], signal.SIGKILL)

        far = encode(encoder, data, kill, cluster=Cluster(client))
    np.testing.assert_array_equal(dense(far.data.X), dense(encode(encoder, data).data.X))


def test_few_items_are_under_way(threads: Client) -> None:
    taken: list[int] = []

    def items() -> Any:
        for i in range(50):
            taken.append(i)
            yield i

    ahead = []
    for item, found in mapped(Cluster(threads), divmod, 100, ((i, i + 1) for i in items())):
        assert found == divmod(100, item + 1)
        ahead.append(len(taken) - item)
    assert len(ahead) == 50
    assert max(ahead) <= 6
