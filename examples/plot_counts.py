"""
Counts: clusters, densities and odd rows
========================================

Without any labels, ``PoissonMixture`` learns which typical rows, called *fields*, counts consist of. It serves as a
clustering method, a density estimate and a detector of unusual rows.
"""

# %%
# Made-up counts of 30 species at 2,000 places in five habitats. At 40 further places, the counts were mixed up.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import homogeneity_score, roc_auc_score

from tnesi import PoissonMixture

rng = np.random.default_rng(0)
habitats = rng.gamma(0.4, 5, (5, 30))
habitat = rng.integers(5, size=2000)
counts = rng.poisson(habitats[habitat] * rng.lognormal(0, 0.3, (2000, 1)))
odd = rng.permuted(counts[:40], axis=1)

# %%
# Learn more fields than there are habitats, so that each habitat gets some. The best field of a place is its cluster.

mixture = PoissonMixture(n_components=15, random_state=0).fit(counts)
field = mixture.predict(counts)
print(f"{100 * homogeneity_score(habitat, field):.0f} % homogeneous clusters")

# %%
# The posterior is sparse, since only a few fields explain a row.

print(repr(mixture.transform(counts)))

# %%
# The free energy is a lower bound of the log-likelihood: low for places that resemble no field.

ordinary, unusual = mixture.score_samples(counts), mixture.score_samples(odd)
found = roc_auc_score(np.repeat([0, 1], [len(ordinary), len(unusual)]), -np.concatenate([ordinary, unusual]))
print(f"area under the ROC curve {found:.3f}")

# %%
# Only the proportions within a row matter to the model: the habitats are found although some places have more animals
# than others. Each field resembles the habitat that it belongs to.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3))
shares = habitats / habitats.sum(axis=1, keepdims=True)
fields = (mixture.means_ - 1) / (mixture.means_ - 1).sum(axis=1, keepdims=True)  # normalization adds 1
order = np.argsort([np.argmin(abs(shares - one).sum(axis=1)) for one in fields], kind="stable")
left.imshow(shares, aspect="auto", cmap="Greens")
left.set(title="habitats", xlabel="species", yticks=[])
middle.imshow(fields[order], aspect="auto", cmap="Greens")
middle.set(title="learned fields", xlabel="species", yticks=[])
right.hist([ordinary, unusual], bins=40, density=True, histtype="stepfilled", alpha=0.7, label=["ordinary", "odd"])
right.set(title="free energy of a place", yticks=[])
right.legend()
figure.tight_layout()
