"""The JSON header of a model file, and the validation of its entries.

Errors are ValueErrors, which `save_load` converts to ModelFileError.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from tnesi.errors import TnesiError
from tnesi.model.linear_classes import TRANSFORMS
from tnesi.search import SEARCHES
from tnesi.training.committee import MOST_MIXTURES

FORMAT = 1
"""Version of the format, which increases when an earlier tnesi cannot read new files."""
MOST_BYTES = 2**25
_DEEPEST = 8
_DEEPEST_ENCODER = 16
MIXTURE_ARRAYS = ("weights", "weight_sums", "lists")
"""The arrays that each mixture of a committee has."""
LABELINGS = ("vote", "clusters", "spreading", "leading", "logistic", "self-labeling", "supervised", "")
_SCALARS = (type(None), bool, int, float, str)


class ModelFileError(TnesiError, ValueError):
    """A model file that cannot be read or written."""


@dataclass(frozen=True)
class Header:
    """The header of a model file.

    Attributes
    ----------
    format : int
        Version of the format.
    kind : {"mixture", "classifier", "network"}
        PoissonMixture, SimpletronClassifier, or NeuralSimpletron (of `tnesi.paper`).
    created : str
        Date and time of saving (ISO 8601, UTC).
    versions : dict of str
        Versions of tnesi, NumPy and Python at that time.
    provenance : dict
        The origin of the model as passed to `save`: data, fingerprint, seed, a note.
    notes : list of str
        Notes about values that could not be stored.
    image_shape : (int, int) or None
        Height and width, if the rows are images.
    feature_names : list of str or None
    parameters : dict
        Parameters of the model, without `execution`.
    mixture_parameters : dict or None
        Parameters of the classifier's first layer.
    classes : list or None
        The classes, of type `class_dtype`; None for a mixture, and empty for a classifier without labels.
    class_dtype : str or None
    recurrent : bool
        Whether the classifier was learned as a recurrent network.
    search : {"neighbors", "exact", "full"}
        The search for the best fields of a row.
    doubtful_below : float or None
        Free energy below which a row is compared with more fields (neighborhood search).
    row_sum, truncation, n_iter, converged, lower_bound, history :
        The attributes of :class:`tnesi.PoissonMixture` with these names and an underscore.
    further_mixtures : list of dict
        The other mixtures of a committee: their entries from `search` to `history`, and their `mixture_parameters`.
    labeling : str
        How the second layer was learned (one of `LABELINGS`); "" if that was interrupted, and for a mixture.
    votes : list of dict
        The votes of the second layer: method, share, sharpness, and transform (None for the classes of fields).
    vote_sharpness : float
        The power to which the average of the votes is raised.
    accuracy : float or None
        Estimated accuracy.
    sharpness : float
        The power to which probabilities are raised.
    unknown : bool
        Whether the last of `classes` stands for rows of unknown classes.
    encoder : dict or None
        The state of the encoder, if there is one.
    shapes : dict of tuple
        Shapes of the arrays in the file. "weights" is fields x features.
    """

    format: int
    kind: str
    created: str
    versions: dict[str, str]
    provenance: dict[str, Any]
    notes: list[str]
    image_shape: tuple[int, int] | None
    feature_names: list[str] | None
    parameters: dict[str, Any]
    mixture_parameters: dict[str, Any] | None
    classes: list[Any] | None
    class_dtype: str | None
    recurrent: bool
    search: str
    doubtful_below: float | None
    row_sum: float
    truncation: int
    n_iter: int
    converged: bool
    lower_bound: float
    history: list[dict[str, Any]]
    further_mixtures: list[dict[str, Any]]
    labeling: str
    votes: list[dict[str, Any]]
    vote_sharpness: float
    accuracy: float | None
    sharpness: float
    unknown: bool
    encoder: dict[str, Any] | None
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def members(self) -> list[Header]:
        """A header for each mixture, with its own entries and the shapes of its arrays."""
        found = []
        for m, entries in enumerate([{}, *self.further_mixtures]):
            shapes = {name: self.shapes[own] for name in MIXTURE_ARRAYS if (own := array_name(name, m)) in self.shapes}
            found.append(replace(self, **entries, further_mixtures=[], shapes=shapes))
        return found


_NAMES = {entry.name for entry in fields(Header)} - {"shapes"}
MEMBER_NAMES = {
    "mixture_parameters", "search", "doubtful_below", "row_sum", "truncation", "n_iter", "converged", "lower_bound",
    "history",
}  # fmt: skip


def array_name(name: str, m: int) -> str:
    """Return the name of an array of mixture m in a file: weights, weights.1, weights.2 and so on."""
    return f"{name}.{m}" if m else name


def to_json(header: Header) -> str:
    """Return the header as JSON; raise ValueError for values that cannot be stored."""
    entries = {name: _plain(getattr(header, name)) for name in sorted(_NAMES)}
    text = json.dumps(entries, allow_nan=False)
    if len(text) > MOST_BYTES // 3:  # quotes are escaped in the file
        raise ValueError(f"the header would have {len(text)} bytes: shorten history_, provenance or feature names")
    return text


def parse(text: str, shapes: dict[str, tuple[int, ...]]) -> Header:
    """Return the header after all checks that do not need the arrays; raise ValueError if it is invalid."""
    found = json.loads(
        text, object_pairs_hook=_object, parse_int=_integer, parse_float=_finite, parse_constant=_no_constant
    )
    version = found.get("format") if isinstance(found, dict) else None
    if version is None or not _is_integer(version, 1):
        raise ValueError("the header has no format version")
    if version > FORMAT:
        raise ModelFileError(
            "it has format {version} of a newer tnesi, but this one reads formats up to {supported}",
            version=version,
            supported=FORMAT,
            advice="pip install --upgrade tnesi",
        )
    if found.keys() != _NAMES:
        wrong = sorted(found.keys() ^ _NAMES)
        raise ValueError(f"missing or unexpected entries of the header: {', '.join(wrong[:5])!r}")
    for name, (wanted, holds) in CHECKS.items():
        if not holds(found[name]):
            raise ValueError(f"{name} in the header is not {wanted}")
    of_classifier = [found[name] is not None for name in ("classes", "class_dtype", "mixture_parameters")]
    if of_classifier != [found["kind"] != "mixture"] * 3:
        raise ValueError("only classifiers have classes, class_dtype and mixture_parameters, and all of them do")
    if not found["classes"] and (found["recurrent"] or found["unknown"] or found["labeling"] or found["votes"]):
        raise ValueError("only a classifier with labels can be recurrent or have a labeling or an unknown class")
    if found["kind"] != "classifier" and found["further_mixtures"]:
        raise ValueError("only a classifier has further_mixtures")
    if found["kind"] != "network" and found["recurrent"]:
        raise ValueError("only a network can be recurrent")
    if found["image_shape"] is not None:
        found["image_shape"] = tuple(found["image_shape"])
    return Header(**found, shapes=shapes)


def _plain(value: object) -> Any:
    """Return a value for JSON; NaN and infinities, which JSON lacks, become ``{"nonfinite": "nan"}``."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"nonfinite": str(value)}
    if not isinstance(value, _SCALARS):
        raise ValueError(
            f"{value!r} cannot be stored, only strings, numbers, True, False, None, and lists and dicts of these"
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the header has a duplicate entry")
    if found.keys() != {"nonfinite"}:
        return found
    if found["nonfinite"] not in ("nan", "inf", "-inf"):
        raise ValueError("the header has an invalid nonfinite number")
    return float(found["nonfinite"])


def _integer(text: str) -> int:
    if len(text) > 20 or abs(int(text)) >= 2**64:
        raise ValueError(f"the number {text[:20]} in the header has more than 64 bits")
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"the number {text[:20]} in the header is too large")
    return float(text)


