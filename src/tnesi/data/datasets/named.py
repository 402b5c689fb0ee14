"""Named data sets, found on this machine or downloaded.

Files are searched in ``TNESI_DATA``, in the user's cache (``tnesi`` in ``XDG_CACHE_HOME`` or ``~/.cache``) and, for
some data sets, in a system folder; otherwise they are downloaded into the cache. ``registry.toml`` describes them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tnesi.data.datasets.download import Progress, download, unpack
from tnesi.data.datasets.mnist import read_emnist, read_mnist
from tnesi.data.datasets.newsgroups import read_newsgroups
from tnesi.data.datasets.nist import read_nist
from tnesi.data.datasets.registry import Entry, read_registry
from tnesi.data.source import ArraySource, Data, DataError, DataNotFoundError
from tnesi.system.files import alone_in, cache_folder

_ENTRIES = read_registry()
NAMES = tuple(_ENTRIES)
"""Names of the data sets."""


def load_named(name: str, *, download: bool = True, progress: Progress | None = None) -> Data:
    """Return a data set by its name, with its test part.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    download : bool
        Whether to download missing files.
    progress : callable, optional
        Called with (what, done, total) during downloads and long preparations.

    Raises
    ------
    DataNotFoundError
        If files are missing. The message says where to put them.

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
        raise _not_found(entry)
    if entry.folder == "emnist":
        return read_emnist(files, name, letters=name.endswith("letters"))
    if entry.folder == "nist":
        kept = cache_folder() / entry.folder
        return read_nist(files[0], name, kept, progress, letters=name.endswith("letters"))
    if entry.folder == "20newsgroups":
        return read_newsgroups(files[0], name)
    return read_mnist(files, name)


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Download a data set into the user's cache unless it is complete, and return its folder."""
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
        raise _not_found(entry, f", and downloading failed ({error})") from error
    return folder


def describe(name: str) -> Entry:
    """Return the description of a data set.

    Examples
    --------
    >>> describe("mnist").title
    'MNIST, handwritten digits'
    """
    if name not in _ENTRIES:
        raise DataError(f"there is no data set {name!r}", advice=f"choose one of {', '.join(NAMES)}")
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


def _not_found(entry: Entry, reason: str = "") -> DataNotFoundError:
    names = [f"{file}.gz" for file in entry.files] if entry.unpack else [remote.name for remote in entry.downloads]
    origin = f" (from {entry.unpack})" if entry.unpack else ""
    places = " or ".join(str(folder) for folder in entry.folders if str(folder) not in entry.also_in)
    return DataNotFoundError(
        f"{entry.name} was not found{reason}",
        advice=f"put {', '.join(names)}{origin} into {places}; TNESI_DATA can name the parent of the folder "
        f"{entry.folder}. `tnesi data info {entry.name}` lists addresses",
    )
