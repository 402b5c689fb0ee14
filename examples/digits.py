"""Learn scikit-learn's 8 x 8 digits from one label per class, and more; draw the learned fields.

Run it with ``make demo``, or ``python examples/digits.py [FOLDER]`` where tnesi is installed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from tnesi import SimpletronClassifier
from tnesi.data import few_labels, load_named
from tnesi.report import plot_fields

DRAWS = 10


def main(folder: Path) -> None:
    data = load_named("digits")
    X, y, test = data.X, data.y, data.test
    assert test is not None  # named data sets have a test part
    rng = np.random.default_rng(0)

    began = time.perf_counter()
    classifier = SimpletronClassifier(random_state=0).fit(X, few_labels(y, 1, rng))
    mixture = classifier.mixture_
    print(
        f"Learned {mixture.n_components_} fields from {len(X)} unlabelled 8 x 8 digits in "
        f"{time.perf_counter() - began:.1f} s ({mixture.n_iter_} iterations, norm {mixture.norm_:.0f}).\n"
    )
    figure = plot_fields(classifier)

    print("labels per class   labels   test error (mean and worst of 10 draws of the labels)")
    for per_class in (1, 2, 5, 10, 20):
        errors = []
        for _ in range(DRAWS):
            classifier.fit_labels(few_labels(y, per_class, rng))
            errors.append(100 * (1 - classifier.score(test.X, test.y)))
        print(f"{per_class:16d} {10 * per_class:8d} {np.mean(errors):10.1f} % {np.max(errors):7.1f} %")
    classifier.fit_labels(y)
    print(f"{'all':>16} {len(y):8d} {100 * (1 - classifier.score(test.X, test.y)):10.1f} %")

    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "fields.png"
    figure.savefig(picture)
    print(
        f"\nThe fields, with the classes learned from one label each: {picture}\n"
        "(With one label per class some classes are confused; the table shows what a few more labels do.)"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
