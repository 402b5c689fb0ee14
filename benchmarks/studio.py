"""Error after a number of answers in the studio: rows from its queue compared with random rows.

    python benchmarks/studio.py [--seeds mnist=10 fashion-mnist=10] [--output FOLDER] [--models FOLDER]
    python benchmarks/studio.py --clients 20 --seconds 60

Answers are the true labels. Questions and classes come from the code of the studio: after every answer the classes are
learned, then the next question is chosen. Unseen classes count as errors. Random rows are drawn ten
times for each mixture, since draws differ much; the queue is deterministic. Writes studio.json,
studio.md and studio.png; seeds that are in studio.json already are not run again.

With ``--clients``, a server is started with MNIST instead, and clients answer simultaneously: measures the time per
answer, and whether any was lost.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from error_plot import plot_errors
from studio_load import measure_load

from tnesi import SimpletronClassifier
from tnesi.data import Data, load_named
from tnesi.labeling.suggest import Known
from tnesi.model_file import load, save
from tnesi.report.figures.canvas import to_png
from tnesi.studio.answers import View
from tnesi.studio.first_layer import FirstLayer, Settings
from tnesi.studio.first_layer import learn as learn_mixture
from tnesi.studio.learned import Learned, learn
from tnesi.studio.questions import plan
from tnesi.system.files import replacing

Array = npt.NDArray[Any]
Run = dict[str, list[float]]
Results = dict[str, dict[str, dict[str, list[Run]]]]
"""Data, seed, way to choose, draw -> errors (%) at each of `SHOWN`; of the queue also what training rows expect."""

SHOWN = {"mnist": (10, 20, 30), "fashion-mnist": (10, 20, 30, 50, 100)}
SEEDS = {"mnist": 10, "fashion-mnist": 10}
DRAWS = {"queue": 1, "random choice": 10}


def first_layer(data: Data, name: str, seed: int, kept: Path | None) -> FirstLayer:
    """Return the mixture, from a file if there is one."""
    path = kept / f"{name}-{seed}.tnesi" if kept else None
    if path is None or not path.exists():
        layer = learn_mixture(data, Settings(seed=seed), lambda *_: False)
        if path is not None:
            save(layer.classifier(layer.model), path)
        return layer
    found = load(path)
    assert isinstance(found, SimpletronClassifier)
    return FirstLayer.of(found)


def ask(data: Data, layer: FirstLayer, way: str, draw: Sequence[int], shown: tuple[int, ...]) -> Run:
    """Return the errors of one mixture for one way to choose; `draw` is the seed of random choice."""
    assert data.test is not None
    truth, test_truth = data.y.astype(str), data.test.y.astype(str)
    labeler, known = layer.labeler, Known.nothing(truth.size)
    labels: dict[int, str] = {}
    at_random = iter(np.random.default_rng(draw).permutation(truth.size).tolist())
    run: Run = {key: [] for key in ("error", *(("true", "expected", "low", "high") if way == "queue" else ()))}
    while len(labels) < shown[-1]:
        row = plan(labeler, known, ())[0].row if way == "queue" else next(at_random)
        labels[row] = str(truth[row])
        if way != "queue" and len(labels) not in shown:
            continue
        learned = learn(layer, View(len(labels), dict(labels), frozenset(), (), can_undo=True))
        known = learned.known()
        if len(labels) in shown:
            _note(run, learned, truth, data.test.X, test_truth)
    return run


def _note(run: Run, learned: Learned, truth: Array, test: Any, test_truth: Array) -> None:
    assert learned.model is not None
    names, free = np.array(learned.names), learned.label < 0
    found = names[learned.model.posterior(test, learned.layer.labeler.n_threads).argmax(axis=1)]
    run["error"].append(100 * float(np.mean(found != test_truth)))
    if "true" in run and learned.estimate is not None:
        run["true"].append(100 * float(np.mean(names[learned.best][free] != truth[free])))
        for name, value in zip(("expected", "low", "high"), learned.estimate[:3], strict=True):
            run[name].append(100 * value)


def table(results: Results) -> str:
    """Return the mean and, in brackets, the worst errors as Markdown; then what was expected against the truth."""
    lines = []
    for name, seeds in results.items():
        shown = SHOWN[name]
        lines += [f"| {name}, {len(seeds)} seeds | {' | '.join(f'{n} answers' for n in shown)} |"]
        lines += ["|---|" + "---|" * len(shown)]
        for way in DRAWS:
            errors = _errors(seeds, way)
            cells = [f"{mean:.2f} ({worst:.2f})" for mean, worst in zip(errors.mean(0), errors.max(0), strict=True)]
            lines.append(f"| {way} | {' | '.join(cells)} |")
        queue = [run for ways in seeds.values() for run in ways["queue"]]
        of = {key: np.array([run[key] for run in queue]) for key in ("true", "expected", "low", "high")}
        inside = (of["low"] <= of["true"]) & (of["true"] <= of["high"])
        for key, text in (("true", "true error of the training rows"), ("expected", "expected error")):
            lines.append(f"| {text} | {' | '.join(f'{mean:.2f}' for mean in of[key].mean(0))} |")
        ends = [f"{low:.1f} to {high:.1f}" for low, high in zip(of["low"].mean(0), of["high"].mean(0), strict=True)]
        lines.append(f"| its interval (mean of the ends) | {' | '.join(ends)} |")
        lines.append(f"| truth in the interval | {' | '.join(f'{n} of {len(queue)}' for n in inside.sum(0))} |")
        lines.append("")
    return "\n".join(lines)


def _errors(seeds: dict[str, dict[str, list[Run]]], way: str) -> Array:
    return np.array([run["error"] for ways in seeds.values() for run in ways[way]])


def plot(results: Results) -> Any:
    shown = [
        (
            f"{name}, {len(seeds)} seeds",
            SHOWN[name],
            {way: _errors(seeds, way) for way in DRAWS},
        )
        for name, seeds in results.items()
    ]
    return plot_errors(shown, "answers")


def write(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "studio.json") as file:
        file.write_text(json.dumps(results, indent=2) + "\n")
    (folder / "studio.md").write_text(table(results))
    (folder / "studio.png").write_bytes(to_png(plot(results), 200))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", metavar="DATA=N", default=[f"{name}={n}" for name, n in SEEDS.items()])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "studio")
    parser.add_argument("--models", type=Path, help="folder for mixtures, which take most of the time")
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    if options.clients:
        print(measure_load(options.clients, options.seconds))
        return
    kept = options.output / "studio.json"
    results: Results = json.loads(kept.read_text()) if kept.exists() else {}
    for given in options.seeds:
        name, _, n = given.partition("=")
        data = load_named(name)
        for seed in range(int(n)):
            done = results.setdefault(name, {})
            if str(seed) in done:
                continue
            layer = first_layer(data, name, seed, options.models)
            done[str(seed)] = {
                way: [ask(data, layer, way, (seed, draw), SHOWN[name]) for draw in range(draws)]
                for way, draws in DRAWS.items()
            }
            write(results, options.output)
            for way, runs in done[str(seed)].items():
                print(name, seed, way, np.round(np.mean([run["error"] for run in runs], axis=0), 2), flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
