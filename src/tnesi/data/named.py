"""Where the named data sets are: the folder ``TNESI_DATA``, then the user's cache, then Debian's package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tnesi.data.idx import read_idx

Array = npt.NDArray[Any]
_PARTS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


class DataNotFoundError(FileNotFoundError):
    """A data set is not on this machine; the message says which files to put where."""


class ImageData(NamedTuple):
    """Images as rows of bytes, with their labels."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    shape: tuple[int, int]


def _folders(name: str, *extra: str) -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tnesi"
    given = os.environ.get("TNESI_DATA")
    return [*([Path(given) / name] if given else []), cache / name, *map(Path, extra)]


def _load(name: str, *extra: str) -> ImageData:
    folders = _folders(name, *extra)
    for folder in folders:
        files = [next((p for p in (folder / f"{part}.gz", folder / part) if p.is_file()), None) for part in _PARTS]
        if all(files):
            X, y, X_test, y_test = (read_idx(file) for file in files if file)
            if X.ndim != 3 or X_test.shape[1:] != X.shape[1:] or len(X) != len(y) or len(X_test) != len(y_test):
                raise ValueError(f"the files in {folder} do not fit together: fetch them again")
            shape = (X.shape[1], X.shape[2])
            return ImageData(X.reshape(len(X), -1), y, X_test.reshape(len(X_test), -1), y_test, shape)
    raise DataNotFoundError(
        f"{name} was not found. Put the official files {', '.join(f'{part}.gz' for part in _PARTS)} into one of "
        f"{', '.join(map(str, folders))}; the environment variable TNESI_DATA names the folder above {name}."
    )


def load_mnist() -> ImageData:
    """Return MNIST: 60,000 + 10,000 digits of 28 x 28 pixels."""
    return _load("mnist")


def load_fashion_mnist() -> ImageData:
    """Return Fashion-MNIST: 60,000 + 10,000 pieces of clothing of 28 x 28 pixels (Debian: dataset-fashion-mnist)."""
    return _load("fashion-mnist", "/usr/share/datasets/fashion-mnist")


def few_labels(y: Array, per_class: int, rng: np.random.Generator, unlabelled: int = -1) -> Array:
    """Return `y` with only `per_class` randomly chosen labels of each class left."""
    few = np.full(y.shape, unlabelled, np.int64)
    for k in np.unique(y):
        chosen = rng.choice(np.flatnonzero(y == k), per_class, replace=False)
        few[chosen] = k
    return few
