"""Validation of the arrays of a model file: their names, types, shapes and values.

Errors are ValueErrors, which `save_load` converts to ModelFileError.
"""

from __future__ import annotations

import re

import numpy as np

from tnesi.estimators.mixture_parameters import LARGEST_ROW_SUM
from tnesi.model_file.encoder_state import is_of_encoder
from tnesi.model_file.header import MIXTURE_ARRAYS, Header, array_name
from tnesi.types import Array

ARRAYS = {
    "weights": ("F32", "CD"),
    "weight_sums": ("F32", "C"),
    "lists": ("I32", "CL"),
    "class_weights": ("F32", "KC"),
    "class_sizes": ("F64", "K"),
    "vote_weights": ("F32", "KC"),
    "vote_sizes": ("F64", "K"),
    "linear_weights": ("F32", "DK"),
    "linear_intercept": ("F32", "K"),
    "inferred": ("F32", "NK"),
    "activity_starts": ("I64", "M"),
    "activity_fields": ("I32", "S"),
    "activity_values": ("F32", "S"),
    "labels": ("I32", "N"),
    "row_weights": ("F32", "N"),
    "present": ("BOOL", "G"),
}
"""Type and shape; equal letters are equal sizes. Each mixture has its own C and L; in the arrays of a classifier, C is
the sum."""
_OF_CLASSIFIER = ARRAYS.keys() - set(MIXTURE_ARRAYS)
_TRAINING = {"activity_starts", "activity_fields", "activity_values", "labels"}
_CLASS_TYPES = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9]\d{0,7}")
_PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_MOST_CHARACTERS = 2**24
_MOST_LINEAR = 1e30
"""Larger weights of linear classes could add up to infinity."""
_ROUNDING = 1e-4
_MOST_PER_ROW_SUM = 1e6
"""The online rule initializes fields with larger sums than row_sum, and some of them never learn."""


def check_shapes(header: Header) -> None:
    """Raise an error if the header does not match its arrays, or arrays do not match each other."""
    names = {name for name in header.shapes if not is_of_encoder(name)}
    members = header.members
    wanted = {array_name(name, m) for m, member in enumerate(members) for name in _arrays_of_mixture(member)}
    if header.kind != "mixture":
        if header.classes:
            wanted |= {"class_weights"} | names & {"class_sizes"}
        wanted |= _of_votes(header, names)
        wanted |= _TRAINING | names & {"row_weights", "present"} if _has_rows(header) else set()
        wanted |= {"inferred"} if header.votes and _has_rows(header) else set()
    if names != wanted:
        raise ValueError(f"missing or unexpected arrays: {', '.join(sorted(names ^ wanted)[:5])!r}")
    size: dict[str, int] = {} if header.classes is None else {"K": len(header.classes)}
    n_fields = 0
    for member in members:
        size = {letter: n for letter, n in size.items() if letter in "KD"}
        _fit(member.shapes, size)
        _check_mixture(member)
        n_fields += size["C"]
    size["C"] = n_fields
    _fit({name: shape for name, shape in header.shapes.items() if name.partition(".")[0] in _OF_CLASSIFIER}, size)
    if "N" in size and size["M"] != size["N"] + 1:
        raise ValueError("activity_starts does not match the labels")
    n_features = size["D"]
    if header.image_shape is not None and header.image_shape[0] * header.image_shape[1] != n_features:
        raise ValueError(f"image_shape {header.image_shape} does not match {n_features} features")
    if header.feature_names is not None and len(header.feature_names) != n_features:
        raise ValueError(f"{len(header.feature_names)} names do not match {n_features} features")
    if header.classes is not None:
        classes_of(header)


def _of_votes(header: Header, names: set[str]) -> set[str]:
    """Return the names of the arrays of the votes."""
    wanted = set()
    for i, vote in enumerate(header.votes):
        if vote["transform"] is None:
            wanted |= {f"vote_weights.{i}"} | names & {f"vote_sizes.{i}"}
        else:
            wanted |= {f"linear_weights.{i}", f"linear_intercept.{i}"}
    return wanted


def _has_rows(header: Header) -> bool:
    """Return whether the file must have training rows; a classifier without labels always does."""
    return bool(header.shapes.keys() & _TRAINING) or not header.classes


def _arrays_of_mixture(header: Header) -> set[str]:
    has_lists = header.search == "neighbors" and header.doubtful_below is not None
    return {"weights", "weight_sums"} | ({"lists"} if has_lists else set())


def _check_mixture(header: Header) -> None:
    n_fields, n_features = header.shapes["weights"]
    if not n_features < header.row_sum <= LARGEST_ROW_SUM or n_features < 2:
        raise ValueError(f"row_sum {header.row_sum:g} is out of range for {n_features} features")
    if header.truncation > n_fields or (header.search == "full" and header.truncation != n_fields):
        raise ValueError(f"truncation {header.truncation} is out of range for {n_fields} fields")


