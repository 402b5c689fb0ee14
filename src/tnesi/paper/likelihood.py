"""Likelihood of the first layer over the iterations for several truncations (Fig. 4 of the paper)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tnesi.data import Data
from tnesi.execution.local import LocalEngine
from tnesi.kernels.blas import single_threaded_blas
from tnesi.model.classes import FieldClasses
from tnesi.model.fields import Fields, draw_distinct, start_from_rows, start_hebbian
from tnesi.model.free_energy import FreeEnergy
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.paper.protocol import Labels, Protocol
from tnesi.paper.run_folder import RunFolder
from tnesi.paper.side_by_side import LOOK_AFTER
from tnesi.search import ExactSearch, FullSearch, NeighborSearch, Search
from tnesi.search.exact import log_likelihood
from tnesi.system.progress import Progress, tell_iterations
from tnesi.system.threads import resolve_threads
from tnesi.training.em import run_em
from tnesi.training.mixture import FEWEST_NEIGHBORS
from tnesi.training.monitor import Monitor
from tnesi.training.online import OnlineState, learn_epoch, online_search
from tnesi.training.rules import OnlineRule


def wanted_curves(protocol: Protocol) -> list[tuple[Labels, int]]:
    """Return truncation and seed of all curves of a protocol."""
    return [(c, protocol.seed_of(run)) for c in protocol.truncations for run in range(protocol.runs)]


def run_likelihood(protocol: Protocol, folder: RunFolder, data_of: dict[str, Data], progress: Progress) -> None:
    """Learn the first layer for each truncation and seed, saving a record of each."""
    done = {(record["truncation"], record["seed"]) for record in folder.records}
    pending = [key for key in wanted_curves(protocol) if key not in done]
    progress.begin(len(pending))
    task = protocol.tasks[0]
    for truncation, seed in pending:
        progress.tell(f"{task.title}: C' = {truncation}, mixture {seed}")
        curve = _Curve(protocol, data_of[task.name], seed, progress, truncation)
        curve.learn()
        folder.append({"truncation": truncation, "seed": seed, "curve": curve.points})
        progress.advance()


class _Curve:
    """A mixture, evaluated after some of its iterations."""

    def __init__(self, protocol: Protocol, data: Data, seed: int, progress: Progress, truncation: Labels) -> None:
        assert data.test is not None
        self.points: list[dict[str, Any]] = []
        self._looked = 0.0  # seconds spent on evaluation
        self._protocol, self._seed, self._progress, self._truncation = protocol, seed, progress, truncation
        self._threads = resolve_threads(None)
        row_sum = float(protocol.parameters["row_sum"])
        X = data.X[: protocol.train_rows]
        self._X, self._rows = X, normalize(X, row_sum)
        sample = np.random.default_rng(seed).choice(len(X), min(protocol.sample_rows, len(X)), replace=False)
        self._sample, self._test = self._rows.take(np.sort(sample)), normalize(data.test.X, row_sum)
        self._classes, label = np.unique(data.y[: protocol.train_rows], return_inverse=True)
        self._sample_label, self._test_label = label[np.sort(sample)].astype(np.int32), data.test.y

    def _search(self) -> Search:
        if self._truncation == "all":
            return FullSearch(self._protocol.parameters["n_components"], self._threads)
        kind = ExactSearch if self._truncation < FEWEST_NEIGHBORS else NeighborSearch
        return kind(self._truncation, self._threads)

    def learn(self) -> None:
        if self._protocol.solver == "em":
            self._learn_em()
        else:
            self._learn_online()

    def _learn_online(self) -> None:
        """Learn by the published rule with exact E-steps."""
        n_fields = int(self._protocol.parameters["n_components"])
        rng = np.random.default_rng(self._seed)
        state = OnlineState(start_hebbian(self._rows, None, n_fields, rng), rng)
        truncation = None if self._truncation == "all" else self._truncation
        search = online_search(n_fields, truncation, self._threads)
        energy = FreeEnergy.of(self._rows, None, -np.log(n_fields), self._threads)
        began, passes = time.perf_counter(), self._protocol.passes("all")
        name = f"C' = {self._truncation}, mixture {self._seed}"
        with single_threaded_blas():
            for done in range(1, passes + 1):
                seen = learn_epoch(state, self._rows, None, search, OnlineRule(), [], self._threads)
                entry = {"iteration": done, "free_energy": energy.mean(seen.log_sum)}
                entry["seconds"] = time.perf_counter() - began
                self._progress.tell(f"{name}: pass {done} of {passes}, {entry['free_energy']:.3f} nats")
                fields = Fields.from_weights(state.fields.w) if done in LOOK_AFTER or done == passes else state.fields
                self._look(fields, entry, evaluate=fields is not state.fields)

    def _learn_em(self) -> None:
        search = self._search()
        monitor = Monitor(
            tol=0.0, listener=tell_iterations(self._progress, f"C' = {self._truncation}, mixture {self._seed}")
        )
        with single_threaded_blas():
            drawn = draw_distinct(row_hashes(self._X, self._seed, self._threads), None)
            fields = start_from_rows(self._rows, None, drawn[: self._protocol.parameters["n_components"]])
            run_em(
                LocalEngine.of(self._rows, None, self._threads),
                search.arrange(fields),
                search,
                monitor,
                max_iter=self._protocol.iterations,
                observe=lambda fields: self._look(
                    fields, monitor.history[-1], monitor.history[-1]["iteration"] in self._protocol.evaluate_at
                ),
            )
        if monitor.interrupted:
            raise KeyboardInterrupt

    def _look(self, fields: Fields, entry: dict[str, Any], evaluate: bool) -> None:
        """Measure the exact likelihood of the sample and of the test rows, and the error if labels name the fields."""
        began = time.perf_counter()
        point = {"iteration": entry["iteration"], "free_energy": entry["free_energy"]}
        point["seconds"] = entry["seconds"] - self._looked
        if evaluate:
            truncation = len(fields) if self._truncation == "all" else self._truncation
            for name, rows in (("log_likelihood", self._sample), ("held_out", self._test)):
                energy = FreeEnergy.of(rows, None, -np.log(len(fields)), self._threads)
                point[name] = energy.mean(log_likelihood(fields, rows, self._threads))
            point["error"] = self._error(fields, min(truncation, 200))
        self.points.append(point)
        self._looked += time.perf_counter() - began

    def _error(self, fields: Fields, truncation: int) -> float:
        search = ExactSearch(truncation, self._threads)

        def activities(rows: Rows) -> Any:
            return search.find(fields, rows).to_csr(len(fields))

        named = FieldClasses.average(activities(self._sample), self._sample_label, None, self._classes.size)
        predicted = self._classes[named.posterior(activities(self._test)).argmax(axis=1)]
        return 100 * float(np.mean(predicted != self._test_label))
