"""MNIST from ten labels, one per class: fit, print the test error, draw the learned fields.

    python examples/mnist.py [PICTURE]

MNIST is downloaded, unless the environment variable TNESI_DATA names a folder that has it in the folder mnist.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from tnesi import SimpletronClassifier
from tnesi.data import few_labels, load_named
from tnesi.report import plot_fields


def main(picture: Path) -> None:
    data = load_named("mnist")
    assert data.test is not None  # named data sets have a test part
    y = few_labels(data.y, 1, np.random.default_rng(0))
    began = time.perf_counter()
    classifier = SimpletronClassifier(random_state=0, verbose=1).fit(data.X, y)
    seconds = time.perf_counter() - began
    error = 100 * (1 - classifier.score(data.test.X, data.test.y))
    print(f"{np.count_nonzero(y >= 0)} labels, {len(y)} images: test error {error:.2f} %, fit in {seconds:.1f} s")
    plot_fields(classifier, shape=data.rows.image_shape).savefig(picture)
    print(f"fields drawn to {picture}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "fields.png"))
