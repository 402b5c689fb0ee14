"""
Tables with columns of any kind
===============================

Numbers in different units, categories, dates and missing values: ``make_classifier("table")`` encodes them all, so that
a table can be used as it is.
"""

# %%
# Make up 1,500 customers, of whom 20 are known to have stayed or left.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tnesi import make_classifier
from tnesi.encoders import TableEncoder

rng = np.random.default_rng(0)
leaves = rng.random(1500) < 0.4
customers = pd.DataFrame(
    {
        "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.gamma(3, np.where(leaves, 60, 180)), unit="D"),
        "plan": np.where(rng.random(1500) < 0.8, np.where(leaves, "basic", "plus"), "trial"),
        "balance": rng.normal(np.where(leaves, -200, 250), 180).round(2),
        "calls": rng.poisson(np.where(leaves, 6, 1.5)),
        "minutes": rng.lognormal(np.where(leaves, 2, 4), 0.8).round(1),
    }
)
customers.loc[rng.random(1500) < 0.1, "balance"] = np.nan
truth = np.where(leaves, "leaves", "stays")
y = pd.Series(truth, dtype=object).where(np.arange(1500) < 20, None)
customers.head()

# %%
# Fit the table as it is.

clf = make_classifier("table", random_state=0).fit(customers, y)
print(f"{100 * np.mean(clf.predict(customers)[20:] != truth[20:]):.1f} % of the other customers are wrong")

# %%
# The classifier reports how far it trusts its own result, and which methods it relied on.

learned = clf[-1]
print(f"expected accuracy {100 * learned.expected_accuracy_:.0f} %")
print({name: f"{100 * share:.0f} %" for name, share in learned.votes_.items()})

# %%
# The encoder describes a number by a few soft bins, so that units do not matter.

rows = TableEncoder().fit_transform(customers)
probability = clf.predict_proba(customers)[:, list(clf.classes_).index("leaves")]
figure, axis = plt.subplots(figsize=(6.5, 4))
points = axis.scatter(customers["balance"], customers["minutes"], c=probability, cmap="coolwarm", s=8)
axis.set(xlabel="balance", ylabel="minutes", yscale="log", title=f"{rows.shape[1]} features")
figure.colorbar(points, label="probability of leaving")
figure.tight_layout()
