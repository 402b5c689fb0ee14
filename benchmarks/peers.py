"""Compare tnesi with what people would use otherwise, on the same data and the same draws of labels.

    python benchmarks/peers.py [--data NAME ...] [--features KIND ...] [--labels N ...] [--methods NAME ...]
                               [--draws 10] [--results peers.jsonl] [--again NAME ...]
    python benchmarks/peers.py --table [FILE]       the tables as Markdown, or put into a file between its markers
    python benchmarks/peers.py --summary            how often tnesi is first, and where it is behind
    python benchmarks/peers.py --figure peers.png   the picture of the README
    python benchmarks/peers.py --json peers.json    means of all cells

Every result is appended to the file of results as a line of JSON, so a run that was interrupted continues where it
stopped. `--again tnesi` forgets the results of a method first, for example since it has changed; those of the others
stay, and so do the draws. A record has a digest of its rows: where an encoder has changed them, all methods run again.
Several processes may share the work, each with a file of results of its own; `cat` joins these.

`--validate` is for choosing between variants of a method without looking at test labels: a seventh of the training
rows becomes the test part, and other rows are labeled. Keep its results in a file of their own.

`peers_features.py` describes the data and their features, `peers_methods.py` the methods. Draws are the same for all
methods. A number of labels per class is left out where more than half of the training rows would have a label; classes
that have fewer rows are labeled as far as they go. Errors are those on the test part; where there is none, those on the
unlabeled rows, from which methods may learn, too. PoissonMBO takes minutes for each draw on more than 20,000 rows, and
has fewer draws there (`--slow-draws`).
"""

from __future__ import annotations

import argparse
import json
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import peers_figure
import peers_report
from peak_memory import Cost, measure
from peers_cells import OURS, cells_of
from peers_data import (
    FEATURE_KINDS,
    KINDS,
    NAMES,
    FeatureKind,
    Split,
    digest_of,
    feature_kinds,
    features_folder,
    load,
    validation,
)
from peers_methods import LARGE, METHODS, Method, Prediction, Shared, Task
from threadpoolctl import threadpool_limits

from tnesi.data import few_labels
from tnesi.errors import TnesiError
from tnesi.paper.machine import machine
from tnesi.paper.statistics import calibration_error
from tnesi.system.files import replacing

Array = npt.NDArray[Any]
Record = dict[str, Any]

LABELS = (1, 3, 10, 100)
KEY = ("data", "features", "labels", "draw", "method")


class Cell(NamedTuple):
    """A draw of labels on some features."""

    data: str
    features: FeatureKind
    labels: int
    draw: int


