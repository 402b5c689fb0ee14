"""Execution settings: where a fit runs, its checkpoints and its callback."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

Record = dict[str, Any]
Listener = Callable[[Record], Any]


@dataclass(frozen=True, kw_only=True)
class Local:
    """Run a fit in this process.

    Parameters
    ----------
    checkpoint : str, path or None, default=None
        Folder in which `fit` saves its state after each iteration.
    resume : bool, default=False
        Whether `fit` continues from the state in `checkpoint`. The result is that of an uninterrupted fit.
    callback : callable or None, default=None
        Called with a record (a dict) after each iteration. If it returns a true value, learning stops. The records of
        a committee also name their mixture (``mixture``, from 1, and ``mixtures``).

    Examples
    --------
    >>> from tnesi import PoissonMixture
    >>> from tnesi.execution import Local
    >>> PoissonMixture(execution=Local(checkpoint="state", resume=True)).execution.resume
    True
    """

    checkpoint: str | os.PathLike[str] | None = None
    resume: bool = False
    callback: Listener | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same settings: `sklearn.base.clone` copies parameters, and a client cannot be copied."""
        return self


@dataclass(frozen=True, kw_only=True)
class Dask(Local):
    """Run a fit on a Dask cluster. The result is the same as that of `Local`, bit for bit.

    Parameters
    ----------
    scheduler : distributed.Client, str or None, default=None
        A client, or the address of a scheduler. None means the client in use, or else a cluster on this machine that
        exists for the duration of the fit.
    checkpoint, resume, callback :
        See `Local`.

    Examples
    --------
    >>> from tnesi import PoissonMixture
    >>> from tnesi.execution import Dask
    >>> PoissonMixture(execution=Dask("tcp://scheduler:8786")).execution.scheduler
    'tcp://scheduler:8786'
    """

    scheduler: Any = field(default=None, kw_only=False)


@dataclass(frozen=True, kw_only=True)
class Torch(Local):
    """Learn and predict on a device of PyTorch, usually a GPU.

    Every row is compared with every field, whatever `search` is: the search is for predictions on the processor. Rows
    must be dense. PyTorch (``pip install "tnesi[torch]"``) is imported only for this.

    Parameters
    ----------
    device : str, default="auto"
        "cuda" or "cuda:1" (NVIDIA, AMD), "mps" (Apple) or "cpu"; "auto" is the first of these that is present. The
        records of the history name the device.
    deterministic : bool, default=False
        Whether equal runs on the same device have equal bits, which is slower. Not for "mps".
    checkpoint, resume, callback :
        See `Local`.

    Examples
    --------
    >>> from tnesi import PoissonMixture
    >>> from tnesi.execution import Torch
    >>> PoissonMixture(execution=Torch("cuda")).execution.device
    'cuda'
    """

    device: str = field(default="auto", kw_only=False)
    deterministic: bool = False
