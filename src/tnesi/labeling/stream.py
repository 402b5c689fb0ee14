"""Learning a classifier from a stream: its fields batch by batch, its second layer from kept rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy import sparse

from tnesi.execution.given_rows import GivenRows
from tnesi.execution.settings import Listener
from tnesi.execution.store import ArrayStore
from tnesi.labeling.labeler import Labeler
from tnesi.labeling.labels import merge_classes, with_marker
from tnesi.labeling.second_layer import LabelingParameters, learn_labels, new_labeler
from tnesi.model.classes import FieldClasses
from tnesi.model.classifier_model import ClassifierModel, SecondLayer, StoredRows, activate, side_by_side
from tnesi.training.committee import committee_place
from tnesi.training.kept_rows import KeptRows
from tnesi.training.mixture import POINTS_PER_FIELD, LearnedMixture, MixtureParameters
from tnesi.training.stream import MixtureStream, check_continuable, learn_batch
from tnesi.types import Array

_BLOCK = 4096
_FEWEST_ROWS = 10_000


@dataclass
class ClassifierStream:
    """The state of a classifier that learns from a stream.

    Attributes
    ----------
    mixtures : list of MixtureStream
        The first layer.
    rows : KeptRows
    names : (K,) array
        Classes known so far, with or without labels.
    joint : (K, C) array
        J: sums of the activities of labeled rows, per class.
    seed : int
        Seed of the second layer.
    seeds : list of int
        Seeds of the mixtures; the first also seeds the clusters.
    """

    mixtures: list[MixtureStream]
    rows: KeptRows
    names: Array
    joint: Array
    seed: int
    seeds: list[int]
    _after_fit: list[LearnedMixture] = field(default_factory=list)

    @classmethod
    def begin(
        cls, given: GivenRows, parameters: MixtureParameters, seeds: list[int], top_seed: int, listener: Listener | None
    ) -> tuple[ClassifierStream, sparse.csr_array, float]:
        """Learn the mixtures from a first batch; return the stream, the activities of the batch, and 0."""
        mixtures, found = [], []
        for m, seed in enumerate(seeds, 1):
            place = committee_place(m, len(seeds))
            mixture, activities, _ = learn_batch(None, None, given, parameters, seed, None, listener, place)
            mixtures.append(mixture)
            found.append(activities.to_csr(mixture.n_fields))
            parameters = replace(parameters, row_sum=mixture.row_sum)
        n_fields = sum(mixture.n_fields for mixture in mixtures)
        rows = KeptRows(np.random.default_rng(top_seed))
        empty = np.empty(0, np.int64)
        return cls(mixtures, rows, empty, np.zeros((0, n_fields)), top_seed, seeds), side_by_side(found), 0.0

    @classmethod
    def after_fit(
        cls,
        model: ClassifierModel,
        learned: list[LearnedMixture],
        names: Array,
        seed: int,
        seeds: list[int],
        half_life: float | None,
        keep_rows: int | Literal["auto"],
    ) -> ClassifierStream:
        """Continue from a fit, whose rows are replaced by their reconstruction sum_c s_nc (W_c - 1)."""
        for mixture in learned:
            check_continuable(mixture)
        stored, label = model.rows, model.label
        assert stored is not None
        assert label is not None
        n_fields = sum(model.sizes)
        rows = KeptRows(np.random.default_rng(seed))
        stream = cls([], rows, names, np.zeros((names.size, n_fields)), seed, seeds, list(learned))
        stream.count(stored.activities, label, stored.weight, 0.0)
        above = np.concatenate([mixture.fields.w - 1 for mixture in model.mixtures])
        for start in range(0, label.size, _BLOCK):
            at = slice(start, start + _BLOCK)
            x = np.asarray(stored.activities[at] @ above, dtype=np.float32)
            w = None if stored.weight is None else stored.weight[at]
            rows.add(x, label[at], w, half_life, stream.room(keep_rows))
        rows.renumber_rows(stored.numbers, stored.n_given)
        return stream

    def room(self, keep_rows: int | Literal["auto"]) -> int:
        """Return the number of rows to keep, as given or chosen."""
        if keep_rows != "auto":
            return int(keep_rows)
        return max(POINTS_PER_FIELD * int(self.joint.shape[1]), _FEWEST_ROWS)

    def learn_fields(
        self, given: GivenRows, parameters: MixtureParameters, half_life: float | None, listener: Listener | None
    ) -> tuple[sparse.csr_array, float]:
        """Learn the mixtures from another batch; return its activities and the discount factor of earlier rows."""
        found, kept = [], 0.0
        streams: list[MixtureStream | None] = [*self.mixtures] or [None] * len(self._after_fit)
        learned: list[LearnedMixture | None] = [*self._after_fit] or [None] * len(streams)
        mixtures = []
        for m, (stream, before) in enumerate(zip(streams, learned, strict=True), 1):
            place = committee_place(m, len(streams))
            after = None if stream is not None else before
            mixture, activities, kept = learn_batch(stream, after, given, parameters, None, half_life, listener, place)
            mixtures.append(mixture)
            found.append(activities.to_csr(mixture.n_fields))
        self.mixtures, self._after_fit = mixtures, []
        return side_by_side(found), kept

    def keep(
        self,
        given: GivenRows,
        activities: sparse.csr_array,
        kept: float,
        label: Array,
        names: Array,
        half_life: float | None,
        keep_rows: int | Literal["auto"],
    ) -> None:
        """Keep rows of a batch with their labels (indices into `names`), and count these."""
        self.grow(names)
        self.count(activities, label, given.weight, kept)
        x = given.store.read(slice(None)).copy()
        self.rows.add(x, label, given.weight, half_life, self.room(keep_rows), given.present)

    def count(self, activities: sparse.csr_array, label: Array, weight: Array | None, kept: float) -> None:
        """Count the labels of a batch, after discounting earlier ones by the factor `kept`."""
        points = np.flatnonzero(label >= 0)
        w = np.ones(points.size) if weight is None else weight[points].astype(np.float64)
        teach = sparse.csr_array((w, (label[points], points)), shape=(self.joint.shape[0], label.size))
        self.joint = kept * self.joint + (teach @ activities.astype(np.float64)).toarray()

    def grow(self, names: Array) -> None:
        """Renumber the classes for a larger set of names."""
        place = np.searchsorted(names, self.names)
        joint = np.zeros((names.size, self.joint.shape[1]))
        joint[place] = self.joint
        self.names, self.joint = names, joint
        self.rows.renumber(place)

    def model(
        self, parameters: LabelingParameters, keep_rows: int | Literal["auto"]
    ) -> tuple[ClassifierModel, Labeler]:
        """Learn the second layer from the kept rows, with the current fields; return the model and its labeler."""
        kept, weight = self.rows.sample(self.room(keep_rows))
        mixtures = tuple(stream.model for stream in self.mixtures)
        activities = activate(mixtures, kept.x, parameters.n_threads)
        rows = StoredRows(activities, weight, kept.number, self.rows.n_seen, ArrayStore(kept.x))
        waiting = ClassifierModel(mixtures, None, False, rows, kept.label)
        labeler = new_labeler(rows, waiting.sizes, self.seeds[0], parameters.n_threads)
        seen = np.unique(kept.label[kept.label >= 0])
        if self.names.size < 2 or not seen.size:
            return waiting, labeler
        layer, inferred = self._second_layer(parameters, labeler, kept.label, seen)
        return replace(waiting, layer=layer, inferred=inferred), labeler

    def _second_layer(
        self, parameters: LabelingParameters, labeler: Labeler, label: Array, seen: Array
    ) -> tuple[SecondLayer, Array | None]:
        names = self.names
        alone = parameters.method == "supervised" or bool((label >= 0).all())
        plain = parameters.method in ("auto", "self-labeling", "supervised") and not parameters.unknown_classes
        if seen.size < 2 or (alone and plain):
            mass = self.joint.sum(axis=1, keepdims=True)
            average = np.divide(self.joint, mass, out=np.zeros_like(self.joint), where=mass > 0)
            return SecondLayer(FieldClasses.from_weights(average), names, "supervised"), None
        place = np.full(names.size + 1, -1, np.int32)
        place[seen] = np.arange(seen.size)
        learned = learn_labels(labeler, parameters, place[label], names[seen], self.seed)
        if learned.warning:
            raise KeyboardInterrupt
        if seen.size == names.size:
            return learned.layer, learned.inferred
        inferred = None
        if learned.inferred is not None:
            inferred = np.zeros((len(learned.inferred), names.size), np.float32)
            inferred[:, seen] = learned.inferred
        return _with_unseen(learned.layer, names, seen, parameters), inferred


def merged_labels(known: Array | None, label: Array, own: Array | None) -> tuple[Array, Array]:
    """Return labels as indices into all known classes, and these classes."""
    merged = merge_classes(known, own)
    if own is not None and own.size:
        label = np.append(np.searchsorted(merged, own), -1).astype(np.int32)[label]
    return label, merged


def _with_unseen(layer: SecondLayer, names: Array, seen: Array, parameters: LabelingParameters) -> SecondLayer:
    """Add classes without labels, which are never predicted."""
    n_classes = names.size + layer.unknown
    place = np.concatenate([seen, np.arange(names.size, n_classes)])
    all_names = with_marker(names, parameters.unlabeled) if layer.unknown else names
    votes = tuple(replace(vote, classes=vote.classes.at(place, n_classes)) for vote in layer.votes)
    return replace(layer, classes=layer.classes.at(place, n_classes), names=all_names, votes=votes)
