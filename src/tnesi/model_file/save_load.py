"""Model files (.tnesi): safetensors with a JSON header. They are portable, and safe to open from untrusted sources.

The arrays are little-endian, with C fields (of all mixtures), D features, K classes, N training rows and S stored
activities:

=================  =======  =======  ===========================================================================
weights            float32  C x D    W
weight_sums        float32  C        row sums of W as used in learning
lists              int32    C x L    neighbors of each field, -1 for none (neighborhood search, many fields)
class_weights      float32  K x C    R, if there are labels
class_sizes        float64  K        p(k), unless classes have equal weight
activity_starts    int64    N + 1    activities of the training rows as a compressed sparse array; like the labels,
activity_fields    int32    S        they are stored unless ``training=False``
activity_values    float32  S
labels             int32    N        class numbers of the training rows, -1 for unlabeled
row_weights        float32  N        sample weights, if given
present            bool     G        mask of these rows among all rows given to `fit`, unless these are all
encoder.0, ...                       arrays of the encoder, if there is one
=================  =======  =======  ===========================================================================

A committee has the first three for each of its mixtures: weights, weights.1, weights.2 and so on, each with its own C.

The header is the metadata entry "tnesi", documented in :class:`Header`. The metadata entry "checksum" has two BLAKE2b
digests, of the header and of the arrays. Derived values (logarithms, cells, distributions of the training rows) are
recomputed, bitwise equal.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import tnesi
from tnesi.encoders.choice import Encoder, with_encoder
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.estimators.stored_parameters import (
    KINDS,
    UnsupportedModelError,
    checked_parameters,
    is_seed,
    kind_of,
    plain_parameters,
)
from tnesi.model.classes import FieldClasses
from tnesi.model.classifier_model import ClassifierModel, SecondLayer, StoredRows, Vote
from tnesi.model.fields import Fields
from tnesi.model.linear_classes import LinearClasses
from tnesi.model.mixture_model import MixtureModel
from tnesi.model_file.checks import ARRAYS, check_shapes, check_values, classes_of
from tnesi.model_file.checksum import check_array_sum, check_header_sum, checksum
from tnesi.model_file.encoder_state import is_of_encoder, restored_encoder, stored_encoder
from tnesi.model_file.header import (
    FORMAT,
    MOST_BYTES,
    Header,
    ModelFileError,
    array_name,
    parse,
    to_json,
)
from tnesi.search import SEARCHES
from tnesi.system.tensors import SafetensorError, open_tensors, write_tensors
from tnesi.system.threads import resolve_threads
from tnesi.training.mixture import LearnedMixture
from tnesi.types import Array

__all__ = ["Header", "ModelFileError", "load", "read_header", "save", "split_pipeline"]

Model = PoissonMixture | SimpletronClassifier | NeuralSimpletron

_SAFETENSORS = {"<f4": "F32", "<f8": "F64", "<i4": "I32", "<i8": "I64", "|b1": "BOOL", "|u1": "U8"}
_NOT_SAVED = "random_state was a generator, which cannot be saved; it is None in the loaded model"


def save(
    model: Model | Pipeline,
    file: str | Path | BinaryIO,
    *,
    provenance: dict[str, Any] | None = None,
    image_shape: tuple[int, int] | None = None,
    training: bool = True,
) -> None:
    """Write a fitted model to a file, atomically.

    Parameters
    ----------
    model : PoissonMixture, SimpletronClassifier, NeuralSimpletron, or a Pipeline of an encoder and one of these
        See `tnesi.make_classifier` for pipelines.
    file : str, Path or binary file object
        The name of a file ends in ``.tnesi`` by convention. An existing file is replaced.
    provenance : dict, optional
        The origin of the model (data, fingerprint, seed, a note): strings, numbers, lists and dicts. The date and the
        versions of tnesi, NumPy and Python are always stored.
    image_shape : (int, int), optional
        Height and width, if the rows are images.
    training : bool, default=True
        Whether to store the labels and activities of the training rows (not the rows themselves). `fit_labels`,
        `suggest` and the attributes that describe training rows, such as `transduction_`, need them.

    Notes
    -----
    The results of a loaded model are bitwise equal to those of the original. `execution` is not stored, nor is a
    `random_state` that is a generator instead of a seed.

    Examples
    --------
    >>> import tempfile
    >>> import tnesi
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = tnesi.SimpletronClassifier(tnesi.PoissonMixture(100), random_state=0).fit(X, y)
    >>> path = Path(tempfile.mkdtemp()) / "digits.tnesi"
    >>> tnesi.save(clf, path, provenance={"data": "digits"}, image_shape=(8, 8))
    >>> bool((tnesi.load(path).predict(X) == clf.predict(X)).all())
    True
    >>> read_header(path).provenance
    {'data': 'digits'}

    Into memory:

    >>> import io
    >>> content = io.BytesIO()
    >>> tnesi.save(clf, content)
    >>> bool((tnesi.load(io.BytesIO(content.getvalue())).predict(X) == clf.predict(X)).all())
    True
    """
    encoder, model = split_pipeline(model)
    kind = kind_of(model)
    check_is_fitted(model)
    if isinstance(model, FittedClassifier):
        model.settle()
    with _explained("the model cannot be saved as {file}", file):
        state, of_encoder = (None, {}) if encoder is None else stored_encoder(encoder)
        arrays = _arrays_of(model, training) | of_encoder
        text = to_json(replace(_describe(model, kind, provenance, image_shape), encoder=state))
        header = parse(text, {name: array.shape for name, array in arrays.items()})
        check_shapes(header)
        check_values(header, arrays)
        _parameters_from(header)
    described = {name: (_type_name(name, array), array.shape) for name, array in arrays.items()}
    metadata = {"tnesi": text, "checksum": checksum(text, described, arrays)}
    write_tensors(_opened(file), arrays, metadata)


def load(file: str | Path | BinaryIO) -> Model | Pipeline:
    """Read a model from a file; nothing in the file is executed, and everything is validated.

    Parameters
    ----------
    file : str, Path or binary file object

    Returns
    -------
    model : PoissonMixture, SimpletronClassifier, NeuralSimpletron or Pipeline
        A pipeline if the file also has an encoder.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or was made by a newer version.
    """
    with _explained("{file} cannot be loaded", file, reading=True):
        header, arrays = _read(file, with_arrays=True)
        check_values(header, arrays)
        parameters, of_mixtures = _parameters_from(header)
        names = None if header.feature_names is None else np.array(header.feature_names, dtype=object)
        mixtures = []
        for m, (member, own) in enumerate(zip(header.members, of_mixtures, strict=True)):
            learned = _read_mixture(member, {name: arrays[array_name(name, m)] for name in member.shapes})
            mixtures.append(PoissonMixture.from_learned(learned, names, own))
        encoder = None if header.encoder is None else _checked_encoder(header.encoder, arrays, mixtures[0])
        if header.kind == "mixture":
            return with_encoder(encoder, mixtures[0])
        models = tuple(mixture.model_ for mixture in mixtures)
        kind = NeuralSimpletron if header.kind == "network" else SimpletronClassifier
        classifier = kind.from_model(_read_classifier(models, header, arrays), mixtures, parameters)
        return with_encoder(encoder, classifier)


def read_header(file: str | Path | BinaryIO) -> Header:
    """Read the header of a model file, without its arrays."""
    with _explained("{file} cannot be read", file, reading=True):
        return _read(file, with_arrays=False)[0]


@contextmanager
def _explained(message: str, file: str | Path | BinaryIO, *, reading: bool = False) -> Iterator[None]:
    """Convert errors to ModelFileError with a message about the file."""
    name = file if isinstance(file, str | Path) else getattr(file, "name", "the file")
    try:
        yield
    except ModelFileError as error:
        message = f"{message}: {error.message}"
        raise ModelFileError(message, advice=error.advice, file=name, **error.values) from error.__cause__
    except (ValueError, RecursionError, SafetensorError) as error:
        damaged = "; the file is damaged" if reading else ""
        advice = "copy it again, or save the model again" if reading else ""
        raise ModelFileError(message + ": {reason}" + damaged, advice=advice, file=name, reason=error) from error
    except MemoryError as error:
        raise ModelFileError(message + ": it needs more memory than this machine has", file=name) from error


def split_pipeline(model: object) -> tuple[Encoder | None, Any]:
    """Return the encoder, if there is one, and the model of a result of `load`."""
    if not isinstance(model, Pipeline):
        return None, model
    (_, first), (_, last) = model.steps if len(model.steps) == 2 else [("", None), ("", None)]
    if not isinstance(last, PoissonMixture | FittedClassifier) or not (
        first in (None, "passthrough") or isinstance(first, Encoder)
    ):
        raise UnsupportedModelError(
            "this pipeline cannot be saved", advice="pass one of an encoder of tnesi.encoders and a model of tnesi"
        )
    return first if isinstance(first, Encoder) else None, last


def _checked_encoder(state: dict[str, Any], arrays: dict[str, Array], mixture: PoissonMixture) -> Encoder:
    encoder = restored_encoder(state, arrays)
    n_features = len(encoder.get_feature_names_out())
    if n_features != mixture.n_features_in_:
        raise ValueError(f"the encoder has {n_features} features, but the model has {mixture.n_features_in_}")
    return encoder


# From a model to header and arrays


def _type_name(name: str, array: Array) -> str:
    """Return the name of the type of an array in the file."""
    return _SAFETENSORS[array.dtype.str] if is_of_encoder(name) else ARRAYS[name.partition(".")[0]][0]


def _describe(
    model: Model, kind: str, provenance: dict[str, Any] | None, image_shape: tuple[int, int] | None
) -> Header:
    classifier = model if isinstance(model, FittedClassifier) else None
    first, *others = model.mixtures_ if isinstance(model, FittedClassifier) else [model]
    value = classifier.model_ if classifier else None
    values = value.mixtures if value else (first.model_,)
    layer = value.layer if value else None
    classes = layer.names if layer else np.empty(0, np.int64) if classifier else None
    names = getattr(model, "feature_names_in_", None)
    return Header(
        format=FORMAT,
        kind=kind,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"tnesi": tnesi.__version__, "numpy": np.__version__, "python": platform.python_version()},
        provenance=dict(provenance or {}),
        notes=[] if is_seed(model.random_state) else [_NOT_SAVED],
        image_shape=image_shape,
        feature_names=None if names is None else names.tolist(),
        parameters=plain_parameters(model),
        classes=None if classes is None else classes.tolist(),
        class_dtype=None if classes is None else classes.dtype.newbyteorder("<").str if classes.size else "<i8",
        recurrent=value is not None and layer is not None and value.recurrent,
        further_mixtures=[_describe_mixture(mixture, own) for mixture, own in zip(others, values[1:], strict=True)],
        labeling=layer.method if layer else "",
        votes=[] if layer is None else [_describe_vote(vote) for vote in layer.votes],
        vote_sharpness=layer.sharpness if layer else 1.0,
        accuracy=layer.accuracy if layer else None,
        sharpness=layer.classes.sharpness if layer else 1.0,
        unknown=layer is not None and layer.unknown,
        encoder=None,
        **_describe_mixture(first, values[0]) | ({} if classifier else {"mixture_parameters": None}),
    )


def _describe_vote(vote: Vote) -> dict[str, Any]:
    return {
        "method": vote.method,
        "share": vote.share,
        "sharpness": 1.0 if isinstance(vote.classes, LinearClasses) else vote.classes.sharpness,
        "transform": vote.classes.transform if isinstance(vote.classes, LinearClasses) else None,
    }


def _describe_mixture(mixture: PoissonMixture, model: MixtureModel) -> dict[str, Any]:
    learned, search = mixture.learned_, model.search
    return {
        "mixture_parameters": plain_parameters(mixture),
        "search": search.name,
        "doubtful_below": search.doubtful_below,
        "row_sum": model.row_sum,
        "truncation": model.truncation,
        "n_iter": learned.n_iter,
        "converged": learned.converged,
        "lower_bound": learned.lower_bound,
        "history": learned.history,
    }


def _arrays_of(model: Model, training: bool) -> dict[str, Array]:
    found: dict[str, Array | None] = {}
    values = model.model_.mixtures if isinstance(model, FittedClassifier) else (model.model_,)
    for m, value in enumerate(values):
        own = {"weights": value.fields.w, "weight_sums": value.fields.w_sum, "lists": value.search.lists}
        found |= {array_name(name, m): array for name, array in own.items()}
    if isinstance(model, FittedClassifier):
        found |= _arrays_of_classifier(model.model_, training)
    return {name: np.ascontiguousarray(array) for name, array in found.items() if array is not None}


def _arrays_of_classifier(model: ClassifierModel, training: bool) -> dict[str, Array | None]:
    found: dict[str, Array | None] = {}
    if model.layer is not None:
        found |= {"class_weights": model.layer.classes.weights, "class_sizes": model.layer.classes.sizes}
        for i, vote in enumerate(model.layer.votes):
            if isinstance(vote.classes, LinearClasses):
                own: dict[str, Array | None] = {
                    "linear_weights": vote.classes.weights,
                    "linear_intercept": vote.classes.intercept,
                }
            else:
                own = {"vote_weights": vote.classes.weights, "vote_sizes": vote.classes.sizes}
            found |= {f"{name}.{i}": array for name, array in own.items()}
    elif not training:
        raise ModelFileError("a classifier without labels needs its training rows", advice="pass training=True")
    if training and model.rows is not None:
        found |= {
            "activity_starts": model.rows.activities.indptr.astype(np.int64),
            "activity_fields": model.rows.activities.indices.astype(np.int32),
            "activity_values": model.rows.activities.data,
            "labels": model.label,
            "inferred": model.inferred,
            "row_weights": model.rows.weight,
            "present": model.rows.present,
        }
    return found


# From a file to header and arrays


def _opened(file: str | Path | BinaryIO) -> Path | BinaryIO:
    return Path(file) if isinstance(file, str) else file


def _read(given: str | Path | BinaryIO, *, with_arrays: bool) -> tuple[Header, dict[str, Array]]:
    source = _opened(given)
    if not isinstance(source, Path):
        source = BytesIO(source.read())
    _check_start(source)
    with open_tensors(source) as file:
        metadata, described = file.metadata, file.described
        text, stored = metadata.get("tnesi"), metadata.get("checksum")
        if text is None:
            raise ModelFileError(
                "it is a safetensors file, but not a model of tnesi", advice="pass a file written by tnesi.save"
            )
        if unknown := sorted(metadata.keys() - {"tnesi", "checksum"}):
            raise ModelFileError(
                "it has the unknown metadata entry {entry!r}",
                entry=unknown[0][:20],
                advice="if a newer tnesi made the file, pip install --upgrade tnesi; otherwise the file is damaged, so "
                "copy or save it again",
            )
        if stored is None:
            raise ModelFileError("the file is damaged: it has no checksum", advice="copy or save it again")
        check_header_sum(stored, text, described)
        header = parse(text, {name: shape for name, (_, shape) in described.items()})
        check_shapes(header)
        for name, (found, _) in described.items():
            if not is_of_encoder(name) and found != (wanted := ARRAYS[name.partition(".")[0]][0]):
                raise ValueError(f"{name} is of type {found}, not {wanted}")
        arrays = file.arrays() if with_arrays else {}
        if with_arrays:
            check_array_sum(stored, arrays)
        return header, arrays


def _check_start(source: Path | BytesIO) -> None:
    """Raise an error if the file is obviously not a model file."""
    if isinstance(source, BytesIO):
        start = source.getvalue()[:9]
    else:
        if source.exists() and not source.is_file():
            raise ModelFileError("it is not a file", advice="pass the name of a model file (.tnesi)")
        with source.open("rb") as file:
            start = file.read(9)
    if not start:
        raise ModelFileError("it is empty", advice="save the model again")
    if start[8:] != b"{":
        if start[0] == 0x80 and start[1:2] in (b"\2", b"\3", b"\4", b"\5"):
            raise ModelFileError(
                "it is a pickle, which can run arbitrary code when it is opened",
                advice="if you trust it, open it with pickle.load and write the model with tnesi.save",
            )
        raise ModelFileError("it is not a model file of tnesi", advice="create one with `tnesi fit` or tnesi.save")
    if int.from_bytes(start[:8], "little") > MOST_BYTES:
        raise ValueError(f"the header has more than {MOST_BYTES} bytes")


# From header and arrays to a model


def _parameters_from(header: Header) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the parameters of the model and of its mixtures, after validation by the estimators."""
    if header.mixture_parameters is None:
        return header.parameters, [checked_parameters(PoissonMixture, header.parameters)]
    of_mixtures = [checked_parameters(PoissonMixture, member.mixture_parameters or {}) for member in header.members]
    return checked_parameters(KINDS[header.kind], header.parameters), of_mixtures


