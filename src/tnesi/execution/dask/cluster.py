"""The cluster of a fit: the one that was given, the one in use, or one on this machine for the time of the fit."""

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

from tnesi.errors import InvalidParameterError
from tnesi.execution.dask.shared_array import SharedArray, reaches
from tnesi.execution.settings import Dask, Local

if TYPE_CHECKING:
    from distributed import Client, Security

    from tnesi.execution.dask.blocks import Blocks
    from tnesi.execution.dask.engine import DaskEngine
    from tnesi.execution.store import Store

CONNECT_SECONDS = 5
"""Time for a scheduler to answer."""
WORKER_SECONDS = 30
"""Time for the first worker to come."""

_SELDOM = {
    "distributed.worker.profile.interval": "200ms",
    "distributed.admin.tick.interval": "200ms",
    "distributed.worker.memory.monitor-interval": "500ms",
}
"""How often processes look at themselves: as often as they do by default, it takes 5 % of a processor each."""


class ClusterError(OSError):
    """The cluster cannot do what is asked of it."""


@dataclass(frozen=True)
class Worker:
    """A process of the cluster.

    Attributes
    ----------
    slots : int
        Tasks that it runs at the same time.
    memory : int
        Limit in bytes; 0 is none.
    """

    slots: int
    memory: int


class Cluster:
    """A client of a cluster whose workers can do the work."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._blocks: Blocks | None = None
        self._engine: DaskEngine | None = None
        self._sharing: dict[str, bool] = {}
        self._check_workers()

    def engine(self, store: Store, sums: Any, weight: Any, n_threads: int) -> DaskEngine:
        """Return an engine of these rows; those that were asked for last are on the workers already."""
        from tnesi.execution.dask.blocks import Blocks
        from tnesi.execution.dask.engine import DaskEngine

        if self._engine is not None:
            self._engine.close()
        if self._blocks is None or self._blocks.store is not store:
            self._blocks = Blocks(self, store, sums, weight)
        self._engine = DaskEngine(self._blocks, n_threads)
        return self._engine

    def close(self) -> None:
        """Leave nothing behind on the workers."""
        if self._engine is not None:
            self._engine.close()
        if self._blocks is not None:
            self._blocks.close()

    def workers(self) -> dict[str, Worker]:
        """Return the workers there are by their addresses; wait for one if there is none."""
        deadline = time.monotonic() + WORKER_SECONDS
        # the client's own scheduler_info is overwritten now and then by an answer that leaves the workers out
        while not (found := self.client.sync(self.client.scheduler.identity)["workers"]):
            if time.monotonic() > deadline:
                address = self.client.scheduler.address
                raise ClusterError(
                    f"the Dask scheduler at {address} has no workers: start some with `dask worker {address}`"
                )
            time.sleep(0.1)
        return {
            address: Worker(max(int(w["nthreads"]), 1), int(w["memory_limit"] or 0)) for address, w in found.items()
        }

    def shares_memory(self, workers: Iterable[str]) -> bool:
        """Tell whether all these workers are on this machine and can open what this process shares."""
        addresses = set(workers)
        if new := addresses - self._sharing.keys():
            try:
                sample = SharedArray((1,), np.uint8)
            except (OSError, AttributeError):  # the system does not let us, or cannot
                return False
            found = self.client.run(reaches, sample, workers=list(new), on_error="return")
            self._sharing |= {address: answer for address, answer in found.items() if isinstance(answer, bool)}
        return all(self._sharing.get(address, False) for address in addresses)

    def _check_workers(self) -> None:
        """Refuse workers that lack this package, or have another version of it."""
        self.workers()
        for address, version in self.client.run(_installed(), on_error="return").items():
            complaint(address, version)


def complaint(address: str, version: Any) -> None:
    """Raise an error if a worker cannot run tasks of this version."""
    own = import_module("tnesi").__version__
    if version == own:
        return
    has = "does not have tnesi" if version is None else f"has tnesi {version}"
    raise ClusterError(
        f"the Dask worker {address} {has}: install tnesi {own} where all workers run "
        f"(pip install 'tnesi[dask]=={own}'), then start them anew"
    )


def _installed() -> Any:
    """Return a function that tells the version of this package, and can be sent to where there is none."""

    def version() -> str | None:
        from importlib import import_module

        try:
            return str(import_module("tnesi").__version__)
        except ImportError:
            return None

    return version


@contextmanager
def cluster_for(run: Local, n_workers: int) -> Iterator[Cluster | None]:
    """Yield the cluster on which to learn, or None for this process; without a cluster, start `n_workers` processes."""
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
            raise ValueError("the Dask client is asynchronous: pass one that is not, or the address of the scheduler")
        if client.status != "running":
            raise ClusterError(f"the Dask client is {client.status}: pass one that is connected to its scheduler")
        with _report_lost_scheduler(client):
            cluster = Cluster(client)
            try:
                yield cluster
            finally:
                cluster.close()


@contextmanager
def _report_lost_scheduler(client: Client) -> Iterator[None]:
    """Report a scheduler that no longer answers as such, whichever error it led to."""
    address = client.scheduler.address  # a client that has lost its scheduler does not know
    try:
        yield
    except Exception as error:  # of many kinds, depending on what the client was doing
        if isinstance(error, (TypeError, ValueError)) or _answers(address, client.security):
            raise
        raise ClusterError(
            f"the Dask scheduler at {address} no longer answers: start it and its workers again, and repeat the fit; "
            "with a checkpoint folder and resume=True it continues after the last complete iteration"
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

    # a client that cannot connect would not close either, so ask first without one
    if not _answers(address, Security()):
        raise ClusterError(
            f"no Dask scheduler answers at {address!r}: start one with `dask scheduler` and pass the address that it "
            "prints, like tcp://host:8786; without an address a cluster is started on this machine"
        )
    client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    try:
        yield client
    except BaseException:
        with suppress(Exception):  # closing fails if the scheduler is gone, and would hide the reason
            client.close()
        raise
    client.close()


def _answers(address: str, security: Security) -> bool:
    """Return whether a scheduler answers at an address."""
    from distributed import rpc

    async def ask() -> None:
        arguments = security.get_connection_args("client")
        async with rpc(address, connection_args=arguments, timeout=CONNECT_SECONDS) as scheduler:
            await asyncio.wait_for(scheduler.identity(), CONNECT_SECONDS)

    try:
        with ThreadPoolExecutor(1) as thread:  # this one may run the event loop of a notebook
            thread.submit(asyncio.run, ask()).result()
    except Exception:  # anything may answer at a wrong address
        return False
    return True


@contextmanager
def own_cluster(n_workers: int) -> Iterator[Client]:
    """Start processes on this machine, which nobody else can reach, and end them in any case."""
    import dask
    from distributed import Client, LocalCluster

    guard = "a script that starts processes needs its calls under `if __name__ == '__main__':`"
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(guard)
    with dask.config.set(_SELDOM):
        try:
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # any port
                preload=["tnesi.execution.dask.worker_setup", "tnesi.execution.dask.worker_memory"],
            )
        except RuntimeError as error:
            raise ClusterError(f"the workers on this machine did not start ({error}); {guard}") from error
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client
