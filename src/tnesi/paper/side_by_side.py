"""Runs of the published rule: both layers learn together, and one first layer teaches many second layers.

In a feed-forward network W does not depend on R, so the runs that share a mixture learn side by side: each second layer
sees the activities of every mini-batch before W changes, as if it were alone. The state of a mixture is saved from time
to time, and results on the way are appended to ``passes.jsonl``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tnesi.data import Data
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.estimators.parameters import reject
from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.labels import encode_labels
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, start_hebbian
from tnesi.model.free_energy import FreeEnergy, log_sum_of_joints
from tnesi.model.rows import normalize
from tnesi.paper.network import drawn_labels
from tnesi.paper.protocol import Labels
from tnesi.system.files import replacing
from tnesi.system.progress import Progress
from tnesi.system.threads import resolve_threads
from tnesi.training.online import OnlineState, learn_epoch, online_search
from tnesi.training.rules import OnlineRule
from tnesi.training.self_labeling import ClassLearner
from tnesi.types import Array

PASSES_FILE = "passes.jsonl"
LOOK_AFTER = (1, 2, 5, 10, 20, 50, 100, 150, 200, 300, 400, 500, 700, 1000, 1500, 2000)
"""Passes after which results are appended to `PASSES_FILE`."""
_SAVE_EVERY = 120.0
"""Seconds between saved states."""


@dataclass(frozen=True)
class Run:
    """A second layer: labels per class, number of the run, seed of its labels, and passes."""

    labels: Labels
    run: int
    label_seed: int
    passes: int

    @property
    def name(self) -> str:
        return f"{self.labels}/{self.run}/{self.label_seed}/{self.passes}"


@dataclass
class _Learning:
    """A mixture with the second layers that learn from it."""

    state: OnlineState
    learners: dict[Run, ClassLearner]
    seconds: float = 0.0
    processor_seconds: float = 0.0
    curve: list[tuple[int, float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Finished:
    """A run after its last pass: labels used, posterior of the test rows, and what else is known of its mixture."""

    run: Run
    n_labels: int
    posterior: Array
    classes: Array
    facts: dict[str, Any]


class SideBySide:
    """Runs of a network with the same mixture.

    Parameters
    ----------
    network : NeuralSimpletron
        A feed-forward network with the online rule; its `random_state` is the seed of the mixture.
    keep : Path
        File of the state.
    identity : dict
        What a saved state must agree with.
    """

    def __init__(
        self, network: NeuralSimpletron, data: Data, rows: slice, runs: Sequence[Run], keep: Path, identity: Any
    ) -> None:
        assert data.test is not None
        assert isinstance(network.rule, OnlineRule)
        for name in ("n_components", "row_sum"):
            if getattr(network, name) == "auto":
                reject(name, "auto", "pass a number")
        network.check_parameters()
        self._rule, self._keep = network.rule, keep
        self._threads = resolve_threads(network.n_jobs)
        self._y = data.y[rows]
        self._rows = normalize(data.X[rows], float(network.row_sum))
        self._test = normalize(data.test.X, float(network.row_sum))
        self._test_y = np.asarray(data.test.y)
        self._classes = np.unique(self._y)
        self._identity = json.loads(json.dumps({"identity": identity, "rule": asdict(network.rule)}))
        n_fields = int(network.n_components)
        self._search = online_search(n_fields, network.truncation, self._threads)
        learners = {run: self._learner(network, run, n_fields) for run in runs}
        state = OnlineState(self._start(network, n_fields), self._rng)
        self._learning = self._restored(_Learning(state, learners))

    def _start(self, network: NeuralSimpletron, n_fields: int) -> Fields:
        """Return the fields of the initialization, with the random numbers that the network itself would draw."""
        inner = check_random_state(int(check_random_state(network.random_state).randint(2**31)))
        inner.randint(2**31)
        self._rng = np.random.default_rng(inner.randint(2**31))
        return start_hebbian(self._rows, None, n_fields, self._rng)

    def _learner(self, network: NeuralSimpletron, run: Run, n_fields: int) -> ClassLearner:
        label, _ = encode_labels(drawn_labels(self._y, run.labels, run.label_seed), -1)
        learner = ClassLearner(
            label=label,
            weight=None,
            n_classes=self._classes.size,
            self_label=bool(network.self_labeling),
            threshold=network.threshold,
            recurrent=False,
            learning_rate=self._rule.label_learning_rate,
            max_iter=run.passes,
            batch_size=self._rule.batch_size,
            exact=False,
            n_threads=1,
            rng=np.random.default_rng(run.label_seed),
        )
        learner.begin(n_fields)
        return learner

    def learn(self, progress: Progress, name: str, log: Path) -> Iterator[Finished]:
        """Learn all runs; yield each one that is `Finished`. Ctrl-C saves the state."""
        now, energy = self._learning, FreeEnergy.of(self._rows, None, -self._log_fields, self._threads)
        last_saved = time.perf_counter()
        with single_threaded_blas():
            try:
                while now.learners:
                    began, used = time.perf_counter(), time.process_time()
                    seen = learn_epoch(
                        now.state, self._rows, None, self._search, self._rule, [*now.learners.values()], self._threads
                    )
                    now.seconds += time.perf_counter() - began
                    now.processor_seconds += time.process_time() - used
                    passes, free_energy = now.state.epoch, energy.mean(seen.log_sum)
                    progress.tell(f"{name}: pass {passes}, {free_energy:.3f} nats, {now.seconds / passes:.1f} s each")
                    due = [run for run in now.learners if run.passes == passes]
                    if due or passes in LOOK_AFTER:
                        now.curve.append((passes, free_energy, now.seconds))
                        yield from self._look(due, log, free_energy)
                        for run in due:
                            del now.learners[run]
                    if time.perf_counter() - last_saved > _SAVE_EVERY:
                        self._save()
                        last_saved = time.perf_counter()
            except KeyboardInterrupt:
                self._save()
                raise
        self._keep.unlink(missing_ok=True)

    @property
    def _log_fields(self) -> float:
        return float(np.log(len(self._learning.state.fields)))

    def _look(self, due: list[Run], log: Path, free_energy: float) -> Iterator[Finished]:
        """Append the errors of all runs to the log; yield those that are due."""
        now = self._learning
        fields = Fields.from_weights(now.state.fields.w)
        found = self._search.find(fields, self._test)
        activities = found.to_csr(len(fields))
        held_out = FreeEnergy.of(self._test, None, -self._log_fields, self._threads).mean(
            log_sum_of_joints(fields, found, self._test.row_sum)
        )
        exact = None if not due else self._exact_free_energy(fields)
        posteriors = {run: learner.classes.posterior(activities) for run, learner in now.learners.items()}
        errors = [[run.labels, run.run, self._error(t)] for run, t in posteriors.items()]
        entry = {
            **self._identity["identity"],
            "passes": now.state.epoch,
            "free_energy": free_energy,
            "held_out_free_energy": held_out,
            "seconds": now.seconds,
            "processor_seconds": now.processor_seconds,
            "errors": errors,
        }
        with log.open("a", encoding="utf-8") as out:
            out.write(json.dumps(entry) + "\n")
        for run in due:
            label = now.learners[run].label
            facts = {
                "free_energy": exact,
                "held_out_free_energy": held_out,
                "iterations": now.state.epoch,
                "converged": False,
                "e_step": self._rule.e_step,
                "free_energies": now.curve.copy(),
                "seconds": {"both layers": now.seconds},
                "processor_seconds": now.processor_seconds,
                "side_by_side": len(now.learners),
            }
            yield Finished(run, int((label >= 0).sum()), posteriors[run], self._classes, facts)

    def _exact_free_energy(self, fields: Fields) -> float:
        """Return the truncated free energy of the training rows with exact E-steps."""
        energy = FreeEnergy.of(self._rows, None, -self._log_fields, self._threads)
        parts = [
            log_sum_of_joints(fields, self._search.find(fields, block), self._rows.row_sum)
            for _, block in self._rows.blocks(4096)
        ]
        return energy.mean(np.concatenate(parts))

    def _error(self, t: Array) -> float:
        return round(100 * float(np.mean(self._classes[t.argmax(axis=1)] != self._test_y)), 4)

    def _save(self) -> None:
        now = self._learning
        fields, activities = now.state.fields, now.state.activities
        about = {
            **self._identity,
            "epoch": now.state.epoch,
            "rng": now.state.rng.bit_generator.state,
            "runs": [run.name for run in now.learners],
            "seconds": now.seconds,
            "processor_seconds": now.processor_seconds,
            "curve": now.curve,
        }
        arrays = {
            "w": fields.w,
            "log_w": fields.log_w,
            "log_w_sum": fields.log_w_sum,
            "w_sum": fields.w_sum,
            "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        }
        if activities is not None:
            arrays |= {"ids": activities.ids, "s": activities.s}
        if now.state.lists is not None:
            arrays["lists"] = now.state.lists
        for i, learner in enumerate(now.learners.values()):
            arrays[f"r{i}"] = learner.classes.r
        with replacing(self._keep) as temporary, temporary.open("wb") as out:
            np.savez(out, allow_pickle=False, **arrays)

    def _restored(self, fresh: _Learning) -> _Learning:
        """Return the saved state if it is of the same network and has all runs."""
        if not self._keep.exists():
            return fresh
        with np.load(self._keep) as found:
            about = json.loads(found["about"].tobytes())
            wanted = [run.name for run in fresh.learners]
            if {key: about[key] for key in self._identity} != self._identity or not set(wanted) <= set(about["runs"]):
                return fresh
            fields = Fields(*(found[name] for name in ("w", "log_w", "log_w_sum", "w_sum")))
            state = OnlineState(fields, fresh.state.rng, about["epoch"])
            state.rng.bit_generator.state = about["rng"]
            if "ids" in found:
                ids = found["ids"]
                state.activities = Activities(ids, found["s"], np.zeros(len(ids), np.float32))
            if "lists" in found:
                state.lists = found["lists"]
            for run, learner in fresh.learners.items():
                learner.classes.r[:] = found[f"r{about['runs'].index(run.name)}"]
        curve = [tuple(point) for point in about["curve"]]
        return _Learning(state, fresh.learners, about["seconds"], about["processor_seconds"], curve)
