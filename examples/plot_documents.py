"""
Documents
=========

To which part of SciPy does a function belong? Its documentation tells. With one labeled document per topic,
three of four others are sorted correctly.
"""

# %%
# The documents are the docstrings of SciPy's functions, the classes its packages. Names of packages are removed, as
# they would give the answer away.

import re
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import make_pipeline

from tnesi import make_classifier
from tnesi.data import few_labels

TOPICS = ["cluster.hierarchy", "linalg", "ndimage", "optimize", "signal", "sparse", "special", "stats"]
documents, topics = [], []
for topic in TOPICS:
    package = import_module(f"scipy.{topic}")
    texts = {str(getattr(package, name).__doc__) for name in package.__all__}
    documents += [
        re.sub(r"scipy[.\w]*|\bstats\b|\bspecial\b|>>>", " ", text) for text in sorted(texts) if len(text) > 300
    ]
    topics += [topic] * (len(documents) - len(topics))
topics = np.array(topics)
print(f"{len(documents)} documents; {topics[0]}: {' '.join(documents[0].split())[:150]} ...")

# %%
# One label per topic; the other documents have the label ``None``. A classifier that learns from the labeled documents
# only does not profit from the others, which matters most while labels are few: with five labels per topic, it is as
# good. Three draws of labels:

for seed in range(3):
    y = few_labels(topics, 1, np.random.default_rng(seed), unlabeled=None)
    labeled = np.array([label is not None for label in y])
    supervised = make_pipeline(TfidfVectorizer(stop_words="english", sublinear_tf=True), LogisticRegression(C=10))
    supervised.fit([documents[i] for i in np.flatnonzero(labeled)], topics[labeled])
    other = supervised.predict(documents)
    found = make_classifier("text", random_state=0).fit(documents, y).predict(documents)
    wrong = [f"{100 * np.mean(answer[~labeled] != topics[~labeled]):.1f} %" for answer in (found, other)]
    print(f"wrong documents: tnesi {wrong[0]}, logistic regression {wrong[1]}")

# %%
# Which topics are confused, with the last draw of labels?

figure, axis = plt.subplots(figsize=(6, 5))
ConfusionMatrixDisplay.from_predictions(
    topics, found, ax=axis, cmap="Blues", colorbar=False, xticks_rotation="vertical"
)
figure.tight_layout()
