"""Model files (.tnesi): safetensors with one JSON header. They are portable, and safe to open from strangers.

The arrays are little-endian, with C fields (of all mixtures), D features, K classes, N training rows and S stored
activities:

=================  =======  =======  ===========================================================================
weights            float32  C x D    W
weight_sums        float32  C        sums of its rows, as learning counts them
lists              int32    C x L    each field's neighbors, -1 for none (neighborhood search, many fields)
class_weights      float32  K x C    R, unless there are no labels
class_sizes        float64  K        p(k), by which predictions weigh the classes, unless they all count alike
activity_starts    int64    N + 1    where each training row's activities begin; these, as a compressed sparse
activity_fields    int32    S        array, and the labels are there unless ``training=False``
activity_values    float32  S
labels             int32    N        class numbers of the training rows, -1 for unlabeled
row_weights        float32  N        sample weights, if there were any
present            bool     G        which of the rows given these are, unless all
=================  =======  =======  ===========================================================================

A committee has the first three for each of its mixtures: weights, weights.1, weights.2 and so on, each with its own C.

The header is the metadata entry "tnesi"; :class:`Header` says what is in it. The metadata entry "checksum" holds two
BLAKE2b digests, of the header and of the arrays; files of earlier versions lack it. What follows from these
(logarithms, cells, distributions of the training rows) is computed when a file is loaded, to the same bits as before.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

import tnesi
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.model.classes import Classes
from tnesi.model.fields import Fields
from tnesi.model_file.checks import ARRAYS, check_shapes, check_values, classes_of
from tnesi.model_file.checksum import check_array_sum, check_header_sum, checksum
from tnesi.model_file.header import (
    LEARNED,
    MOST_BYTES,
    Header,
    ModelFileError,
    array_name,
    parse,
    to_json,
)
from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import NeighborSearch
from tnesi.system.files import replacing
from tnesi.system.threads import resolve_threads

__all__ = ["Header", "ModelFileError", "load", "read_header", "save"]

Array = npt.NDArray[Any]
Model = PoissonMixture | SimpletronClassifier
_Kind = TypeVar("_Kind", PoissonMixture, SimpletronClassifier)

_NOT_STORED = {"callback", "engine", "scheduler", "checkpoint", "resume"}
"""Parameters that have to do with where and how a model learns, not with what."""
_LATER_PARAMETERS: dict[str, Any] = {
    "n_mixtures": 1,
    "label_method": "hebbian",
    "unknown_classes": 0,
    "half_life": None,
    "keep_rows": "auto",
}
"""Parameters that format 1 began without, and what was done before. A file lacks them where it still is, so that an
earlier tnesi can read it."""
_NOT_SAVED = "random_state was a generator, not a seed: it was not saved and is None in the loaded model"


def save(
    model: Model,
    path: str | Path,
    *,
    provenance: dict[str, Any] | None = None,
    image_shape: tuple[int, int] | None = None,
    training: bool = True,
) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : PoissonMixture or SimpletronClassifier
    path : str or Path
        By convention it ends in ``.tnesi``. A file that is there already is replaced.
    provenance : dict, optional
        Where the model comes from (data, fingerprint, seed, a note); texts, numbers, lists and dicts. The date and
        the versions of tnesi, NumPy and Python are stored in any case.
    image_shape : (int, int), optional
        Height and width, where the rows are images.
    training : bool, default=True
        Whether to keep what `fit_labels` and the attributes that tell of the training rows (`transduction_`,
        `label_distributions_`, `label_confidence_` and `label_rivals_`, `unknown_share_`) need of them: their labels
        and activities, not the rows themselves.

    Notes
    -----
    Everything that the model computes is the same after loading, to the last bit. `callback` is not stored, nor is
    a generator given as `random_state` (a seed is), nor where the model was learned (`engine`, `scheduler`,
    `checkpoint` and `resume`).

    Examples
    --------
    >>> import tempfile
    >>> import tnesi
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = tnesi.SimpletronClassifier(100, norm=180, random_state=0).fit(X, y)
    >>> path = Path(tempfile.mkdtemp()) / "digits.tnesi"
    >>> tnesi.save(clf, path, provenance={"data": "digits"}, image_shape=(8, 8))
    >>> bool((tnesi.load(path).predict(X) == clf.predict(X)).all())
    True
    >>> read_header(path).provenance
    {'data': 'digits'}
    """
    if type(model) not in (PoissonMixture, SimpletronClassifier):
        raise TypeError(f"a {type(model).__name__} cannot be saved: pass a PoissonMixture or a SimpletronClassifier")
    check_is_fitted(model)
    with _explained(f"the model cannot be saved as {path}"):
        arrays = _arrays_of(model, training)
        text = to_json(_describe(model, provenance, image_shape))
        header = parse(text, {name: array.shape for name, array in arrays.items()})
        check_shapes(header)
        check_values(header, arrays)
        _new_models(header)
    described = {name: (ARRAYS[name.partition(".")[0]][0], array.shape) for name, array in arrays.items()}
    metadata = {"tnesi": text, "checksum": checksum(text, described, arrays)}
    with replacing(path) as temporary:
        try:
            save_file(arrays, temporary, metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"{path} could not be written ({error}): is there room on the disk?") from error