def _no_constant(text: str) -> None:
    raise ValueError(f"the header contains {text}, which is not JSON")


def _depth(value: object) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _is_integer(value: object, low: int) -> bool:
    return type(value) is int and low <= value < 2**63


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_scalars(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, _SCALARS) for entry in value.values())


def _is_parameters(value: object) -> bool:
    return isinstance(value, dict) and _depth(value) <= _DEEPEST


def _is_record(value: Any) -> bool:
    return (
        _is_scalars(value)
        and _is_integer(value.get("iteration"), 0)
        and type(value.get("free_energy")) is float
        and _is_number(value.get("changed"))
        and isinstance(value.get("search"), str)
        and _is_number(value.get("seconds"))
    )


def _is_vote(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"method", "share", "sharpness", "transform"}
        and value["method"] in LABELINGS
        and _is_number(value["share"])
        and 0 < value["share"] <= 1
        and _is_number(value["sharpness"])
        and value["sharpness"] > 0
        and value["transform"] in (None, *TRANSFORMS)
    )


def _is_member(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == MEMBER_NAMES
        and value["mixture_parameters"] is not None
        and all(CHECKS[name][1](entry) for name, entry in value.items())
    )


CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "kind": ("a known kind of model", lambda v: v in ("mixture", "classifier", "network")),
    "created": ("a string", lambda v: isinstance(v, str)),
    "versions": ("an object of strings", lambda v: _is_scalars(v) and _is_strings([*v.values()])),
    "provenance": (f"an object of at most {_DEEPEST} levels", lambda v: isinstance(v, dict) and _depth(v) <= _DEEPEST),
    "notes": ("a list of strings", _is_strings),
    "image_shape": (
        "height and width",
        lambda v: v is None or (isinstance(v, list) and len(v) == 2 and all(_is_integer(side, 1) for side in v)),
    ),
    "feature_names": ("a list of strings", lambda v: v is None or _is_strings(v)),
    "parameters": ("an object of plain values", _is_parameters),
    "mixture_parameters": ("an object of plain values", lambda v: v is None or _is_parameters(v)),
    "classes": ("a list", lambda v: v is None or isinstance(v, list)),
    "class_dtype": ("a string", lambda v: v is None or isinstance(v, str)),
    "recurrent": ("true or false", lambda v: isinstance(v, bool)),
    "search": ("a known search", lambda v: isinstance(v, str) and v in SEARCHES),
    "doubtful_below": ("a number", lambda v: v is None or _is_number(v)),
    "row_sum": ("a positive number", lambda v: _is_number(v) and v > 0),
    "truncation": ("a positive integer", lambda v: _is_integer(v, 1)),
    "n_iter": ("a positive integer", lambda v: _is_integer(v, 1)),
    "converged": ("true or false", lambda v: isinstance(v, bool)),
    "lower_bound": ("a number", lambda v: type(v) is float),
    "history": ("a list of iterations", lambda v: isinstance(v, list) and all(map(_is_record, v))),
    "further_mixtures": (
        f"a list of at most {MOST_MIXTURES - 1} mixtures",
        lambda v: isinstance(v, list) and len(v) < MOST_MIXTURES and all(map(_is_member, v)),
    ),
    "labeling": ("a known method", lambda v: v in LABELINGS),
    "votes": ("a list of votes", lambda v: isinstance(v, list) and all(map(_is_vote, v))),
    "vote_sharpness": ("a positive number", lambda v: _is_number(v) and v > 0),
    "accuracy": ("a share", lambda v: v is None or (_is_number(v) and 0 <= v <= 1)),
    "sharpness": ("a positive number", lambda v: _is_number(v) and v > 0),
    "unknown": ("true or false", lambda v: isinstance(v, bool)),
    "encoder": (
        f"an object of at most {_DEEPEST_ENCODER} levels",
        lambda v: v is None or (isinstance(v, dict) and _depth(v) <= _DEEPEST_ENCODER),
    ),
}
