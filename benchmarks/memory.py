"""Peak memory of a fit beyond the libraries and the data, in a separate process."""

from __future__ import annotations

import argparse
import subprocess
import sys

from report import Row

CODE = """
import resource
import numpy as np
from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels
from tnesi.data import load_named
def now():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
data = load_named("mnist")
np.ones((64, 64)) @ np.ones((64, 64))
before = now()
with open("/proc/self/clear_refs", "w") as file:  # the peak so far is that of unpacking the files
    file.write("5")
mixture = PoissonMixture(10_000, row_sum=900)
y = few_labels(data.y, 10, np.random.default_rng(0))
SimpletronClassifier(mixture, random_state=0).fit(data.X, y)
with open("/proc/self/status") as file:
    high = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print((high - before) / 1e6)
"""


def memory(options: argparse.Namespace) -> list[Row]:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    return [Row("peak memory of fit beyond libraries and data", float(done.stdout), "MB", 600)]
