"""The cluster of a fit: a given one, the one in use, or a temporary one on this machine."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tnesi.errors import InvalidParameterError, TnesiError
from tnesi.execution.dask.shared_array import SharedArray, can_open
from tnesi.execution.settings import Dask, Local

if TYPE_CHECKING:
    from distributed import Client, Security

    from tnesi.execution.dask.blocks import Blocks
    from tnesi.execution.dask.engine import DaskEngine
    from tnesi.model.rows import RowStore

CONNECT_SECONDS = 5
"""Timeout of a connection to a scheduler."""
WORKER_SECONDS = 30
"""Timeout for the first worker."""

_LONG_INTERVALS = {
    "distributed.worker.profile.interval": "200ms",
    "distributed.admin.tick.interval": "200ms",
    "distributed.worker.memory.monitor-interval": "500ms",
}
"""Intervals of self-monitoring, which by default takes 5 % of a processor per process."""


class ClusterError(TnesiError, OSError):
    """A cluster that cannot run a fit."""


@dataclass(frozen=True)
class Worker:
    """A process of the cluster.

    Attributes
    ----------
    slots : int
        Number of simultaneous tasks.
    memory : int
        Memory limit in bytes; 0 means unlimited.
    """

    slots: int
    memory: int


class Cluster:
    """A client of a cluster with compatible workers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._blocks: Blocks | None = None
        self._engine: DaskEngine | None = None
        self._sharing: dict[str, bool] = {}
        self._check_workers()

    def engine(self, store: RowStore, sums: Any, weight: Any, n_threads: int) -> DaskEngine:
        """Return an engine for these rows; the workers keep the rows of the last engine."""
        from tnesi.execution.dask.blocks import Blocks
        from tnesi.execution.dask.engine import DaskEngine

        if self._engine is not None:
            self._engine.close()
        if self._blocks is None or self._blocks.store is not store:
            self._blocks = Blocks(self, store, sums, weight)
        self._engine = DaskEngine(self._blocks, n_threads)
        return self._engine

    def close(self) -> None:
        """Release everything on the workers."""
        if self._engine is not None:
            self._engine.close()
        if self._blocks is not None:
            self._blocks.close()

    def workers(self) -> dict[str, Worker]:
        """Return the workers by address; wait for one if there is none."""
        deadline = time.monotonic() + WORKER_SECONDS
        # the client's own scheduler_info occasionally lacks the workers
        while not (found := self.client.sync(self.client.scheduler.identity)["workers"]):
            if time.monotonic() > deadline:
                address = self.client.scheduler.address
                raise ClusterError(
                    "the Dask scheduler at {address} has no workers",
                    address=address,
                    advice="start some with `dask worker {address}`",
                )
            time.sleep(0.1)
        return {
            address: Worker(max(int(w["nthreads"]), 1), int(w["memory_limit"] or 0)) for address, w in found.items()
        }

    def shares_memory(self, workers: Iterable[str]) -> bool:
        """Return whether all these workers can open arrays that this process shares."""
        addresses = set(workers)
        if new := addresses - self._sharing.keys():
            try:
                sample = SharedArray((1,), np.uint8)
            except (OSError, AttributeError):  # not permitted or not supported
                return False
            found = self.client.run(can_open, sample, workers=list(new), on_error="return")
            self._sharing |= {address: answer for address, answer in found.items() if isinstance(answer, bool)}
        return all(self._sharing.get(address, False) for address in addresses)

    def _check_workers(self) -> None:
        """Raise an error if a worker lacks this package or has another version."""
        self.workers()
        for address, version in self.client.run(_version_function(), on_error="return").items():
            check_version(address, version)


def check_version(address: str, version: object) -> None:
    """Raise an error unless a worker has this version of the package."""
    own = import_module("tnesi").__version__
    if version == own:
        return
    has = "does not have tnesi" if version is None else f"has tnesi {version}"
    raise ClusterError(
        "the Dask worker {address} {has}",
        address=address,
        has=has,
        version=own,
        advice="install tnesi {version} on all workers (pip install 'tnesi[dask]=={version}'), then restart them",
    )


