"""
Model files
===========

A model file (``.tnesi``) holds a classifier, with its encoder if it has one. Such files are exact to the last bit, and
safe to open even from untrusted sources.
"""

# %%
# Learn a classifier from 50 labels, and save it.

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import tnesi
from tnesi.data import few_labels
from tnesi.model_file import read_header
from tnesi.report import plot_fields

X, classes = load_digits(return_X_y=True)
clf = tnesi.SimpletronClassifier(random_state=0).fit(X, few_labels(classes, 5, np.random.default_rng(0)))
path = Path(tempfile.mkdtemp()) / "digits.tnesi"
tnesi.save(clf, path, image_shape=(8, 8))
print(f"{path.stat().st_size / 1e3:.0f} kB")

# %%
# The header says what is in a file without loading the arrays. ``tnesi info digits.tnesi`` shows the same.

header = read_header(path)
print(header.kind, header.versions, header.classes, header.shapes["weights"], sep="\n")

# %%
# The loaded classifier predicts the same.

loaded = tnesi.load(path)
print(f"equal to the last bit: {np.array_equal(clf.predict_proba(X), loaded.predict_proba(X))}")

# %%
# It can learn other labels, too, since the file also holds what the fields know about the training rows. Save with
# ``training=False`` to leave that out: such files are smaller and tell less about the rows.

odd = np.where(np.arange(len(X)) < 60, np.where(classes % 2, "odd", "even"), None)
loaded.fit_labels(odd)
print(f"odd or even: {100 * np.mean(loaded.transduction_ != np.where(classes % 2, 'odd', 'even')):.1f} % errors")
figure = plot_fields(loaded, shape=(8, 8), n_fields=36)
