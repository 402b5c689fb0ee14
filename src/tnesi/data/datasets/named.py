"""Data sets by name: found on this machine, or downloaded.

The files of a data set are looked for in its folder in ``TNESI_DATA``, then in the user's cache (``tnesi`` in
``XDG_CACHE_HOME`` or ``~/.cache``), then, for some, in a folder of the system; otherwise they are downloaded into the
cache. ``registry.toml`` has the facts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tnesi.data.datasets.download import Progress, download, unpack
from tnesi.data.datasets.mnist import read_emnist, read_mnist
from tnesi.data.datasets.newsgroups import read_newsgroups
from tnesi.data.datasets.nist import read_nist
from tnesi.data.datasets.registry import Entry, cache_folder, read_registry
from tnesi.data.source import ArraySource, Data, DataError
from tnesi.system.files import alone_in

_ENTRIES = read_registry()
NAMES = tuple(_ENTRIES)
"""The names that `load_named` knows."""


class DataNotFoundError(FileNotFoundError):
    """A data set is not on this machine; the message says which files to put where."""


def load_named(name: str, *, download: bool = True, progress: Progress | None = None) -> Data:
    """Return a data set by its name, with its test part.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    download : bool
        Whether to download what is not found.
    progress : callable, optional
        Called with (what, done, total) during downloads and long preparations.

    Raises
    ------
    DataNotFoundError
        If files are missing; the message says which to put where.

    Examples
    --------
    >>> data = load_named("digits")
    >>> data.X.shape, data.test.X.shape, data.rows.image_shape
    ((1397, 64), (400, 64), (8, 8))
    """
    entry = describe(name)
    if not entry.files:
        return _digits(name)
    files = entry.find()
    if files is None and download:
        fetch(name, progress)
        files = entry.find()
    if files is None:
        raise DataNotFoundError(_what_to_do(entry))
    if entry.folder == "emnist":
        return read_emnist(files, name, letters=name.endswith("letters"))
    if entry.folder == "nist":
        kept = cache_folder() / entry.folder
        return read_nist(files[0], name, kept, progress, letters=name.endswith("letters"))
    if entry.folder == "20newsgroups":
        return read_newsgroups(files[0], name)
    return read_mnist(files, name)


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Download a data set into the user's cache unless all of it is on this machine, and return its folder."""
    entry = describe(name)
    if not entry.downloads:
        import sklearn.datasets

        return Path(sklearn.datasets.__file__).parent / "data"
    folder = cache_folder() / entry.folder
    try:
        with alone_in(folder):
            if found := entry.find(partial=False):
                return found[0].parent
            for remote in entry.downloads:
                download(remote, folder, progress)
            if entry.unpack:
                unpack(folder / entry.unpack, [f"{file}.gz" for file in entry.files], folder)
                (folder / entry.unpack).unlink()
    except OSError as error:
        raise DataNotFoundError(f"{_what_to_do(entry)} Downloading failed: {error}") from error
    return folder


def describe(name: str) -> Entry:
    """Return what is known of a data set, and whether it is on this machine.

    Examples
    --------
    >>> describe("mnist").title
    'MNIST, handwritten digits'
    """
    if name not in _ENTRIES:
        raise DataError(f"there is no data set called {name!r}: choose one of {', '.join(NAMES)}")
    return _ENTRIES[name]


def _digits(name: str) -> Data:
    """Return the digits of scikit-learn, of which 400, the same proportion of each class, are the test part."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        images.astype(np.uint8), labels, test_size=400, random_state=0, stratify=labels
    )
    shape = (8, 8)
    return Data(ArraySource(X, shape), y, Data(ArraySource(X_test, shape), y_test, name=f"{name}, test part"), name)


def _what_to_do(entry: Entry) -> str:
    names = [f"{file}.gz" for file in entry.files] if entry.unpack else [remote.name for remote in entry.downloads]
    origin = f" (from the archive {entry.unpack})" if entry.unpack else ""
    unpacked = "" if names == list(entry.files) else " (unpacked they do as well)"
    places = " or ".join(str(folder) for folder in entry.folders if str(folder) not in entry.also_in)
    urls = " ".join(remote.urls[0] for remote in entry.downloads)
    return (
        f"{entry.name} was not found. Put {', '.join(names)}{origin} into {places}{unpacked}; the environment variable "
        f"TNESI_DATA names the folder above {entry.folder}. They come from {urls}."
    )