def load(path: str | Path) -> Model:
    """Read a model from a file; nothing in the file is executed, and everything is checked.

    Raises
    ------
    ModelFileError
        If the file is no model file, is damaged, or was made by a newer version; the message says what to do.
    """
    with _explained(f"{path} cannot be loaded", "; the file is damaged: get it again, or save the model again"):
        header, arrays = _read(Path(path), with_arrays=True)
        check_values(header, arrays)
        classifier, mixtures = _new_models(header)
        for m, (mixture, member) in enumerate(zip(mixtures, header.members, strict=True)):
            _restore_mixture(mixture, member, {name: arrays[array_name(name, m)] for name in member.shapes})
        if classifier is None:
            return mixtures[0]
        _restore_classifier(classifier, mixtures, header, arrays)
        return classifier


def read_header(path: str | Path) -> Header:
    """Read what a model file says of itself, without its arrays."""
    with _explained(f"{path} cannot be read", "; the file is damaged: get it again, or save the model again"):
        return _read(Path(path), with_arrays=False)[0]


@contextmanager
def _explained(start: str, advice: str = "") -> Iterator[None]:
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{start}: {error}") from error.__cause__
    except (ValueError, RecursionError, SafetensorError) as error:
        raise ModelFileError(f"{start}: {error}{advice}") from error
    except MemoryError as error:
        raise ModelFileError(f"{start}: it needs more memory than this machine has") from error


# What a model holds -> header and arrays


def _describe(model: Model, provenance: dict[str, Any] | None, image_shape: tuple[int, int] | None) -> Header:
    classifier = model if isinstance(model, SimpletronClassifier) else None
    first, *others = _mixtures_of(model)
    classes = classifier.classes_ if classifier else None
    names = getattr(model, "feature_names_in_", None)
    return Header(
        format=_format_of(classifier),
        kind="classifier" if classifier else "mixture",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"tnesi": tnesi.__version__, "numpy": np.__version__, "python": platform.python_version()},
        provenance=dict(provenance or {}),
        notes=[] if _is_seed(model.random_state) else [_NOT_SAVED],
        image_shape=image_shape,
        feature_names=None if names is None else names.tolist(),
        parameters=_parameters_of(model),
        classes=None if classes is None else classes.tolist(),
        class_dtype=None if classes is None else classes.dtype.newbyteorder("<").str if classes.size else "<i8",
        recurrent=bool(classifier is not None and classifier._recurrent),
        further_mixtures=[_describe_mixture(mixture) for mixture in others],
        label_method=vars(classifier).get("label_method_", "") if classifier else "hebbian",
        sharpness=classifier._classes.sharpness if classifier and classifier.classes_.size else 1.0,
        unknown=bool(classifier is not None and classifier._n_unnamed()),
        **_describe_mixture(first) | ({} if classifier else {"mixture_parameters": None}),
    )


def _format_of(classifier: SimpletronClassifier | None) -> int:
    if classifier is None:
        return 1
    if not classifier.classes_.size:
        return 4
    published = classifier.label_method_ == classifier.label_method == "hebbian"
    if not published or _present_of(classifier) is not None:
        return 3
    return 2 if len(classifier.mixtures_) > 1 else 1


