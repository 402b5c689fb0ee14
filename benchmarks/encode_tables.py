"""Tables with few labels: TableEncoder and SimpletronClassifier compared with logistic regression on the labeled rows.

    python benchmarks/encode_tables.py [--data FOLDER] [--mixtures 4]

The error is transductive: rows without a label are learned from and predicted. `FOLDER` holds CSV files without a
header, the class in the last column (TNESI_DATA/tables by default); missing files are skipped. Logistic
regression gets the same encoded rows, or standardized numbers and one-hot categories, as is usual without the encoder.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from originals import data_folder, numbers_and_texts, table, usual_columns
from report import Row, print_table
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tnesi import SimpletronClassifier
from tnesi.data import few_labels
from tnesi.encoders import TableEncoder

Array = npt.NDArray[Any]

DRAWS = {1: 8, 10: 4}
"""Labels per class -> draws of labels for each mixture."""
REACH = {"iris": (10, 5), "wine": (5, 4), "breast cancer": (9, 6)}
FILES = ("adult-train", "german", "breast-cancer", "ionosphere", "glass", "ecoli")
MOST_ROWS = 6_000


def tables(folder: Path) -> Iterator[tuple[str, Any, Array]]:
    for name, load in (("iris", load_iris), ("wine", load_wine), ("breast cancer", load_breast_cancer)):
        given = load(as_frame=True)
        yield name, given.data, given.target.to_numpy()
    given = load_digits(as_frame=True)
    yield "8 x 8 digits", given.data, given.target.to_numpy()
    for name in FILES:
        path = folder / f"{name}.csv"
        if path.exists():
            frame, labels = table(path)
            yield name, frame.iloc[:MOST_ROWS], pd.factorize(labels[:MOST_ROWS])[0]


def customers(n: int = 2_000, seed: int = 0) -> tuple[pd.DataFrame, Array]:
    """Generate a table of customers: three groups that differ in most columns, none of which is decisive."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.5, 0.3, 0.2])

    def pick(options: list[str], shares: list[list[float]]) -> list[str]:
        return [str(rng.choice(options, p=shares[g])) for g in group]

    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(np.arange(100_000, 100_000 + n)),
            "email": [f"user{i}@example.org" for i in rng.permutation(n)],
            "age": rng.normal(np.array([31, 47, 62])[group], 7).round(),
            "income": np.exp(rng.normal(np.array([10.2, 10.9, 10.6])[group], 0.45)).round(2),
            "balance": rng.normal(np.array([-400, 900, 2500])[group], 900).round(2),
            "visits": rng.poisson(np.array([12, 5, 2])[group]),
            "plan": pick(["basic", "plus", "family"], [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.5, 0.1, 0.4]]),
            "region": pick(["north", "south", "east", "west"], [[0.25] * 4] * 3),
            "channel": pick(["app", "web", "phone"], [[0.7, 0.25, 0.05], [0.3, 0.6, 0.1], [0.1, 0.3, 0.6]]),
            "joined": pd.Timestamp("2015-01-01")
            + pd.to_timedelta((rng.normal(np.array([2800, 1700, 700])[group], 500)).clip(0).round(), unit="D"),
            "newsletter": rng.random(n) < np.array([0.3, 0.6, 0.5])[group],
            "currency": "EUR",
        }
    )
    for column in ("age", "balance", "channel"):
        frame[column] = frame[column].astype(object).mask(rng.random(n) < 0.08, None if column != "channel" else "?")
    frame["age"], frame["balance"] = frame["age"].astype(float), frame["balance"].astype(float)
    return frame, group


def plain(frame: pd.DataFrame) -> Array:
    """Return a table as is usual: standardized numbers, one-hot categories, imputed values."""
    return np.asarray(usual_columns(StandardScaler()).fit_transform(numbers_and_texts(frame)))


def errors(X: Any, others: list[Any], y: Array, draw: Callable[[int, np.random.Generator], Array],
           plan: dict[int, int], mixtures: int) -> dict[int, list[float]]:  # fmt: skip
    """Return, for each number of labels, the mean error (%) of the classifier and of logistic regressions."""
    found: dict[int, list[list[float]]] = {n: [] for n in plan}
    for seed in range(mixtures):
        classifier = SimpletronClassifier(random_state=seed).fit(X, np.full(len(y), -1))
        for n, draws in plan.items():
            for i in range(draws):
                few = draw(n, np.random.default_rng((seed, n, i)))
                classifier.fit_labels(few)
                known = few >= 0
                line = [float((classifier.transduction_[~known] != y[~known]).mean())]
                for rows in others:
                    regression = make_pipeline(LogisticRegression(max_iter=5_000)).fit(rows[known], y[known])
                    line.append(float((regression.predict(rows[~known]) != y[~known]).mean()))
                found[n].append(line)
    return {n: (100 * np.mean(lines, axis=0)).tolist() for n, lines in found.items()}


def measure(options: argparse.Namespace) -> list[Row]:
    rows = []
    for name, frame, y in tables(options.data):
        X = TableEncoder().fit_transform(frame)

        def draw(n: int, rng: np.random.Generator, y: Array = y) -> Array:
            return few_labels(y, n, rng)

        found = errors(X, [X, plain(frame)], y, draw, DRAWS, options.mixtures)
        for i, (n, (error, encoded, standard)) in enumerate(found.items()):
            reach = REACH[name][i] if name in REACH else None
            note = f"logistic regression: {encoded:.1f} on the same rows, {standard:.1f} on the usual ones"
            rows.append(Row(f"{name}, {n} per class", error, "%", reach, note=note))
            print_table(rows[-1:])
    for seed in range(3):
        frame, y = customers(seed=seed)
        X = TableEncoder().fit_transform(frame)

        def twenty(n: int, rng: np.random.Generator, y: Array = y) -> Array:
            few = np.full(len(y), -1)
            chosen = rng.choice(len(y), n, replace=False)
            few[chosen] = y[chosen]
            return few

        usual = plain(frame.drop(columns=["customer_id", "email"]))
        error, encoded, standard = errors(X, [X, usual], y, twenty, {20: 8}, 2)[20]
        note = f"logistic regression: {encoded:.1f} on the same rows, {standard:.1f} on the usual ones"
        rows.append(Row(f"customers {seed}, 20 labels", error, "%", min(encoded, standard), note=note))
        print_table(rows[-1:])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, default=data_folder("tables"), help="folder of CSV files (default: %(default)s)"
    )
    parser.add_argument("--mixtures", type=int, default=4, help="mixtures for each table (default: %(default)s)")
    warnings.simplefilter("ignore")
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
