"""Error against the number of questions: rows chosen by `suggest`, at random, and by smallest margin.

    python benchmarks/suggest.py [--seeds mnist=10 fashion-mnist=5] [--output FOLDER]

Ten rows are asked for at a time, and answered truthfully; then the classifier learns from all answers so far. Classes
that have not been met count as errors. Writes suggest.json, suggest.md, suggest.png and suggest.svg; seeds that are in
suggest.json already are not run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from error_plot import plot_errors

from tnesi import SimpletronClassifier
from tnesi.data import Data, load_named
from tnesi.report.figures.canvas import drawing, to_png
from tnesi.system.files import replacing

Array = npt.NDArray[Any]
Results = dict[str, dict[str, dict[str, list[float]]]]
"""Data, seed, way to choose -> errors (%) at each of `SHOWN`."""

AT_ONCE = 10
SHOWN = (10, 20, 30, 50, 100)
SEEDS = {"mnist": 10, "fashion-mnist": 5}


def suggested(classifier: SimpletronClassifier, free: Array, rng: np.random.Generator) -> list[int]:
    return [suggestion.row for suggestion in classifier.suggest(AT_ONCE)]


def at_random(classifier: SimpletronClassifier, free: Array, rng: np.random.Generator) -> list[int]:
    rows: list[int] = rng.choice(free, AT_ONCE, replace=False).tolist()
    return rows


def of_small_margin(classifier: SimpletronClassifier, free: Array, rng: np.random.Generator) -> list[int]:
    if not classifier.classes_.size:
        return at_random(classifier, free, rng)
    second, best = np.partition(classifier.label_distributions_[free], -2, axis=1)[:, -2:].T
    rows: list[int] = free[np.argsort(best - second, kind="stable")[:AT_ONCE]].tolist()
    return rows


WAYS: dict[str, Callable[[SimpletronClassifier, Array, np.random.Generator], list[int]]] = {
    "suggestions": suggested,
    "random choice": at_random,
    "smallest margin": of_small_margin,
}


def ask(data: Data, seed: int) -> dict[str, list[float]]:
    """Return the errors of one mixture for each way to choose."""
    assert data.test is not None
    nothing = np.full(len(data.y), -1)
    classifier = SimpletronClassifier(random_state=seed).fit(data.X, nothing)
    waiting = classifier.model_
    errors: dict[str, list[float]] = {}
    for way, choose in WAYS.items():
        rng, y = np.random.default_rng(seed), nothing.copy()
        classifier = SimpletronClassifier.from_model(waiting, classifier.mixtures_, classifier.get_params())
        errors[way] = []
        while (y >= 0).sum() < SHOWN[-1]:
            rows = choose(classifier, np.flatnonzero(y < 0), rng)
            y[rows] = data.y[rows]
            classifier.fit_labels(y)
            if (y >= 0).sum() in SHOWN:
                found = classifier.predict(data.test.X)
                errors[way].append(100 * float(np.mean(found != data.test.y)))
    return errors


def table(results: Results) -> str:
    """Return the mean and, in brackets, the worst errors as Markdown."""
    lines = [f"| data | rows chosen by | {' | '.join(map(str, SHOWN))} |", "|---|---|" + "---|" * len(SHOWN)]
    for name, seeds in results.items():
        for way in WAYS:
            errors = np.array([run[way] for run in seeds.values()])
            cells = [f"{mean:.2f} ({worst:.2f})" for mean, worst in zip(errors.mean(0), errors.max(0), strict=True)]
            lines.append(f"| {name}, {len(seeds)} mixtures | {way} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def plot(results: Results) -> Any:
    shown = [
        (f"{name}, {len(seeds)} mixtures", SHOWN, {way: np.array([run[way] for run in seeds.values()]) for way in WAYS})
        for name, seeds in results.items()
    ]
    return plot_errors(shown, "labels asked for")


def write(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure = plot(results)
    with replacing(folder / "suggest.json") as file:
        file.write_text(json.dumps(results, indent=2) + "\n")
    (folder / "suggest.md").write_text(table(results))
    (folder / "suggest.png").write_bytes(to_png(figure, 200))
    with drawing():
        figure.savefig(folder / "suggest.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", metavar="DATA=N", default=[f"{name}={n}" for name, n in SEEDS.items()])
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "suggest")
    options = parser.parse_args()
    kept = options.output / "suggest.json"
    results: Results = json.loads(kept.read_text()) if kept.exists() else {}
    for given in options.seeds:
        name, _, n = given.partition("=")
        data = load_named(name)
        for seed in range(options.first_seed, options.first_seed + int(n)):
            done = results.setdefault(name, {})
            if str(seed) not in done:
                done[str(seed)] = ask(data, seed)
                write(results, options.output)
                for way, errors in done[str(seed)].items():
                    print(name, seed, way, np.round(errors, 2), flush=True)
    write(results, options.output)
    print(table(results))


if __name__ == "__main__":
    main()
