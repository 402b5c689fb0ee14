"""Documents with few labels: TextEncoder and SimpletronClassifier compared with logistic regression and naive-Bayes EM.

    python benchmarks/encode_texts.py [--data FOLDER] [--model MODEL] [--mixtures 2] [--validate] [--words]

`FOLDER` holds one folder of .txt files for each class (TNESI_DATA/bbc by default). Six sevenths of the documents are
for training; --validate tests on a part of these instead, to compare encoders without the test documents. --words
omits the embeddings, which need tnesi[embed].

Logistic regression learns from the labeled rows only; naive-Bayes EM (Nigam et al. 2000) from the word counts of all
rows.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from naive_bayes import naive_bayes_em
from originals import data_folder, documents, sevenths
from report import Row, print_table
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from tnesi import SimpletronClassifier
from tnesi.data import few_labels
from tnesi.encoders import TextEncoder

DRAWS = {1: 8, 10: 4, 100: 4}
"""Labels per class -> draws of labels for each mixture."""
REACH = {1: 9.5, 10: 4.5, 100: 3.5}
"""For embeddings of all-MiniLM-L6-v2."""


def measure(kind: str, encoder: TextEncoder, options: argparse.Namespace) -> list[Row]:
    files, y = documents(options.data)
    parts = sevenths(len(files))
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
    vectorizer = CountVectorizer(input="filename", decode_error="replace", min_df=3, max_df=0.3)
    N = vectorizer.fit_transform([file for file, chosen in zip(files, train, strict=True) if chosen])
    N_test = vectorizer.transform([file for file, chosen in zip(files, test, strict=True) if chosen])
    found: dict[int, list[list[float]]] = {n: [] for n in DRAWS}
    for seed in range(options.mixtures):
        classifier = SimpletronClassifier(random_state=seed).fit(X, np.full(train.sum(), -1))
        for n, draws in DRAWS.items():
            for i in range(draws):
                few = few_labels(y[train], n, np.random.default_rng((seed, n, i)))
                classifier.fit_labels(few)
                regression = LogisticRegression(max_iter=2_000).fit(X[few >= 0], few[few >= 0])
                predicted = [classifier.predict(T), regression.predict(T), naive_bayes_em(N, few).predict(N_test)]
                found[n].append([float((labels != y[test]).mean()) for labels in predicted])
    rows = []
    for n, lines in found.items():
        error, *usual = 100 * np.mean(lines, axis=0)
        names = ("logistic regression", "naive-Bayes EM")
        others = ", ".join(f"{name}: {one:.1f}" for name, one in zip(names, usual, strict=False))
        note = f"{others}; {X.shape[1]} features"
        rows.append(Row(f"{kind}, {n} per class", error, "%", REACH[n] if encoder.model else None, note=note))
        print_table(rows[-1:])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, default=data_folder("bbc"), help="folder of folders (default: %(default)s)"
    )
    parser.add_argument(
        "--model", default="all-MiniLM-L6-v2", help="sentence-transformers model (default: %(default)s)"
    )
    parser.add_argument("--mixtures", type=int, default=2, help="mixtures for each encoder (default: %(default)s)")
    parser.add_argument("--validate", action="store_true", help="test on a part of the training documents")
    parser.add_argument("--words", action="store_true", help="omit the embeddings")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    measure("words", TextEncoder(), options)
    if not options.words:
        measure("embeddings", TextEncoder(model=options.model, verbose=1), options)


if __name__ == "__main__":
    main()