def _version_function() -> Any:
    """Return a function that returns the version of this package, and that works on workers without the package."""

    def version() -> str | None:
        from importlib import import_module

        try:
            return str(import_module("tnesi").__version__)
        except ImportError:
            return None

    return version


@contextmanager
def cluster_for(run: Local, n_workers: int) -> Iterator[Cluster | None]:
    """Yield the cluster to learn on, or None for this process; a temporary cluster has `n_workers` processes."""
    if not isinstance(run, Dask):
        yield None
        return
    scheduler = run.scheduler
    try:
        import distributed
    except ImportError as error:
        raise ImportError("learning on a Dask cluster needs distributed: pip install 'tnesi[dask]'") from error
    with ExitStack() as stack:
        if isinstance(scheduler, distributed.Client):
            client = scheduler
        elif isinstance(scheduler, str):
            client = stack.enter_context(_connected(scheduler))
        elif scheduler is None:
            client = _client_in_use() or stack.enter_context(own_cluster(n_workers))
        else:
            raise InvalidParameterError(
                "{scheduler}={given!r}",
                given=scheduler,
                parameter="scheduler",
                advice="pass a distributed.Client, the address of a scheduler, or None",
            )
        if client.asynchronous:
            raise InvalidParameterError(
                "the Dask client is asynchronous",
                parameter="scheduler",
                advice="pass a synchronous client, or the address of the scheduler",
            )
        if client.status != "running":
            raise ClusterError(
                "the Dask client is {status}",
                status=client.status,
                parameter="scheduler",
                advice="pass one that is connected to its scheduler",
            )
        with _report_lost_scheduler(client):
            cluster = Cluster(client)
            try:
                yield cluster
            finally:
                cluster.close()


@contextmanager
def _report_lost_scheduler(client: Client) -> Iterator[None]:
    """Raise ClusterError for any error that is caused by the loss of the scheduler."""
    address = client.scheduler.address  # unknown once the client has lost its scheduler
    try:
        yield
    except Exception as error:  # depends on the state of the client
        if isinstance(error, (TypeError, ValueError)) or _answers(address, client.security):
            raise
        raise ClusterError(
            "the Dask scheduler at {address} no longer responds",
            address=address,
            advice="restart it and its workers, and repeat the fit; with {checkpoint} and {resume:True} it continues "
            "after the last complete iteration",
        ) from error


def _client_in_use() -> Client | None:
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    from distributed import Client, Security

    # a client that cannot connect cannot be closed either, so test the connection without one
    if not _answers(address, Security()):
        raise ClusterError(
            "no Dask scheduler responds at {address!r}",
            address=address,
            parameter="scheduler",
            advice="start one with `dask scheduler` and pass the address that it prints, such as tcp://host:8786; "
            "without an address a cluster is started on this machine",
        )
    client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    try:
        yield client
    except BaseException:
        with suppress(Exception):  # if the scheduler is gone, closing fails and would hide the original error
            client.close()
        raise
    client.close()


def _answers(address: str, security: Security) -> bool:
    """Return whether a scheduler responds at an address."""
    from distributed import rpc

    async def ask() -> None:
        arguments = security.get_connection_args("client")
        async with rpc(address, connection_args=arguments, timeout=CONNECT_SECONDS) as scheduler:
            await asyncio.wait_for(scheduler.identity(), CONNECT_SECONDS)

    try:
        with ThreadPoolExecutor(1) as thread:  # this thread may run the event loop of a notebook
            thread.submit(asyncio.run, ask()).result()
    except Exception:  # any service may respond at a wrong address
        return False
    return True


@contextmanager
def own_cluster(n_workers: int) -> Iterator[Client]:
    """Run a temporary cluster of local processes, which is not reachable from other machines."""
    import dask
    from distributed import Client, LocalCluster

    guard = "a script that starts processes needs its calls under `if __name__ == '__main__':`"
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(guard)
    with dask.config.set(_LONG_INTERVALS):
        try:
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # any port
                preload=["tnesi.execution.dask.worker_setup", "tnesi.execution.dask.worker_memory"],
            )
        except RuntimeError as error:
            raise ClusterError("the local workers did not start ({reason})", reason=error, advice=guard) from error
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client
