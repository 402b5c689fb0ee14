"""
Streams that change
===================

``partial_fit`` learns from batches, each seen once, in which only a few rows are labeled. With a ``half_life``, it
forgets old rows and follows a stream that changes.
"""

# %%
# A stream of digits. After 3,000 images the scanner is mounted upside down.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tnesi import PoissonMixture, SimpletronClassifier

X, classes = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
drawn = rng.integers(len(X), size=6000)
rows, truth = X[drawn], classes[drawn]
rows[3000:] = rows[3000:, ::-1]
y = np.where(rng.random(6000) < 0.1, truth, -1)
print(f"{np.count_nonzero(y >= 0)} of {len(y):,} images are labeled")

# %%
# Predict each batch, then learn from it.


def errors(half_life: float | None) -> list[float]:
    clf = SimpletronClassifier(PoissonMixture(150, half_life=half_life), random_state=0)
    found = []
    for start in range(0, len(rows), 500):
        batch = slice(start, start + 500)
        if start:
            found.append(100 * float(np.mean(clf.predict(rows[batch]) != truth[batch])))
        clf.partial_fit(rows[batch], y[batch], classes=np.arange(10))
    return found


figure, axis = plt.subplots(figsize=(6.5, 4))
seen = np.arange(500, 6000, 500)
axis.plot(seen, errors(None), "s--", label="never forgets")
axis.plot(seen, errors(1000), "o-", label="half_life=1000")
axis.axvline(3000, color="gray", linestyle=":")
axis.set(xlabel="images seen", ylabel="error on the next 500 in %", ylim=(0, None))
axis.legend()
figure.tight_layout()
