"""The cluster that a fit uses, and errors for clusters that it cannot use."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from tnesi import PoissonMixture
from tnesi.errors import InvalidParameterError
from tnesi.execution import Dask
from tnesi.execution.dask import cluster
from tnesi.execution.dask.cluster import Cluster, ClusterError
from tnesi.paper import EM, NeuralSimpletron, OnlineRule


def mixture(**parameters: Any) -> PoissonMixture:
    given = {"n_components": 40, "row_sum": 90, "max_iter": 3, "tol": 0, "random_state": 0}
    return PoissonMixture(**(given | parameters))


def assert_same(one: PoissonMixture, other: PoissonMixture) -> None:
    np.testing.assert_array_equal(one.means_, other.means_)


def test_workers_with_another_version() -> None:
    with pytest.raises(ClusterError, match=r"worker tcp://a has tnesi 0\.0\.1: install tnesi \d"):
        cluster.check_version("tcp://a", "0.0.1")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "smoke://signals:1"])
def test_a_wrong_address(counts: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match=f"no Dask scheduler responds at '{address}': start one"):
        mixture(execution=Dask(address)).fit(counts)


def test_a_scheduler_without_workers(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 0.1)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp") as local,
        pytest.raises(ClusterError, match="has no workers: start some with `dask worker"),
    ):
        mixture(execution=Dask(local.scheduler_address)).fit(counts)


@pytest.mark.slow(first=True)
@pytest.mark.parametrize("during_a_pass", [False, True])
def test_a_scheduler_that_dies(
    counts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during_a_pass: bool
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 8)  # also how long the client looks for a lost scheduler
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 90)
    file = tmp_path / "scheduler.json"
    common = f"--scheduler-file {file} --host 127.0.0.1 --no-dashboard"
    scheduler = _start(f"distributed.cli.dask_scheduler {common} --port 0")
    worker = _start(f"distributed.cli.dask_worker {common} --nthreads 1 --no-nanny --local-directory {tmp_path}")

    def kill(record: dict[str, Any]) -> None:
        if record["iteration"] != 2:
            return
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 2)  # from here on there is no answer
        if during_a_pass:  # the next one; where it is over sooner, a later one
            threading.Timer(0.002, scheduler.kill).start()
        else:
            scheduler.kill()
            scheduler.wait()

    try:
        address = _address_in(file)
        model = mixture(execution=Dask(address, callback=kill), max_iter=100_000)
        with pytest.raises(ClusterError, match=rf"scheduler at {address} no longer responds: restart it"):
            model.fit(counts)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def _start(module: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", *module.split()], stderr=subprocess.DEVNULL)


def _address_in(file: Path) -> str:
    """Return the address of a scheduler once it has written its file."""
    for _ in range(1800):
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.05)
    raise AssertionError("no scheduler within 90 s")


def test_a_closed_client(counts: Any) -> None:
    with LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as local:
        client = Client(local, set_as_default=False)
        client.close()
        with pytest.raises(ClusterError, match="client is closed: pass one that is connected"):
            mixture(execution=Dask(client)).fit(counts)


def test_workers_that_the_client_has_forgotten(threads: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last state that the client received does not contain them."""
    monkeypatch.setattr(threads, "scheduler_info", lambda **_: threads.sync(threads.scheduler.identity, n_workers=0))
    assert threads.scheduler_info()["workers"] == {}
    assert set(Cluster(threads).workers()) == set(threads.nthreads())


def test_an_address(counts: Any, processes: Client) -> None:
    far = mixture(execution=Dask(processes.scheduler.address)).fit(counts)
    assert_same(mixture().fit(counts), far)


def test_the_client_in_use(counts: Any, processes: Client) -> None:
    with processes.as_current():
        assert_same(mixture().fit(counts), mixture(execution=Dask()).fit(counts))


def test_a_cluster_of_its_own(counts: Any) -> None:
    import multiprocessing

    before = multiprocessing.active_children()
    assert_same(mixture().fit(counts), mixture(execution=Dask(), n_jobs=1).fit(counts))
    assert multiprocessing.active_children() == before


CTRL_C = """
import multiprocessing, os, signal, warnings
import numpy as np
from tnesi import PoissonMixture
from tnesi.execution import Dask

def stop(record):
    if record["iteration"] == 2:
        os.killpg(0, signal.SIGINT)  # as a terminal does: the workers receive it too

X = np.random.default_rng(0).integers(1, 30, (500, 12))
with warnings.catch_warnings(record=True) as caught:
    mixture = PoissonMixture(20, tol=0, random_state=0, execution=Dask(callback=stop), n_jobs=1).fit(X)
print(mixture.n_iter_, caught[0].message, multiprocessing.active_children())
"""


@pytest.mark.slow
def test_ctrl_c_ends_the_iteration_and_the_cluster() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CTRL_C], capture_output=True, text=True, check=False, start_new_session=True, timeout=180
    )
    assert ended.stdout.startswith("2 learning was interrupted"), ended.stderr
    assert ended.stdout.endswith("(2 complete) []\n")
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_script_without_a_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CTRL_C)
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, start_new_session=True, timeout=180
    )
    assert "needs its calls under `if __name__ == '__main__':`" in ended.stderr


def test_without_the_library(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'tnesi\[dask\]'"):
        mixture(execution=Dask()).fit(counts)


def test_what_only_one_process_can_do(counts: Any, threads: Client) -> None:
    with pytest.raises(InvalidParameterError, match="in one process: pass a truncation, or leave out execution"):
        mixture(execution=Dask(threads), truncation=None, n_components=600).fit(counts)
    for settings in ({"rule": OnlineRule()}, {"rule": EM()}, {"rule": EM(), "recurrent": True}):
        with pytest.raises(InvalidParameterError, match=r"networks learn in this process.*pass Local"):
            NeuralSimpletron(40, execution=Dask(threads), **settings).fit(counts, counts[:, 0])
    with pytest.raises(InvalidParameterError, match="scheduler=3: pass a"):
        mixture(execution=Dask(3)).fit(counts)