class Results:
    """The records in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = read_records(path)
        self._done = {key_of(record) for record in self.records}

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._done

    def add(self, record: Record) -> None:
        self.records.append(record)
        self._done.add(key_of(record))
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def forget(self, outdated: Callable[[Record], bool]) -> None:
        """Remove some records."""
        kept = [record for record in self.records if not outdated(record)]
        if len(kept) == len(self.records):
            return
        self.records, self._done = kept, {key_of(record) for record in kept}
        with replacing(self.path) as temporary:
            temporary.write_text("".join(json.dumps(record) + "\n" for record in self.records))


def read_records(path: Path) -> list[Record]:
    """Return the records of a file; a last line that was not written to its end does not count."""
    if not path.exists():
        return []
    whole, _, part = path.read_text().rpartition("\n")
    if part:
        with replacing(path) as temporary:
            temporary.write_text(whole + "\n" if whole else "")
    return [json.loads(line) for line in whole.splitlines()]


def key_of(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in KEY)


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    results = Results(options.results)
    if options.again:
        results.forget(lambda record: record["method"] in options.again)
    found_on = {key: machine()[key] for key in ("processor", "threads", "date", "tnesi", "commit")}
    for name in options.data:
        for features in feature_kinds(name):
            if features not in options.features:
                continue
            try:
                split = load(name, features, options.folder)
            except TnesiError as error:
                print(f"{name}, {features}: left out: {error}", flush=True)
                continue
            split = _in_unit_range(name, features, validation(split) if options.validate else split)
            _run_features(name, features, split, options, results, found_on)


def _in_unit_range(name: str, features: FeatureKind, split: Split) -> Split:
    """Return pixels as numbers from 0 to 1, as people scale them."""
    if KINDS[name] != "images" or features != "raw":
        return split
    scale = np.float32(split.X.max())
    return split._replace(X=split.X / scale, X_test=split.X_test / scale)


def _run_features(name: str, features: FeatureKind, split: Split, options: argparse.Namespace, results: Results,
                  found_on: Record) -> None:  # fmt: skip
    shared: dict[str, tuple[Any, Shared, float]] = {}
    seed = (1,) if options.validate else ()
    digest = digest_of(split)
    results.forget(lambda r: (r["data"], r["features"]) == (name, features) and r["digest"] != digest)
    facts = {**found_on, "digest": digest}
    for draw in range(options.draws):
        for labels in options.labels:
            few = few_labels(split.y, labels, np.random.default_rng((draw, labels, *seed)))
            if (few >= 0).mean() > 0.5:
                continue
            cell = Cell(name, features, labels, draw)
            task = _task(cell, split, few, options.folder, digest)
            for method in options.methods:
                too_slow = METHODS[method].slow and len(few) > LARGE and draw >= options.slow_draws
                if too_slow or (*cell, method) in results:
                    continue
                record = {**cell._asdict(), "method": method, **_facts(split, few, METHODS[method])}
                results.add({**record, **_attempt(method, task, split, shared), **facts})
                _print(results.records[-1])


def _task(cell: Cell, split: Split, few: Array, folder: Path, digest: str) -> Task:
    of_all = split.y if split.y_test is None else np.concatenate([split.y, split.y_test])
    graph = folder / f"{cell.data}-{cell.features}-neighbors-{digest}.npz"
    return Task(split.X, split.X_test, few, np.bincount(of_all) / len(of_all), cell.draw, graph)


def _facts(split: Split, few: Array, method: Method) -> Record:
    transductive = split.X_test is None
    return {
        "n_rows": int(split.X.shape[0]),
        "n_features": int(split.X.shape[1]),
        "n_labeled": int((few >= 0).sum()),
        "n_asked": int((few < 0).sum() if transductive else len(split.y_test)),
        "transductive": transductive,
        "sees_test": method.sees_test and not transductive,
        "told_sizes": method.told_sizes,
    }


def _attempt(name: str, task: Task, split: Split, shared: dict[str, tuple[Any, Shared, float]]) -> Record:
    """Learn and predict; return the measures, or why there are none."""
    method = METHODS[name]
    reason = method.refuses(task)
    if reason:
        return {"skipped": reason}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            common, common_memory = _common(name, task, shared)
            with threadpool_limits(None if name == OURS else 1):  # most matrices are too small for more
                found, cost = measure(lambda: method.learn(task, common.value))
        except Exception as error:
            traceback.print_exc()
            return {"skipped": f"{type(error).__name__}: {error}"[:300]}
    truth = split.y[~task.labeled] if split.y_test is None else split.y_test
    said = list(dict.fromkeys(str(warning.message) for warning in warned if issubclass(warning.category, UserWarning)))
    return {
        **_measures(found, truth),
        "seconds": round(cost.seconds, 4),
        "shared_seconds": round(common.seconds, 4),
        "cpu_seconds": round(cost.cpu_seconds, 4),
        "shared_cpu_seconds": round(common.cpu_seconds, 4),
        "memory_mb": round(max(cost.megabytes, common_memory), 1),
        **found.facts,
        **({"warnings": said} if said else {}),
    }


def _common(name: str, task: Task, shared: dict[str, tuple[Any, Shared, float]]) -> tuple[Shared, float]:
    """Return what this draw shares with others, from the last one if it fits, and how much memory it took."""
    method = METHODS[name]
    if method.share is None:
        return Shared(None), 0
    share, key = method.share, method.share_key(task)
    if name not in shared or shared[name][0] != key:
        shared.pop(name, None)
        cost: Cost
        value, cost = measure(lambda: share(task))
        shared[name] = key, value, cost.megabytes
    return shared[name][1:]


def _measures(found: Prediction, truth: Array) -> Record:
    """Return the error, and the calibration error of probabilities in 15 bins of equal width, both in percent."""
    out = {"error": 100 * float(np.mean(found.labels != truth))}
    if found.probabilities is not None:
        right = found.probabilities.argmax(axis=1) == truth
        out["ece"] = 100 * calibration_error(found.probabilities.max(axis=1), right)
    return out


def _print(record: Record) -> None:
    where = ", ".join(str(record[name]) for name in KEY)
    if "skipped" in record:
        print(f"{where}: left out: {record['skipped']}", flush=True)
        return
    shared = f" + {record['shared_seconds']:.1f} shared" if record["shared_seconds"] else ""
    ece = f", calibration {record['ece']:.1f}" if "ece" in record else ""
    print(f"{where}: {record['error']:.2f} %{ece}, {record['seconds']:.2f} s{shared}, {record['memory_mb']:.0f} MB",
          flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every: dict[str, Any] = {"nargs": "+", "metavar": "NAME"}
    parser.add_argument("--data", choices=NAMES, default=NAMES, help=", ".join(NAMES), **every)
    parser.add_argument(
        "--features", choices=FEATURE_KINDS, default=FEATURE_KINDS, help=", ".join(FEATURE_KINDS), **every
    )
    parser.add_argument("--methods", choices=METHODS, default=list(METHODS), help=", ".join(METHODS), **every)
    parser.add_argument(
        "--labels", type=int, nargs="+", default=LABELS, metavar="N", help="per class (default: 1 3 10 100)"
    )
    parser.add_argument("--draws", type=int, default=10, help="of labels (default: %(default)s)")
    parser.add_argument(
        "--slow-draws", type=int, default=2, metavar="N", help="of PoissonMBO on more than 20,000 rows (default: 2)"
    )
    parser.add_argument(
        "--again", choices=METHODS, default=[], help="methods whose results are forgotten first", **every
    )
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "peers.jsonl")
    parser.add_argument("--validate", action="store_true", help="test on a part of the training rows (see above)")
    parser.add_argument(
        "--folder", type=Path, default=features_folder(), help="of features (default: TNESI_BENCHMARKS)"
    )
    parser.add_argument("--table", nargs="?", const="", metavar="FILE", help="print the tables instead of running, or "
                        "write them into a file")  # fmt: skip
    parser.add_argument("--summary", action="store_true", help="print the summary instead of running")
    parser.add_argument("--figure", type=Path, metavar="PNG", help="draw the picture instead of running")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the means of all cells instead of running")
    options = parser.parse_args()
    if options.table is None and not (options.summary or options.figure or options.json):
        run(options)
    else:
        report(options)


def report(options: argparse.Namespace) -> None:
    """Show the results that were chosen."""
    order = {name: i for i, name in enumerate(NAMES)}
    chosen = [
        record
        for record in read_records(options.results)
        if record["data"] in options.data
        and record["features"] in options.features
        and record["labels"] in options.labels
        and record["method"] in options.methods
        and record["draw"] < options.draws
    ]
    if not chosen:
        raise SystemExit(f"{options.results} has no such results: run python benchmarks/peers.py first")
    chosen.sort(key=lambda r: (order[r["data"]], FEATURE_KINDS.index(r["features"]), r["labels"], _rank(r["method"])))
    cells = cells_of(chosen)
    if options.table is not None:
        text = peers_report.page(cells, chosen)
        if options.table:
            _write_between(Path(options.table), text)
        else:
            print(text)
    if options.summary:
        print(peers_report.summary(cells), end="")
    if options.figure:
        print(peers_figure.draw(cells, options.figure))
    if options.json:
        means = [{**where._asdict(), "methods": {name: o.as_json() for name, o in cell.items()}}
                 for where, cell in cells.items()]  # fmt: skip
        with replacing(options.json) as temporary:
            temporary.write_text("[\n" + ",\n".join(map(json.dumps, means)) + "\n]\n")


def _rank(method: str) -> int:
    return list(METHODS).index(method) if method in METHODS else len(METHODS)


MARKERS = "<!-- written by benchmarks/peers.py -->", "<!-- end -->"


def _write_between(path: Path, text: str) -> None:
    """Replace what a file has between the markers."""
    before, start, rest = path.read_text().partition(MARKERS[0])
    _, end, after = rest.partition(MARKERS[1])
    if not start or not end:
        raise SystemExit(f"{path} does not have the lines {MARKERS[0]} and {MARKERS[1]}")
    with replacing(path) as temporary:
        temporary.write_text(f"{before}{start}\n{text}{end}{after}")


if __name__ == "__main__":
    main()
