"""Documents with few labels: TextEncoder and SimpletronClassifier beside logistic regression on the labeled rows.

    python benchmarks/encode_texts.py [--data FOLDER] [--model MODEL] [--mixtures 2] [--validate]

`FOLDER` holds one folder of .txt files for each class (TNESI_DATA/bbc by default). Six sevenths of the documents are
for training; --validate tests on a part of these instead, to compare encoders without the test documents.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from report import Row, print_table
from sklearn.linear_model import LogisticRegression

from tnesi import SimpletronClassifier
from tnesi.data import few_labels
from tnesi.encoders import TextEncoder

Array = npt.NDArray[Any]

DRAWS = {1: 8, 10: 4, 100: 4}
"""Labels per class -> draws of labels for each mixture."""
REACH = {1: 9.5, 10: 4.5, 100: 3.5}
"""For embeddings of all-MiniLM-L6-v2."""


def documents(folder: Path) -> tuple[list[Path], Array]:
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    files = [(file, k) for k, path in enumerate(classes) for file in sorted(path.glob("*.txt"))]
    order = np.random.default_rng(0).permutation(len(files))
    return [files[i][0] for i in order], np.array([files[i][1] for i in order])


def measure(kind: str, encoder: TextEncoder, options: argparse.Namespace) -> list[Row]:
    files, y = documents(options.data)
    parts = np.arange(len(files)) * 7 // len(files)
    if options.validate:
        files, y, parts = (
            [file for file, part in zip(files, parts, strict=True) if part < 6],
            y[parts < 6],
            parts[parts < 6],
        )
    test = parts == parts.max()
    train = ~test
    X = encoder.fit_transform([file for file, chosen in zip(files, train, strict=True) if chosen])
    T = encoder.transform([file for file, chosen in zip(files, test, strict=True) if chosen])
    found: dict[int, list[tuple[float, float]]] = {n: [] for n in DRAWS}
    for seed in range(options.mixtures):
        classifier = SimpletronClassifier(random_state=seed).fit(X, np.full(train.sum(), -1))
        for n, draws in DRAWS.items():
            for i in range(draws):
                few = few_labels(y[train], n, np.random.default_rng((seed, n, i)))
                classifier.fit_labels(few)
                regression = LogisticRegression(max_iter=2_000).fit(X[few >= 0], few[few >= 0])
                wrong = [float((model.predict(T) != y[test]).mean()) for model in (classifier, regression)]
                found[n].append((wrong[0], wrong[1]))
    rows = []
    for n, lines in found.items():
        error, usual = 100 * np.mean(lines, axis=0)
        note = f"logistic regression: {usual:.1f} on the same rows; {X.shape[1]} features"
        rows.append(Row(f"{kind}, {n} per class", error, "%", REACH[n] if encoder.model else None, note=note))
        print_table(rows[-1:])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    folder = Path(os.environ.get("TNESI_DATA", ".")) / "bbc"
    parser.add_argument("--data", type=Path, default=folder, help="folder of folders (default: %(default)s)")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="of sentence-transformers (default: %(default)s)")
    parser.add_argument("--mixtures", type=int, default=2, help="mixtures for each encoder (default: %(default)s)")
    parser.add_argument("--validate", action="store_true", help="test on a part of the training documents")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    measure("embeddings", TextEncoder(model=options.model, verbose=1), options)
    measure("words", TextEncoder(), options)


if __name__ == "__main__":
    main()
