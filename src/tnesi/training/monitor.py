"""The monitor of a fit: history, listeners and the convergence test."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tnesi.execution.settings import Listener, Record


class InterruptedWarning(ConvergenceWarning):
    """Learning was interrupted by Ctrl-C; the model is that of the last complete iteration."""


@dataclass
class Monitor:
    """History of a fit.

    Attributes
    ----------
    tol : float
        Converged when an iteration increases the objective by less than this (nats per row). 0 disables the test.
    listener : callable or None
        Called with each record; a true return value stops the fit.
    place : dict
        For a mixture of a committee: ``mixture`` (from 1) and ``mixtures``, which are added to its records.
    device : str or None
        Name of the device of PyTorch that learns, which is added to the records; None means the processor.
    history : list of dict
        Per iteration: ``iteration``, ``free_energy``, ``changed`` (share of rows with a new best field),
        ``search``, ``seconds`` since the start.
    objective : float
        The objective of EM after the last iteration.
    gain : float
        Its increase in the last iteration.
    """

    tol: float
    listener: Listener | None = None
    place: Record = field(default_factory=dict)
    device: str | None = None
    history: list[Record] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    objective: float = -np.inf
    gain: float = np.inf
    _began: float = field(default_factory=time.perf_counter)

    def record(self, free_energy: float, changed: float, search: str, log_prior: float = 0.0) -> bool:
        """Add an iteration; return whether to stop. The objective is the free energy plus `log_prior`."""
        self.gain = free_energy + log_prior - self.objective
        entry: Record = {
            "iteration": len(self.history),
            "free_energy": free_energy,
            "changed": changed,
            "search": search,
            "seconds": time.perf_counter() - self._began,
            **({"device": self.device} if self.device else {}),
            **self.place,
        }
        self.objective = free_energy + log_prior
        self.history.append(entry)
        self.converged = self._has_converged()
        stop_requested = self.listener is not None and bool(self.listener(entry))
        return self.converged or stop_requested

    def restore(self, history: list[Record], objective: float, gain: float, *, stopped: bool) -> bool:
        """Resume from the history of an earlier run; return whether to stop immediately.

        The tolerance may have changed. If a listener `stopped` that run, it is called again.
        """
        self.history, self.objective, self.gain = history, objective, gain
        self.converged = self._has_converged()
        self._began = time.perf_counter() - history[-1]["seconds"]
        return self.converged or (stopped and self.listener is not None and bool(self.listener(history[-1])))

    def _has_converged(self) -> bool:
        return self.tol > 0 and bool(self.gain < self.tol)


def print_record(record: Record) -> None:
    """Print one line per iteration: the listener behind ``verbose``."""
    place = f"mixture {record['mixture']}/{record['mixtures']}   " if "mixture" in record else ""
    print(
        f"{place}iteration {record['iteration']:3d}   free energy {record['free_energy']:12.4f}   "
        f"changed {100 * record['changed']:6.2f} %   {record['seconds']:7.2f} s   {record['search']}",
        flush=True,
    )


def listener_for(verbose: int, callback: Listener | None) -> Listener | None:
    """Return a listener that calls `callback`, and prints each record first if `verbose` is set."""
    if not verbose:
        return callback

    def both(record: Record) -> bool:
        print_record(record)
        return bool(callback is not None and callback(record))

    return both
