"""How a classifier learns from a stream: the fields from every batch, the classes from the rows that are kept.

The second layer is learned when it is asked for, on the activities that the rows kept have then. Where labeled
rows alone teach (all are labeled, or there is no self-labeling), it is R_kc ~ J_kc = sum_n t_nk s_nc over all rows
of the stream, which fade as the statistics of the fields do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from tnesi.estimators.committee import activate, new_mixture, side_by_side
from tnesi.estimators.first_layer import POINTS_PER_FIELD
from tnesi.estimators.given_rows import GivenRows
from tnesi.estimators.parameters import unchanged_on_failure
from tnesi.estimators.second_layer import FROM_STREAM, new_top_layer
from tnesi.estimators.streaming import check_goes_on, check_stream, learn_batch
from tnesi.labeling.labels import encode_labels, merge_classes, with_marker
from tnesi.model.classes import Classes
from tnesi.training.kept_rows import KeptRows

Array = npt.NDArray[Any]

_BLOCK = 4096
_FEWEST_ROWS = 10_000


@dataclass
class LabeledStream:
    """What a classifier keeps of a stream.

    Attributes
    ----------
    rows : KeptRows
    classes : (K,) array
        Known by now, with or without labels.
    joint : (K, C) array
        J: how often the fields were active for rows of each class.
    seed : int
    """

    rows: KeptRows
    classes: Array
    joint: Array
    seed: int

    @classmethod
    def of(cls, classes: Array, n_fields: int, seed: int) -> Self:
        return cls(KeptRows(np.random.default_rng(seed)), classes, np.zeros((classes.size, n_fields)), seed)

    def room(self, keep_rows: Any) -> int:
        """Return how many rows to keep, as given or chosen."""
        if keep_rows != "auto":
            return int(keep_rows)
        return max(POINTS_PER_FIELD * int(self.joint.shape[1]), _FEWEST_ROWS)

    def learn(self, activities: sparse.csr_array, label: Array, weight: Array | None, kept: float) -> None:
        """Count the labels of a batch; what came before has faded by the factor `kept`."""
        points = np.flatnonzero(label >= 0)
        w = np.ones(points.size) if weight is None else weight[points].astype(np.float64)
        teach = sparse.csr_array((w, (label[points], points)), shape=(self.joint.shape[0], label.size))
        self.joint = kept * self.joint + (teach @ activities.astype(np.float64)).toarray()

    def grow(self, classes: Array) -> None:
        """Give the classes the numbers that they have among more of them."""
        place = np.searchsorted(classes, self.classes)
        joint = np.zeros((classes.size, self.joint.shape[1]))
        joint[place] = self.joint
        self.classes, self.joint = classes, joint
        self.rows.renumber(place)


def check_labeled_stream(settings: Any) -> None:
    """Refuse what cannot learn from a stream."""
    check_stream(settings)
    if settings.recurrent:
        raise ValueError("recurrent=True: the fields of a recurrent network learn from all labels together; call fit")


def learn_labeled_batch(clf: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> GivenRows:
    """Learn from a batch, the first or another one; return its rows."""
    first = not hasattr(clf, "mixtures_")
    given = GivenRows.of(clf, X, sample_weight, reset=first, batch=True)
    label, known = _read_labels(clf, given, X, y, classes)
    if first:
        random = check_random_state(clf.random_state)
        seed, top_seed, *others = (int(random.randint(2**31)) for _ in range(1 + clf.n_mixtures))
        clf.mixtures_ = [_new_member(clf, seed) for seed in (seed, *others)]
    elif clf._stream is None:
        clf._stream = _from_fit(clf)
    found, kept = [], 0.0
    for m, mixture in enumerate(clf.mixtures_, 1):
        mixture.set_params(norm=clf.mixtures_[0].norm_ if m > 1 else clf.norm, half_life=clf.half_life)
        place = {"mixture": m, "mixtures": len(clf.mixtures_)} if len(clf.mixtures_) > 1 else None
        activities, kept = learn_batch(mixture, given, place)
        found.append(activities.to_csr(mixture.n_components_))
    if first:
        clf._stream = LabeledStream.of(known, sum(own.shape[1] for own in found), top_seed)
    clf._stream.grow(known)
    clf._stream.learn(side_by_side(found), label, given.weight, kept)
    x = given.store.read(slice(None)).copy()
    room = clf._stream.room(clf.keep_rows)
    clf._stream.rows.add(x, label, given.weight, clf.half_life, room, given.present)
    clf.classes_ = known
    clf.n_iter_, clf.n_samples_seen_ = clf.mixtures_[0].n_iter_, clf.mixtures_[0].n_samples_seen_
    clf.n_zero_rows_ = clf.mixtures_[0].n_zero_rows_
    clf._recurrent, clf._present, clf._labeler = False, None, None
    for name in FROM_STREAM:
        vars(clf).pop(name, None)
    return given


def _read_labels(clf: Any, given: GivenRows, X: Any, y: Any, classes: Any) -> tuple[Array, Array]:
    """Return the labels of a batch as numbers among all classes known by now, and these classes."""
    known = clf.classes_[: clf.classes_.size - clf._n_unnamed()] if hasattr(clf, "classes_") else None
    if classes is not None:
        known = merge_classes(known, encode_labels(classes, clf.unlabeled, one_is_fine=True)[1])
    n = given.n_rows if given.present is None else given.present.size
    label, own = np.full(n, -1, np.int32), None
    if y is not None:
        check_consistent_length(X, y)
        label, own = encode_labels(y, clf.unlabeled, none_is_fine=True, one_is_fine=True)
    merged = merge_classes(known, own)
    if own is not None and own.size:
        label = np.append(np.searchsorted(merged, own), -1).astype(np.int32)[label]
    return label if given.present is None else label[given.present], merged


def _new_member(clf: Any, seed: int) -> Any:
    mixture = new_mixture(clf, random_state=seed)
    mixture.n_features_in_ = clf.n_features_in_
    if hasattr(clf, "feature_names_in_"):
        mixture.feature_names_in_ = clf.feature_names_in_
    return mixture


def _from_fit(clf: Any) -> LabeledStream:
    """Go on from what `fit` has learned. Its rows are gone: their fields draw them, sum_c s_nc (W_c - 1)."""
    for mixture in clf.mixtures_:
        check_goes_on(mixture)
    seed = int(check_random_state(clf.random_state).randint(2**31))
    label, weight, present = clf._label, clf._weight, clf._present
    known = clf.classes_[: clf.classes_.size - clf._n_unnamed()]
    stream = LabeledStream.of(known, clf.activities_.shape[1], seed)
    stream.learn(clf.activities_, label, weight, 0.0)
    numbers = np.arange(label.size) if present is None else np.flatnonzero(present)
    above = np.concatenate([mixture.weights_ - 1 for mixture in clf.mixtures_])
    for start in range(0, label.size, _BLOCK):
        at = slice(start, start + _BLOCK)
        x = np.asarray(clf.activities_[at] @ above, dtype=np.float32)
        w = None if weight is None else weight[at]
        stream.rows.add(x, label[at], w, clf.half_life, stream.room(clf.keep_rows))
    stream.rows.parts = [part._replace(number=numbers[part.number]) for part in stream.rows.parts]
    stream.rows.n_seen = label.size if present is None else present.size
    return stream


def learn_second_layer(clf: Any) -> None:
    """Learn the classes from the rows kept, with the fields as they are now; all of it, or nothing."""
    with unchanged_on_failure(clf):
        _learn_second_layer(clf)


def _learn_second_layer(clf: Any) -> None:
    stream: LabeledStream = clf._stream
    classes = stream.classes
    rows, weight = stream.rows.sample(stream.room(clf.keep_rows))
    clf.activities_, clf._weight, clf.kept_rows_ = activate(clf.mixtures_, rows.x, None, clf), weight, rows.number
    seen = np.unique(rows.label[rows.label >= 0])
    if classes.size < 2 or not seen.size:
        clf._keep_none(rows.label, classes)
        return
    alone = not clf.self_labeling or bool((rows.label >= 0).all())
    if seen.size < 2 or (alone and clf.label_method in ("auto", "hebbian") and not clf.unknown_classes):
        mass = stream.joint.sum(axis=1, keepdims=True)
        average = np.divide(stream.joint, mass, out=np.zeros_like(stream.joint), where=mass > 0)
        clf._keep(Classes.from_weights(average), rows.label, classes, "hebbian")
        return
    place = np.full(classes.size + 1, -1, np.int32)
    place[seen] = np.arange(seen.size)
    top = new_top_layer(clf, place[rows.label], seen.size, weight, stream.seed)
    if clf._learn_labels(top, classes[seen]):
        raise KeyboardInterrupt
    if seen.size < classes.size:
        _add_unseen(clf, rows.label, classes, seen)


def _add_unseen(clf: Any, label: Array, classes: Array, seen: Array) -> None:
    """Add classes of which there is no label yet: they have no fields."""
    layer: Classes = clf._classes
    place = np.concatenate([seen, np.arange(classes.size, classes.size + clf._unknown)])
    weights = np.zeros((classes.size + clf._unknown, len(layer)), np.float32)
    weights[place] = layer.weights
    sizes = None
    if layer.sizes is not None:
        sizes = np.zeros(len(weights))
        sizes[place] = layer.sizes
    names = with_marker(classes, clf.unlabeled) if clf._unknown else classes
    full = Classes.from_weights(weights, sizes, layer.sharpness)
    clf._keep(full, label, names, clf.label_method_, unknown=clf._unknown)
