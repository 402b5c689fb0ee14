"""What only POSIX systems have is not needed: everything imports and works where it is missing, as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDE = """
import importlib, mmap, os, pkgutil, signal, sys, threading

# other libraries know on which system they are; import them first
import dask.array, distributed, h5py, matplotlib.figure, msgspec, numpy as np, pandas, PIL.Image, pyarrow.parquet
import rich.console, scipy.sparse, sklearn.pipeline, sqlite3, starlette.applications, subprocess, tempfile, typer
import uvicorn, zarr

class Mapped(mmap.mmap):
    "As on Windows, which knows only the access."
    def __new__(cls, fileno, length, tagname=None, access=mmap.ACCESS_WRITE, offset=0):
        return super().__new__(cls, fileno, length, access=access, offset=offset)
    def __getattribute__(self, name):
        if name == "madvise":
            raise AttributeError(name)
        return super().__getattribute__(name)

mmap.mmap = Mapped
for name in [n for n in dir(mmap) if n.startswith(("MAP_", "MADV_", "PROT_"))]:
    delattr(mmap, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "_posixshmem"):
    sys.modules[name] = None
for name in ("getuid", "geteuid", "getgid", "fork", "forkpty", "sched_getaffinity", "posix_fallocate", "memfd_create",
             "setpriority", "getpriority", "PRIO_PROCESS", "O_NOFOLLOW", "O_DIRECTORY", "fchmod", "chown", "killpg",
             "sysconf", "uname", "mkfifo", "setsid", "wait3", "nice"):
    if hasattr(os, name):
        delattr(os, name)
for name in [n for n in dir(signal) if n.startswith("SIG") and n not in
             ("SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIG_DFL", "SIG_IGN")]:
    delattr(signal, name)
for name in ("setitimer", "alarm", "pause", "pthread_kill", "pthread_sigmask", "sigwait"):
    delattr(signal, name)
"""

IMPORT_ALL = """
import tnesi
for found in pkgutil.walk_packages(tnesi.__path__, "tnesi."):
    if found.name != "tnesi.kernels._native":
        importlib.import_module(found.name)
print(len([name for name in sys.modules if name.startswith("tnesi.")]))
"""

LEARN = """
from pathlib import Path
import tnesi
from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import open_data
from tnesi.execution import Local, spool
from tnesi.estimators import blocks
spool.IN_MEMORY = blocks.IN_MEMORY = 1000  # files, even for these few rows
rng = np.random.default_rng(0)
rows = np.vstack([rng.poisson([9, 1, 1, 4], (300, 4)), rng.poisson([1, 9, 4, 1], (300, 4))]).astype(np.uint8)
labels = np.full(600, -1)
labels[[0, 599]] = 0, 1
np.save("rows.npy", rows)
found = open_data("rows.npy")
clf = SimpletronClassifier(PoissonMixture(20, max_iter=5, execution=Local(checkpoint="state")), random_state=0)
for data in (found.X, found.rows):
    clf.fit(data, labels)
    tnesi.save(clf, "model.tnesi")
assert (tnesi.load("model.tnesi").predict(rows) == clf.predict(rows)).all()
print((clf.predict(rows) == np.repeat([0, 1], 300)).mean() > 0.9)

from tnesi.execution.dask.shared_array import allocate, can_share
assert not can_share()
assert isinstance(allocate((2, 3), np.float32, share=can_share()), np.ndarray)

from tnesi.studio.address_book import Known, remember, remembered
remember("project", "t" * 40, 8000)
assert remembered("project") == Known("t" * 40, 8000)
from tnesi.studio.learner import _make_way
_make_way(5)
from tnesi.system.memory import free_memory
assert free_memory() > 0
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "MPLCONFIGDIR": str(folder)}
    words = [sys.executable, "-c", HIDE + code]
    return subprocess.run(words, capture_output=True, text=True, env=environment, cwd=folder, check=False)


@pytest.mark.slow
def test_every_module_can_be_imported(tmp_path: Path) -> None:
    done = run(IMPORT_ALL, tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


@pytest.mark.slow
def test_learning_from_files(tmp_path: Path) -> None:
    done = run(LEARN, tmp_path)
    assert done.stdout.strip() == "True", done.stderr
    assert done.returncode == 0, done.stderr
