"""
A Dask cluster
==============

``execution=Dask(...)`` runs a fit on the workers of a cluster. The result is the same, bit for bit.
"""

# %%
# Start a small cluster in this process; a real one is given by the address of its scheduler, as in
# ``Dask("tcp://scheduler:8786")``. Without an argument, ``Dask()`` starts a cluster on this machine for the fit.

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from sklearn.datasets import load_digits

from tnesi import PoissonMixture
from tnesi.execution import Dask, Local

X, _ = load_digits(return_X_y=True)
client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)

# %%
# Learn on the workers, with a callback that receives a record of each iteration.

records = []
remote = PoissonMixture(100, execution=Dask(client, callback=records.append), random_state=0).fit(X)
print(f"{remote.n_iter_} iterations, the last one: free energy {records[-1]['free_energy']:.3f} nats per row")

# %%
# And in this process.

local = PoissonMixture(100, execution=Local(), random_state=0).fit(X)
print(f"equal to the last bit: {np.array_equal(local.means_, remote.means_)}")

figure, axis = plt.subplots(figsize=(6, 3.5))
axis.plot([record["free_energy"] for record in records], "o-")
axis.set(xlabel="iteration", ylabel="free energy in nats per row", title="Learning on two workers")
figure.tight_layout()
client.close()