def _describe_mixture(mixture: PoissonMixture) -> dict[str, Any]:
    search = mixture._search
    return {
        "mixture_parameters": _parameters_of(mixture),
        "search": search.name,
        "doubtful_below": search.doubtful_below if isinstance(search, NeighborSearch) else None,
        **{name: getattr(mixture, f"{name}_") for name in LEARNED},
    }


def _mixtures_of(model: Model) -> list[PoissonMixture]:
    return model.mixtures_ if isinstance(model, SimpletronClassifier) else [model]


def _is_seed(random_state: Any) -> bool:
    return random_state is None or isinstance(random_state, Integral)


def _parameters_of(model: Model) -> dict[str, Any]:
    parameters: dict[str, Any] = model.get_params(deep=False)
    for name in _NOT_STORED:
        del parameters[name]
    if not _is_seed(parameters["random_state"]):
        parameters["random_state"] = None
    return {name: value for name, value in parameters.items() if (name, value) not in _LATER_PARAMETERS.items()}


def _arrays_of(model: Model, training: bool) -> dict[str, Array]:
    found: dict[str, Array | None] = {}
    for m, mixture in enumerate(_mixtures_of(model)):
        own: dict[str, Array | None] = {"weights": mixture._fields.w, "weight_sums": mixture._fields.w_sum}
        if isinstance(mixture._search, NeighborSearch):
            own["lists"] = mixture._search.lists
        found |= {array_name(name, m): array for name, array in own.items()}
    if isinstance(model, SimpletronClassifier):
        if model.classes_.size:
            found |= {"class_weights": model.class_weights_, "class_sizes": model.class_sizes_}
        elif not training:
            raise ValueError("a classifier without labels is of no use without its activities: pass training=True")
        if training and model._label is not None:
            found |= {
                "activity_starts": model.activities_.indptr.astype(np.int64),
                "activity_fields": model.activities_.indices.astype(np.int32),
                "activity_values": model.activities_.data,
                "labels": model._label,
                "row_weights": model._weight,
                "present": _present_of(model),
            }
    return {name: np.ascontiguousarray(array) for name, array in found.items() if array is not None}


def _present_of(classifier: SimpletronClassifier) -> Array | None:
    """Return which rows that a classifier was given it has activities of; None: all."""
    if classifier._stream is None:
        present: Array | None = classifier._present
        return present
    kept = np.zeros(classifier._stream.rows.n_seen, bool)
    kept[classifier.kept_rows_] = True
    return None if kept.all() else kept


# A file -> header and arrays


def _read(path: Path, *, with_arrays: bool) -> tuple[Header, dict[str, Array]]:
    _check_start(path)
    with safe_open(path, framework="np") as file:
        metadata = file.metadata() or {}
        text, stored = metadata.get("tnesi"), metadata.get("checksum")
        if text is None:
            raise ModelFileError("it is a safetensors file, but not a model of tnesi")
        if unknown := sorted(metadata.keys() - {"tnesi", "checksum"}):
            raise ModelFileError(
                f"it has the unknown metadata entry {unknown[0][:20]!r}: if a newer tnesi made the file, pip install "
                "--upgrade tnesi, else the file is damaged: copy or save it again"
            )
        parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        if stored is not None:
            described = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
            check_header_sum(stored, text, described)
        header = parse(text, {name: tuple(part.get_shape()) for name, part in parts.items()})
        check_shapes(header)
        for name, part in parts.items():
            wanted = ARRAYS[name.partition(".")[0]][0]
            if part.get_dtype() != wanted:
                raise ValueError(f"{name} is of type {part.get_dtype()}, not {wanted}")
        arrays = {name: file.get_tensor(name) for name in parts} if with_arrays else {}
        if with_arrays and stored is not None:
            check_array_sum(stored, arrays)
        return header, arrays


def _check_start(path: Path) -> None:
    """Tell a person what the file is, where it is something else."""
    if path.exists() and not path.is_file():
        raise ModelFileError("it is not a file: give the name of a model file (.tnesi)")
    with path.open("rb") as file:
        start = file.read(9)
    if not start:
        raise ModelFileError("it is empty: save the model again")
    if start[8:] != b"{":
        if start[0] == 0x80 and start[1:2] in (b"\2", b"\3", b"\4", b"\5"):
            raise ModelFileError(
                "it is a pickle, which could run any program when it is opened. If you trust it, open it with "
                "pickle.load and write the model with tnesi.save"
            )
        raise ModelFileError("it is not a model file of tnesi; `tnesi fit` and tnesi.save make them")
    if int.from_bytes(start[:8], "little") > MOST_BYTES:
        raise ValueError(f"its header has more than {MOST_BYTES} bytes")


