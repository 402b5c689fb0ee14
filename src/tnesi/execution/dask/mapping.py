"""A function of many items, computed by the workers of a cluster, a few at a time."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from distributed import Future

    from tnesi.execution.dask.cluster import Cluster

Constant = TypeVar("Constant")
Key = TypeVar("Key")
Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2
"""Items per simultaneous task of the cluster that are under way."""


def mapped(
    cluster: Cluster,
    function: Callable[[Constant, Item], Result],
    constant: Constant,
    items: Iterable[tuple[Key, Item]],
) -> Iterator[tuple[Key, Result]]:
    """Yield the key of each item, which stays in this process, with ``function(constant, item)``, in order.

    What a worker was to compute when it died is computed by another one.
    """
    ahead = _AHEAD * sum(worker.slots for worker in cluster.workers().values())
    submit: Any = cluster.client.submit
    sent = submit(_itself, constant, pure=False)
    waiting: deque[tuple[Key, Future]] = deque()
    try:
        for key, item in items:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")
                waiting.append((key, submit(function, sent, item, pure=False)))
            if len(waiting) >= ahead:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    finally:
        cluster.client.cancel([sent, *(future for _, future in waiting)])


def _first(waiting: deque[tuple[Any, Future]]) -> tuple[Any, Any]:
    key, future = waiting.popleft()
    return key, future.result()


def _itself(value: Constant) -> Constant:
    return value