def _fit(shapes: dict[str, tuple[int, ...]], size: dict[str, int]) -> None:
    """Compare the shapes with the known sizes, and add new sizes."""
    for name, shape in shapes.items():
        letters = ARRAYS[name.partition(".")[0]][1]
        fits = len(shape) == len(letters) and min(shape) > 0
        if not fits or any(size.setdefault(a, n) != n for a, n in zip(letters, shape, strict=True)):
            raise ValueError(f"the shape {shape} of {name} does not match the other arrays")


def check_values(header: Header, arrays: dict[str, Array]) -> None:
    """Raise an error if a value is invalid; the kernels rely on indices in range."""
    for m, member in enumerate(header.members):
        _check_fields(member, {name: arrays[array_name(name, m)] for name in member.shapes})
    for name, array in arrays.items():
        kind = name.partition(".")[0]
        if kind in ("class_weights", "vote_weights"):
            _require(bool((array >= 0).all() and np.isfinite(array).all()), f"{name} are not negative")
        elif kind in ("class_sizes", "vote_sizes"):
            _require(_are_shares(array[None]), f"{name} are shares of the whole")
        elif kind in ("linear_weights", "linear_intercept"):
            _require(bool((abs(array) <= _MOST_LINEAR).all()), f"{name} are at most {_MOST_LINEAR:g}")
    if header.votes:
        _require(_are_shares(np.array([[vote["share"] for vote in header.votes]])), "votes are shares of the whole")
    if "inferred" in arrays:
        _require(_are_shares(arrays["inferred"]), "inferred probabilities sum to 1")
    if "labels" in arrays:
        starts, values, labels = arrays["activity_starts"], arrays["activity_values"], arrays["labels"]
        n_fields = sum(arrays[name].shape[0] for name in arrays if name.partition(".")[0] == "weights")
        n_classes = len(header.classes or ()) - header.unknown
        _require(starts[0] == 0 and starts[-1] == values.size, "activity_starts go from the first to the last")
        _require(bool((starts[1:] >= starts[:-1]).all()), "activity_starts ascend")
        _require(_all_in(arrays["activity_fields"], 0, n_fields), "activity_fields name fields")
        _require(bool(((values >= 0) & (values <= 1 + _ROUNDING)).all()), "activities are in [0, 1]")
        _require(_all_in(labels, -1, n_classes), "labels name classes")
        _require(
            np.unique(labels[labels >= 0]).size == n_classes,
            "labels of all classes occur (training=False saves without)",
        )
        present = arrays.get("present")
        _require(present is None or present.sum() == labels.size, "the rows that are present have labels")
    if "row_weights" in arrays:
        weight = arrays["row_weights"]
        _require(bool((weight > 0).all() and np.isfinite(weight.sum(dtype=np.float64))), "row_weights are positive")


def _check_fields(header: Header, arrays: dict[str, Array]) -> None:
    w, sums = arrays["weights"], arrays["weight_sums"].astype(np.float64)
    _require(bool((w >= 1 - _ROUNDING).all()), "weights are at least 1")
    in_range = (sums >= header.row_sum * (1 - _ROUNDING)) & (sums <= header.row_sum * _MOST_PER_ROW_SUM)
    _require(bool(in_range.all()), "weights sum to row_sum, or somewhat more")
    error = np.abs(w.sum(axis=1, dtype=np.float64) - sums)
    _require(bool((error <= _ROUNDING * sums).all()), "weight_sums are the sums of weights")
    if "lists" in arrays:
        _require(_all_in(arrays["lists"], -1, len(w)), "lists name fields")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"failed check: {what}")


def _are_shares(rows: Array) -> bool:
    return bool((rows >= 0).all() and (abs(rows.sum(axis=1) - 1) <= _ROUNDING).all())


def _all_in(values: Array, low: int, end: int) -> bool:
    return bool(values.min() >= low and values.max() < end)


def classes_of(header: Header) -> Array:
    """Return the classes of a classifier as an array of distinct values, sorted except for the unknown class."""
    values, type_name = header.classes or [], header.class_dtype or ""
    if not values and type_name == "<i8":
        return np.empty(0, np.int64)
    if not _CLASS_TYPES.fullmatch(type_name):
        raise ValueError(f"classes of type {type_name[:20]!r} cannot be stored, only numbers, strings, True and False")
    dtype = np.dtype(type_name).newbyteorder("=")
    if dtype.kind == "U" and dtype.itemsize * len(values) > 4 * _MOST_CHARACTERS:
        raise ValueError(f"the class names have more than {_MOST_CHARACTERS} characters")
    _require({type(value) for value in values} == {_PYTHON_TYPES[dtype.kind]}, f"classes are of type {dtype}")
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= min(values) <= max(values) <= np.iinfo(dtype).max:
        raise ValueError(f"a class is too large for the type {dtype}")
    with np.errstate(over="ignore"):
        classes: Array = np.array(values, dtype=dtype)
    known = classes[: len(classes) - header.unknown]
    _require(classes.tolist() == values and len(known) > 1, f"classes are two or more of type {dtype}")
    _require(bool((known[1:] > known[:-1]).all()), "classes are sorted and distinct")
    _require(not header.unknown or classes[-1] not in known, "the unknown class differs from the others")
    return classes
