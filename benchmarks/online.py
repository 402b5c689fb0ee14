"""Cost of the published online rule: passes with exact and partial E-steps, second layers, updates by truncation.

    python benchmarks/online.py [--fields 10000] [--rows 60000] [--layers 100] [--passes 1]

Times are processor time of one thread, which does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tnesi.data import Data, few_labels, load_named
from tnesi.kernels.blas import single_threaded_blas
from tnesi.labeling.labels import encode_labels
from tnesi.model.activities import Activities
from tnesi.model.fields import start_hebbian
from tnesi.model.rows import normalize
from tnesi.training.online import OnlineState, learn_epoch, online_search
from tnesi.training.rules import OnlineRule
from tnesi.training.self_labeling import ClassLearner

TRUNCATIONS = (1, 2, 5, 15, 50, 200)
LABELS = (1, 10, 60, 100, 300)
_UPDATES = 40
"""Mini-batches over which the cost of an update is averaged."""


def seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def second_layers(y: Any, n_layers: int, n_fields: int) -> list[ClassLearner]:
    """Return second layers with different numbers of labels."""
    found = []
    for i in range(n_layers):
        label, names = encode_labels(few_labels(y, LABELS[i % len(LABELS)], np.random.default_rng(i)), -1)
        learner = ClassLearner(
            label=label,
            weight=None,
            n_classes=names.size,
            self_label=True,
            threshold=0.6,
            recurrent=False,
            learning_rate=0.2,
            max_iter=1,
            batch_size=25,
            exact=False,
            n_threads=1,
            rng=np.random.default_rng(i),
        )
        learner.begin(n_fields)
        found.append(learner)
    return found


def measure(data: Data, row_sum: float, n_fields: int, n_rows: int, n_layers: int, passes: int) -> dict[str, Any]:
    """Return seconds of a pass with exact and partial E-steps, with second layers, and of a mini-batch's update."""
    rows = normalize(data.X[:n_rows], row_sum)
    rng = np.random.default_rng(0)
    state = OnlineState(start_hebbian(rows, None, n_fields, rng), rng)
    search = online_search(n_fields, 15, 1)
    partial, exact = OnlineRule(e_step="partial"), OnlineRule()

    def one_pass(rule: OnlineRule, layers: list[ClassLearner]) -> None:
        learn_epoch(state, rows, None, search, rule, layers, 1)

    found: dict[str, Any] = {"rows": len(rows), "fields": n_fields, "layers": n_layers}
    with single_threaded_blas():
        found["exact"] = seconds(lambda: one_pass(partial, []))  # the first one is
        found["partial"] = [seconds(lambda: one_pass(partial, [])) for _ in range(2 * passes)]
        found["exact again"] = [seconds(lambda: one_pass(exact, [])) for _ in range(passes)]
        layers = second_layers(data.y[:n_rows], n_layers, n_fields)
        found["with layers"] = [seconds(lambda: one_pass(partial, layers)) for _ in range(passes)]
        found["update"] = {}
        for truncation in (*[c for c in TRUNCATIONS if c < n_fields], None):
            own = online_search(n_fields, truncation, 1)
            batch = rows.take(np.arange(min(25, len(rows))))
            activities = own.find(state.fields, batch)
            if truncation is None:  # every field changes
                every = np.tile(np.arange(n_fields, dtype=np.int32), (len(batch), 1))
                activities = Activities(every, np.full(every.shape, 1 / n_fields, np.float32), activities.log_sum)
            began = time.process_time()
            for _ in range(_UPDATES):
                state.fields.hebbian_step(batch, None, activities, 1e-6, 1)
            found["update"][truncation or "all"] = (time.process_time() - began) / _UPDATES
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fields", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--layers", type=int, default=100)
    parser.add_argument("--passes", type=int, default=1)
    options = parser.parse_args()
    mnist = load_named("mnist")
    print(json.dumps(measure(mnist, 900, options.fields, options.rows, options.layers, options.passes), indent=1))
