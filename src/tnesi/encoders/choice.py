"""The choice of an encoder for data, and classifiers with an encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeVar

from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from tnesi.data.opening import open_data
from tnesi.data.scales import unequal_columns
from tnesi.data.source import Data, DataError, Kind
from tnesi.encoders.images import ImageEncoder
from tnesi.encoders.table import TableEncoder
from tnesi.encoders.text import TextEncoder
from tnesi.encoders.vectors import VectorEncoder
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.simpletron_classifier import SimpletronClassifier

Model = TypeVar("Model", bound=BaseEstimator)
Encoder = ImageEncoder | TextEncoder | TableEncoder | VectorEncoder
EncoderName = Literal["images", "text", "table", "vectors"]
ENCODERS: dict[str, type[Encoder]] = {
    "images": ImageEncoder,
    "text": TextEncoder,
    "table": TableEncoder,
    "vectors": VectorEncoder,
}
_KINDS: dict[Kind, tuple[str, tuple[type[Encoder], ...]]] = {
    "images": ("images", (ImageEncoder,)),
    "documents": ("documents", (TextEncoder,)),
    "table": ("a table with columns of texts", (TableEncoder,)),
    "numbers": ("rows of numbers", (TableEncoder, VectorEncoder)),
}
"""Each kind of data in words, and the encoders for it."""
_FEW_COLUMNS = 50
"""Rows with fewer columns are measurements; with more, counts, histograms or spectra."""
_LOOKED_AT = 2000


def encoder_name_for(data: Data) -> EncoderName | None:
    """Return the name of the encoder that suits data, or None for counts, histograms and spectra, which need none."""
    rows = data.rows
    match rows.kind:
        case "images":
            return "images"
        case "documents":
            return "text"
        case "table":
            return "table"
    first = next(iter(rows.parts(_LOOKED_AT)))
    if sparse.issparse(first):
        return None
    if (first < 0).any():
        return "vectors" if rows.n_features >= _FEW_COLUMNS else "table"
    if rows.feature_names is not None and (rows.n_features < _FEW_COLUMNS or unequal_columns(data) is not None):
        return "table"
    return None


def new_encoder(name: EncoderName, model: str | None = None) -> Encoder:
    """Return an unfitted encoder; `model` is the name of one that embeds pictures or documents."""
    if model is not None:
        return ImageEncoder(model=model) if name == "images" else TextEncoder(model=model)
    return ENCODERS[name]()


def encoder_for(data: Any) -> Encoder | None:
    """Return an unfitted encoder that suits data, or None for counts, histograms and spectra, which need none.

    Parameters
    ----------
    data : Data, array-like, data frame, str or path
        Input or result of `tnesi.data.open_data`.

    Returns
    -------
    encoder : ImageEncoder, TextEncoder, TableEncoder, VectorEncoder or None

    Examples
    --------
    >>> import numpy as np
    >>> from tnesi.encoders import encoder_for
    >>> encoder_for(np.zeros((5, 28, 28)))
    ImageEncoder()
    >>> encoder_for(np.random.default_rng(0).normal(size=(5, 384)))
    VectorEncoder()
    >>> encoder_for(np.random.default_rng(0).poisson(1, (5, 384))) is None
    True
    """
    name = encoder_name_for(data if isinstance(data, Data) else open_data(data))
    return None if name is None else new_encoder(name)


def suited(encoder: Encoder, data: Data) -> Data:
    """Return data as the kind that an encoder encodes; raise an error if they cannot be."""
    found, encoders = _KINDS[data.rows.kind]
    if type(encoder) in encoders:
        return data
    for kind, (_, others) in _KINDS.items():
        if type(encoder) in others and (rows := data.rows.as_kind(kind)) is not None:
            return replace(data, rows=rows)
    encoded = " or ".join(words for words, others in _KINDS.values() if type(encoder) in others)
    one_column = isinstance(encoder, TextEncoder) and data.rows.kind == "table"
    raise DataError(
        "{data} holds {found}, but {encoder} encodes {encoded}",
        advice="keep a single column of texts; {label_column} names a column of labels" if one_column else "",
        data=data.name,
        found=found,
        encoder=type(encoder).__name__,
        encoded=encoded,
    )


def describe_encoding(encoder: Encoder, n_rows: int, n_features: int) -> str:
    """Return a sentence about rows that were encoded."""
    match encoder:
        case ImageEncoder(model=None, colored_=colored):
            what = "gradients and colors" if colored else "gradients"
            return f"Encoded {n_rows:,} images as {n_features:,} features (histograms of {what})."
        case ImageEncoder(model=model):
            return f"Embedded {n_rows:,} images with {model}."
        case TextEncoder(model=None):
            return f"Encoded {n_rows:,} documents by {n_features:,} words."
        case TextEncoder(model=model):
            return f"Embedded {n_rows:,} documents with {model}."
        case TableEncoder():
            return f"Encoded a table of {n_rows:,} rows as {n_features:,} features (soft bins and categories)."
        case VectorEncoder():
            return f"Encoded {n_rows:,} vectors as {n_features:,} features (positive and negative parts)."


def make_classifier(
    kind: Literal["images", "text", "table", "vectors", "counts"],
    *,
    encoder: Encoder | None = None,
    mixture: PoissonMixture | None = None,
    **parameters: Any,
) -> Pipeline:
    """Return a pipeline of an encoder and a SimpletronClassifier.

    Parameters
    ----------
    kind : {"images", "text", "table", "vectors", "counts"}
        Type of the data. "counts" (also histograms and spectra) need no encoder.
    encoder : encoder or None, default=None
        The encoder, if not the default one for `kind`.
    mixture : PoissonMixture or None, default=None
        First layer of the classifier.
    **parameters : dict
        Parameters of :class:`tnesi.SimpletronClassifier`.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline
        With the steps "encoder" and "classifier". `tnesi.save` stores it in one file.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tnesi import make_classifier
    >>> digits = load_digits()
    >>> y = digits.target.copy()
    >>> y[100:] = -1
    >>> clf = make_classifier("images", random_state=0).fit(digits.images, y)
    >>> bool(clf.score(digits.images[100:], digits.target[100:]) > 0.9)
    True
    """
    if kind != "counts" and kind not in ENCODERS:
        raise ValueError(f"kind={kind!r}: pass one of {', '.join(map(repr, ENCODERS))}, 'counts'")
    if encoder is None and kind != "counts":
        encoder = ENCODERS[kind]()
    classifier = SimpletronClassifier(mixture, **parameters)
    return Pipeline([("encoder", "passthrough" if encoder is None else encoder), ("classifier", classifier)])


def with_encoder(encoder: Encoder | None, model: Model) -> Model | Pipeline:
    """Return the pipeline of an encoder and a model, or the model if there is no encoder."""
    if encoder is None:
        return model
    return Pipeline([("encoder", encoder), ("mixture" if isinstance(model, PoissonMixture) else "classifier", model)])
