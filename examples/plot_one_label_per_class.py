"""
One label per class
===================

Ten labels, one for each digit, classify 1,797 images. The other images are used without labels: they show what digits
look like, and the labels only say which is which.
"""

# %%
# Take one label of each class; -1 marks the other images as unlabeled.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from tnesi import SimpletronClassifier
from tnesi.data import few_labels
from tnesi.report import plot_fields

X, classes = load_digits(return_X_y=True)
y = few_labels(classes, 1, np.random.default_rng(0))
print(f"{np.count_nonzero(y >= 0)} labels, {len(y):,} images")

# %%
# A supervised classifier learns from the ten labeled images only.

labeled = y >= 0
supervised = LogisticRegression(max_iter=1000).fit(X[labeled], y[labeled])
clf = SimpletronClassifier(random_state=0).fit(X, y)
for name, found in (("LogisticRegression", supervised.predict(X)), ("SimpletronClassifier", clf.transduction_)):
    print(f"{name}: {100 * np.mean(found[~labeled] != classes[~labeled]):.1f} % of the unlabeled images are wrong")

# %%
# The first layer has learned *fields*: typical images, found without labels. The column beside each field shows its
# class, with 0 at the top.

figure = plot_fields(clf, shape=(8, 8), n_fields=40)

# %%
# With one label per class, a class may get the wrong name. ``label_confidence_`` shows which classes are at risk, and
# ``label_rivals_`` with which other class they may be confused.

for name, confidence, rival in zip(clf.classes_, clf.label_confidence_, clf.label_rivals_, strict=True):
    print(f"{name}: {100 * confidence:3.0f} %, rival {rival}")

# %%
# The classifier also estimates its own accuracy.

print(f"expected {100 * clf.expected_accuracy_:.0f} %, true {100 * np.mean(clf.transduction_ == classes):.0f} %")

# %%
# In a notebook, a fitted estimator shows what it has learned.

clf