# Header and arrays -> a model


def _new_models(header: Header) -> tuple[SimpletronClassifier | None, list[PoissonMixture]]:
    """Return the estimators, not fitted yet, with parameters that they accept."""
    if header.mixture_parameters is None:
        return None, [_new(PoissonMixture, header.parameters)]
    mixtures = [_new(PoissonMixture, member.mixture_parameters or {}) for member in header.members]
    return _new(SimpletronClassifier, header.parameters), mixtures


def _new(kind: type[_Kind], parameters: dict[str, Any]) -> _Kind:
    """A parameter that is not in the file came later: it is what was done before, by default its default."""
    known = kind().get_params(deep=False).keys()
    unknown = parameters.keys() - known | parameters.keys() & _NOT_STORED
    if unknown:
        raise ModelFileError(
            f"this tnesi does not know the parameters {', '.join(sorted(unknown)[:5])!r}: if a newer one made the "
            "file, pip install --upgrade tnesi"
        )
    model = kind(**{name: value for name, value in _LATER_PARAMETERS.items() if name in known} | parameters)
    model._check_parameters()
    seed = model.random_state
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**32):
        raise ValueError(f"random_state={seed!r}: a seed is an integer from 0 to 2**32 - 1")
    if not isinstance(model.verbose, int):
        raise ValueError(f"verbose={model.verbose!r} is not an integer")
    return model


def _restore_mixture(mixture: PoissonMixture, header: Header, arrays: dict[str, Array]) -> None:
    mixture._fields = replace(Fields.from_weights(arrays["weights"]), w_sum=arrays["weight_sums"])
    mixture.weights_ = mixture._fields.w
    mixture.n_components_, mixture.n_features_in_ = mixture.weights_.shape
    if header.feature_names is not None:
        mixture.feature_names_in_ = np.array(header.feature_names, dtype=object)
    mixture.norm_, mixture.truncation_ = float(header.norm), header.truncation
    mixture.n_iter_, mixture.converged_ = header.n_iter, header.converged
    mixture.lower_bound_, mixture.history_ = header.lower_bound, header.history
    n_threads = resolve_threads(mixture.n_threads)
    if header.search == "full":
        mixture._search = FullSearch(n_threads)
    elif header.search == "exact":
        mixture._search = ExactSearch(header.truncation, n_threads)
    else:
        search = NeighborSearch(header.truncation, n_threads)
        search.lists, search.doubtful_below = arrays.get("lists"), header.doubtful_below
        search.make_cells(mixture._fields)
        mixture._search = search


def _restore_classifier(
    classifier: SimpletronClassifier, mixtures: list[PoissonMixture], header: Header, arrays: dict[str, Array]
) -> None:
    classifier.mixtures_, classifier.n_iter_ = mixtures, max(mixture.n_iter_ for mixture in mixtures)
    classifier.n_features_in_ = mixtures[0].n_features_in_
    if header.feature_names is not None:
        classifier.feature_names_in_ = mixtures[0].feature_names_in_
    if "labels" in arrays:
        values, starts = arrays["activity_values"], arrays["activity_starts"]
        starts = starts.astype(np.int32 if values.size < 2**31 else np.int64)  # as they were: SciPy wants them small
        shape = arrays["labels"].size, sum(mixture.n_components_ for mixture in mixtures)
        classifier.activities_ = sparse.csr_array((values, arrays["activity_fields"], starts), shape=shape)
    classifier._weight, classifier._present = arrays.get("row_weights"), arrays.get("present")
    classifier._recurrent = header.recurrent
    if not header.classes:
        classifier._keep_none(arrays["labels"], classes_of(header))
        return
    layer = Classes.from_weights(arrays["class_weights"], arrays.get("class_sizes"), float(header.sharpness))
    method, labels, classes = header.label_method, arrays.get("labels"), classes_of(header)
    classifier._keep(layer, labels, classes, method, unknown=header.unknown)