def _read_mixture(header: Header, arrays: dict[str, Array]) -> LearnedMixture:
    fields = replace(Fields.from_weights(arrays["weights"]), w_sum=arrays["weight_sums"])
    n_threads = resolve_threads((header.mixture_parameters or header.parameters).get("n_jobs"))
    kind, lists = SEARCHES[header.search], arrays.get("lists")
    search = kind(header.truncation, n_threads, lists=lists, doubtful_below=header.doubtful_below)
    model = MixtureModel(fields, float(header.row_sum), header.truncation, search.restored(fields))
    return LearnedMixture(model, header.history, header.n_iter, header.lower_bound, header.converged)


def _read_classifier(mixtures: tuple[MixtureModel, ...], header: Header, arrays: dict[str, Array]) -> ClassifierModel:
    rows, label = None, arrays.get("labels")
    if label is not None:
        values, starts = arrays["activity_values"], arrays["activity_starts"]
        starts = starts.astype(np.int32 if values.size < 2**31 else np.int64)  # the type that SciPy uses
        shape = label.size, sum(mixture.n_fields for mixture in mixtures)
        activities = sparse.csr_array((values, arrays["activity_fields"], starts), shape=shape)
        present = arrays.get("present")
        number = None if present is None else np.flatnonzero(present)
        rows = StoredRows(
            activities, arrays.get("row_weights"), number, label.size if present is None else present.size
        )
    layer = None
    if header.classes:
        classes = FieldClasses.from_weights(arrays["class_weights"], arrays.get("class_sizes"), float(header.sharpness))
        layer = SecondLayer(
            classes,
            classes_of(header),
            header.labeling,
            header.unknown,
            votes=tuple(_read_vote(vote, i, arrays) for i, vote in enumerate(header.votes)),
            sharpness=float(header.vote_sharpness),
            accuracy=header.accuracy,
        )
    return ClassifierModel(mixtures, layer, header.recurrent, rows, label, arrays.get("inferred"))


def _read_vote(vote: dict[str, Any], i: int, arrays: dict[str, Array]) -> Vote:
    classes: FieldClasses | LinearClasses
    if vote["transform"] is None:
        sizes = arrays.get(f"vote_sizes.{i}")
        classes = FieldClasses.from_weights(arrays[f"vote_weights.{i}"], sizes, float(vote["sharpness"]))
    else:
        classes = LinearClasses(vote["transform"], arrays[f"linear_weights.{i}"], arrays[f"linear_intercept.{i}"])
    return Vote(vote["method"], float(vote["share"]), classes)
