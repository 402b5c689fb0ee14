"""
Choosing what to label
======================

``suggest`` returns the rows that are most worth labeling, even before there is any label. Labels chosen in this way
cover all kinds of rows, while random ones miss some.
"""

# %%
# Learn the fields of the images once, without labels.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tnesi import SimpletronClassifier
from tnesi.errors import DoubtfulResultWarning

X, classes = load_digits(return_X_y=True)
clf = SimpletronClassifier(random_state=0).fit(X, np.full(len(X), -1))
for suggestion in clf.suggest(3):
    print(f"row {suggestion.row}: {suggestion.reason}")
first = [suggestion.row for suggestion in clf.suggest(10)]
print(f"the first ten are the digits {sorted(classes[first].tolist())}")

# %%
# Label what is suggested, ten images at a time. ``fit_labels`` learns new labels and keeps the fields, so a round takes
# a moment.

STEPS = range(10, 61, 10)


def error(y: np.ndarray) -> float:
    found = clf.fit_labels(y).transduction_
    return 100 * float(np.mean(found[y < 0] != classes[y < 0]))


y, chosen = np.full(len(X), -1), []
y[first] = classes[first]
for _ in STEPS:
    chosen.append(error(y))
    more = [suggestion.row for suggestion in clf.suggest(10)]
    y[more] = classes[more]

# %%
# Compare with labels of random images. The classifier warns when it expects most predictions to be wrong, as it does
# here where random labels miss a class.

warnings.simplefilter("ignore", DoubtfulResultWarning)
rng = np.random.default_rng(0)
drawn = []
for _ in range(3):
    order = rng.permutation(len(X))
    drawn.append([error(np.where(np.isin(np.arange(len(X)), order[:n]), classes, -1)) for n in STEPS])

figure, axis = plt.subplots(figsize=(6, 4))
axis.plot(STEPS, chosen, "o-", label="chosen by suggest")
axis.plot(STEPS, np.mean(drawn, axis=0), "s--", label="random, mean of 3 draws")
axis.set(xlabel="labels", ylabel="error on the other images in %", ylim=(0, None))
axis.legend()
figure.tight_layout()

# %%
# ``tnesi label DATA`` asks these questions in the browser.
