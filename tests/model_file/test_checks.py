"""Every defect of a model file has its own error."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from tnesi import PoissonMixture, SelfLabeling, SimpletronClassifier, load, save
from tnesi.model.classes import FieldClasses
from tnesi.model.classifier_model import Vote
from tnesi.model.linear_classes import TRANSFORMS, LinearClasses
from tnesi.model_file import ModelFileError, read_header

SMALL: dict[str, Any] = {
    "truncation": 3, "row_sum": 20, "max_iter": 2, "tol": 0, "random_state": 0,
}  # fmt: skip
Damage = Callable[[dict[str, Any], dict[str, Any]], Any]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    rows, names = rng.random((24, 6)), np.array(["a", "b", "c", "-1"])[[0, 1, 2] * 4 + [-1] * 12]
    clf = SimpletronClassifier(PoissonMixture(8, **SMALL), labeling=SelfLabeling(max_iter=2))
    path = tmp_path_factory.mktemp("sound") / "model.tnesi"
    save(clf.fit(rows, names, sample_weight=rng.random(24) + 0.1), path, image_shape=(2, 3))
    return path


def test_undamaged(sound: Path, tmp_path: Path, damaged: Any) -> None:
    assert load(damaged(sound, tmp_path, lambda header, arrays: None)).predict(np.ones((1, 6))).shape == (1,)


HEADER: dict[str, tuple[Damage, str]] = {
    "newer": (lambda h, a: h.update(format=2), "of a newer tnesi"),
    "newer, with unknown entries": (lambda h, a: h.update(format=2, x=1), "pip install --upgrade tnesi"),
    "no further mixtures": (lambda h, a: h.pop("further_mixtures"), "'further_mixtures'"),
    "no format": (lambda h, a: h.pop("format"), "no format version"),
    "format that is no number": (lambda h, a: h.update(format=True), "no format version"),
    "lacking entry": (lambda h, a: h.pop("search"), "'search'"),
    "unknown entry": (lambda h, a: h.update(color="red"), "'color'"),
    "kind": (lambda h, a: h.update(kind="tree"), "kind in the header is not a known kind of model"),
    "classes of a mixture": (lambda h, a: h.update(kind="mixture"), "only classifiers have classes"),
    "unknown parameter": (lambda h, a: h["parameters"].update(depth=3), "unknown parameters: 'depth'"),
    "callback": (lambda h, a: h["parameters"].update(execution="print"), "'execution'"),
    "parameter out of range": (
        lambda h, a: h["parameters"]["labeling"]["SelfLabeling"].update(threshold=2),
        "threshold=2",
    ),
    "parameter of the mixture": (lambda h, a: h["mixture_parameters"].update(max_iter="1"), "max_iter='1'"),
    "seed": (lambda h, a: h["parameters"].update(random_state=-1), "random_state=-1"),
    "verbose": (lambda h, a: h["parameters"].update(verbose="yes"), "verbose='yes'"),
    "list as a parameter": (lambda h, a: h["parameters"].update(unlabeled=[1]), "are not valid settings"),
    "mixture that is none": (lambda h, a: h["parameters"].update(mixture=3), "mixture=3 is not a mixture"),
    "mixture of another name": (lambda h, a: h["parameters"].update(mixture={"os.system": {}}), "not valid settings"),
    "settings as the mixture": (
        lambda h, a: h["parameters"].update(mixture=h["parameters"]["labeling"]),
        "is not a mixture",
    ),
    "mixture as the labeling": (lambda h, a: h["parameters"].update(labeling=h["parameters"]["mixture"]), "labeling="),
    "parameter of the nested mixture": (
        lambda h, a: h["parameters"]["mixture"]["PoissonMixture"].update(max_iter="1"),
        "max_iter='1'",
    ),
    "unknown parameter of the nested mixture": (
        lambda h, a: h["parameters"]["mixture"]["PoissonMixture"].update(execution=None),
        "'execution'",
    ),
    "unknown setting": (
        lambda h, a: h["parameters"]["labeling"]["SelfLabeling"].update(color=1),
        "are not valid settings",
    ),
    "missing setting": (
        lambda h, a: h["parameters"]["labeling"]["SelfLabeling"].pop("threshold"),
        "are not valid settings",
    ),
    "deep parameters": (lambda h, a: h["parameters"].update(mixture=[[[[[[[[[1]]]]]]]]]), "plain values"),
    "row_sum": (lambda h, a: h.update(row_sum=6), "row_sum 6 is out of range"),
    "infinite row_sum": (lambda h, a: h.update(row_sum={"nonfinite": "inf"}), "row_sum in the header"),
    "truncation": (lambda h, a: h.update(truncation=9), "truncation 9 is out of range"),
    "truncation of full search": (lambda h, a: h.update(search="full"), "truncation 3 is out of range"),
    "image shape": (lambda h, a: h.update(image_shape=[2**40, 2**40]), "image_shape"),
    "feature names": (lambda h, a: h.update(feature_names=["a"] * 5), "5 names do not match 6 features"),
    "history": (lambda h, a: h["history"][0].pop("free_energy"), "history"),
    "deep provenance": (lambda h, a: h.update(provenance=json.loads('{"a":' * 20 + "1" + "}" * 20)), "provenance"),
    "large integer": (lambda h, a: h.update(n_iter=2**64), "more than 64 bits"),
    "type of classes": (lambda h, a: h.update(class_dtype="|O"), "cannot be stored"),
    "classes of another type": (lambda h, a: h.update(class_dtype="<i8"), "classes are of type int64"),
    "long classes": (lambda h, a: h.update(class_dtype="<U99999999"), "characters"),
    "cut classes": (lambda h, a: h.update(classes=["aaa", "b", "c"]), "two or more"),
    "equal classes": (lambda h, a: h.update(classes=["a", "a", "c"]), "sorted and distinct"),
    "small classes": (lambda h, a: h.update(classes=[1, 2, 300], class_dtype="|u1"), "too large"),
}
ARRAYS: dict[str, tuple[Damage, str]] = {
    "lacking": (lambda h, a: a.pop("class_weights"), "'class_weights'"),
    "unknown": (lambda h, a: a.update(x=a["labels"]), "'x'"),
    "half of the training state": (lambda h, a: a.pop("labels"), "'labels'"),
    "row weights alone": (lambda h, a: [a.pop(n) for n in [*a] if n[0] == "a" or n == "labels"], "'row_weights'"),
    "shape": (lambda h, a: a.update(class_weights=a["class_weights"].T), "the shape .* does not match"),
    "dimensions": (lambda h, a: a.update(labels=a["labels"][:, None]), "the shape .* does not match"),
    "empty": (lambda h, a: a.update(weights=np.zeros((0, 6), np.float32)), "the shape .* does not match"),
    "starts of other rows": (lambda h, a: a.update(activity_starts=a["activity_starts"][1:]), "activity_starts"),
    "type": (lambda h, a: a.update(labels=a["labels"].astype(np.int64)), "labels is of type I64"),
    "NaN": (lambda h, a: a["weights"].__setitem__((0, 0), np.nan), "weights are at least 1"),
    "small weight": (lambda h, a: a["weights"].__setitem__((0, 0), 0.9), "weights are at least 1"),
    "infinite weight": (lambda h, a: a["weights"].__setitem__((0, 0), np.inf), "sums of weights"),
    "other weight": (lambda h, a: a["weights"].__setitem__((0, 0), 30), "sums of weights"),
    "other row_sum": (lambda h, a: h.update(row_sum=30), "weights sum to row_sum"),
    "negative class weight": (lambda h, a: a["class_weights"].__setitem__((0, 0), -1), "class_weights"),
    "infinite class weight": (lambda h, a: a["class_weights"].__setitem__((0, 0), np.inf), "class_weights"),
    "first start": (lambda h, a: a["activity_starts"].__setitem__(0, 1), "from the first to the last"),
    "descending starts": (lambda h, a: a["activity_starts"].__setitem__(3, 0), "ascend"),
    "no such field": (lambda h, a: a["activity_fields"].__setitem__(0, 8), "activity_fields"),
    "negative field": (lambda h, a: a["activity_fields"].__setitem__(0, -1), "activity_fields"),
    "activity": (lambda h, a: a["activity_values"].__setitem__(0, 1.5), "activities"),
    "no such class": (lambda h, a: a["labels"].__setitem__(0, 3), "labels name classes"),
    "class without labels": (lambda h, a: a["labels"].__setitem__(a["labels"] == 2, -1), "all classes"),
    "row weight": (lambda h, a: a["row_weights"].__setitem__(0, 0), "row_weights"),
}


@pytest.mark.parametrize("name", HEADER)
def test_header_is_checked(name: str, sound: Path, tmp_path: Path, damaged: Any) -> None:
    damage, message = HEADER[name]
    with pytest.raises(ModelFileError, match=message):
        load(damaged(sound, tmp_path, damage))


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_checked(name: str, sound: Path, tmp_path: Path, damaged: Any) -> None:
    damage, message = ARRAYS[name]
    with pytest.raises(ModelFileError, match=message):
        load(damaged(sound, tmp_path, damage))


def further(header: dict[str, Any], **changes: Any) -> None:
    header["further_mixtures"][0].update(changes)


MIXTURE = {"kind": "mixture", "classes": None, "class_dtype": None, "mixture_parameters": None, "labeling": ""}
COMMITTEE: dict[str, tuple[Damage, str]] = {
    "no list": (lambda h, a: h.update(further_mixtures=2), "a list of at most 999"),
    "too many": (lambda h, a: h.update(further_mixtures=h["further_mixtures"] * 500), "a list of at most 999"),
    "more than arrays": (lambda h, a: h.update(further_mixtures=h["further_mixtures"] * 400), "'weight_sums.10"),
    "fewer than arrays": (lambda h, a: h["further_mixtures"].pop(), "'weight_sums.2"),
    "recurrent": (lambda h, a: h.update(recurrent=True), "only a network can be recurrent"),
    "mixture": (lambda h, a: h.update(MIXTURE), "only a classifier has further_mixtures"),
    "no entry": (lambda h, a: h["further_mixtures"][1].pop("row_sum"), "a list of at most 999"),
    "unknown entry": (lambda h, a: further(h, color="red"), "a list of at most 999"),
    "entry of the model": (lambda h, a: further(h, kind="mixture"), "a list of at most 999"),
    "no parameters": (lambda h, a: further(h, mixture_parameters=None), "a list of at most 999"),
    "wrong parameters": (lambda h, a: h["further_mixtures"][1]["mixture_parameters"].update(tol=-1), "tol=-1"),
    "history": (lambda h, a: further(h, history=[{}]), "a list of at most 999"),
    "search": (lambda h, a: further(h, search="none"), "a list of at most 999"),
    "row_sum": (lambda h, a: further(h, row_sum=6), "row_sum 6 is out of range"),
    "other row_sum": (lambda h, a: further(h, row_sum=30), "weights sum to row_sum"),
    "truncation": (lambda h, a: further(h, truncation=9), "truncation 9 is out of range"),
    "lists": (lambda h, a: further(h, doubtful_below=1.0), "'lists.1'"),
    "array of the first": (lambda h, a: a.pop("weights"), "'weights'"),
    "array of another": (lambda h, a: a.pop("weights.2"), "'weights.2'"),
    "unknown number": (lambda h, a: a.update({"weights.3": a["weights"]}), "'weights.3'"),
    "number 0": (lambda h, a: a.update({"weights.0": a.pop("weights")}), "weights.0"),
    "number of another array": (lambda h, a: a.update({"labels.1": a["labels"]}), "'labels.1'"),
    "features": (lambda h, a: a.update({"weights.1": a["weights.1"][:, :5]}), "the shape .* does not match"),
    "fields": (lambda h, a: a.update({"weights.1": a["weights.1"][:5]}), "the shape .* does not match"),
    "class weights of one": (lambda h, a: a.update(class_weights=a["class_weights"][:, :8]), "the shape .* does not"),
    "type": (lambda h, a: a.update({"weights.1": a["weights.1"].astype(float)}), "weights.1 is of type F64"),
    "NaN": (lambda h, a: a["weights.2"].__setitem__((0, 0), np.nan), "weights are at least 1"),
    "sums": (lambda h, a: a["weight_sums.1"].__setitem__(0, 40), "sums of weights"),
    "no such field": (lambda h, a: a["activity_fields"].__setitem__(0, 24), "activity_fields"),
}


@pytest.fixture(scope="module")
def sound_committee(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    clf = SimpletronClassifier(PoissonMixture(8, **SMALL), n_mixtures=3, labeling=SelfLabeling(max_iter=2))
    path = tmp_path_factory.mktemp("sound") / "committee.tnesi"
    save(clf.fit(rng.random((24, 6)), [0, 1, 2] * 4 + [-1] * 12), path, image_shape=(2, 3))
    return path


@pytest.mark.parametrize("name", COMMITTEE)
def test_committees_are_checked(name: str, sound_committee: Path, tmp_path: Path, damaged: Any) -> None:
    damage, message = COMMITTEE[name]
    with pytest.raises(ModelFileError, match=message):
        load(damaged(sound_committee, tmp_path, damage))


LABELS: dict[str, tuple[Damage, str]] = {
    "no method": (lambda h, a: h.pop("labeling"), "'labeling'"),
    "unknown method": (lambda h, a: h.update(labeling="auto"), "labeling in the header is not a known method"),
    "method that is a list": (lambda h, a: h.update(labeling=["spreading"]), "a known method"),
    "unknown method as a parameter": (lambda h, a: h["parameters"].update(labeling="best"), "labeling='best'"),
    "parameters that exclude each other": (
        lambda h, a: h["parameters"].update(labeling="spreading"),
        "unknown_classes=2",
    ),
    "negative unknown classes": (lambda h, a: h["parameters"].update(unknown_classes=-1), "unknown_classes=-1"),
    "no sharpness": (lambda h, a: h.update(sharpness=None), "sharpness in the header is not a positive number"),
    "sharpness 0": (lambda h, a: h.update(sharpness=0), "a positive number"),
    "negative sharpness": (lambda h, a: h.update(sharpness=-1.0), "a positive number"),
    "infinite sharpness": (lambda h, a: h.update(sharpness={"nonfinite": "inf"}), "a positive number"),
    "true sharpness": (lambda h, a: h.update(sharpness=True), "a positive number"),
    "unknown as a number": (lambda h, a: h.update(unknown=1), "unknown in the header is not true or false"),
    "no unknown class": (lambda h, a: h.update(unknown=False), "sorted and distinct"),
    "unknown class that is another": (lambda h, a: h.update(classes=[0, 1, 2, 1]), "the unknown class differs"),
    "known classes in disorder": (lambda h, a: h.update(classes=[0, 2, 1, -1]), "sorted and distinct"),
    "labels of the unknown": (lambda h, a: a["labels"].__setitem__(0, 3), "labels name classes"),
    "class without labels": (lambda h, a: a["labels"].__setitem__(a["labels"] == 2, -1), "all classes"),
    "too few sizes": (lambda h, a: a.update(class_sizes=a["class_sizes"][1:]), "the shape .* does not match"),
    "sizes as a table": (lambda h, a: a.update(class_sizes=a["class_sizes"][:, None]), "the shape .* does not match"),
    "type of sizes": (lambda h, a: a.update(class_sizes=a["class_sizes"].astype(np.float32)), "class_sizes is of type"),
    "negative size": (lambda h, a: a.update(class_sizes=np.array([-0.5, 0.5, 0.5, 0.5])), "class_sizes are shares"),
    "NaN as a size": (lambda h, a: a["class_sizes"].__setitem__(0, np.nan), "class_sizes are shares"),
    "infinite size": (lambda h, a: a["class_sizes"].__setitem__(0, np.inf), "class_sizes are shares"),
    "sizes of more than all": (lambda h, a: a.update(class_sizes=2 * a["class_sizes"]), "class_sizes are shares"),
    "more rows than labels": (lambda h, a: a["present"].__setitem__(slice(None), True), "rows that are present"),
    "rows as numbers": (lambda h, a: a.update(present=a["present"].astype(np.int8)), "present is of type I8"),
    "rows without labels": (lambda h, a: [a.pop(n) for n in [*a] if n.startswith("activity")], "'activity_"),
    "no sizes at all": (lambda h, a: a.update(class_sizes=0 * a["class_sizes"]), "class_sizes are shares"),
}


@pytest.fixture(scope="module")
def sound_labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    clf = SimpletronClassifier(PoissonMixture(8, **SMALL), unknown_classes=2)
    path = tmp_path_factory.mktemp("sound") / "labels.tnesi"
    weight = np.where(np.arange(24) < 22, 1.0, 0.0)
    save(clf.fit(rng.random((24, 6)), [0, 1, 2] * 4 + [-1] * 12, weight), path, image_shape=(2, 3))
    return path


@pytest.mark.parametrize("name", LABELS)
def test_what_labeling_learns_is_checked(name: str, sound_labels: Path, tmp_path: Path, damaged: Any) -> None:
    damage, message = LABELS[name]
    with pytest.raises(ModelFileError, match=message):
        load(damaged(sound_labels, tmp_path, damage))


def vote(header: dict[str, Any], i: int, **changes: Any) -> None:
    header["votes"][i].update(changes)


VOTES: dict[str, tuple[Damage, str]] = {
    "no votes": (lambda h, a: h.pop("votes"), "'votes'"),
    "votes that are no list": (lambda h, a: h.update(votes=3), "a list of votes"),
    "a vote that is no object": (lambda h, a: h["votes"].append("logistic"), "a list of votes"),
    "no method": (lambda h, a: h["votes"][1].pop("method"), "a list of votes"),
    "unknown entry": (lambda h, a: vote(h, 1, color="red"), "a list of votes"),
    "unknown method": (lambda h, a: vote(h, 1, method="forest"), "a list of votes"),
    "method that is a list": (lambda h, a: vote(h, 1, method=["logistic"]), "a list of votes"),
    "share 0": (lambda h, a: vote(h, 1, share=0), "a list of votes"),
    "negative share": (lambda h, a: vote(h, 1, share=-0.3), "a list of votes"),
    "large share": (lambda h, a: vote(h, 1, share=1.3), "a list of votes"),
    "true share": (lambda h, a: vote(h, 1, share=True), "a list of votes"),
    "shares of more than all": (lambda h, a: vote(h, 1, share=0.4), "votes are shares of the whole"),
    "sharpness 0": (lambda h, a: vote(h, 0, sharpness=0), "a list of votes"),
    "infinite sharpness": (lambda h, a: vote(h, 0, sharpness={"nonfinite": "inf"}), "a list of votes"),
    "unknown transform": (lambda h, a: vote(h, 1, transform="logs"), "a list of votes"),
    "transform that is a list": (lambda h, a: vote(h, 1, transform=["roots"]), "a list of votes"),
    "transform of fields": (lambda h, a: vote(h, 0, transform="roots"), "'linear_"),
    "fields instead of features": (lambda h, a: vote(h, 1, transform=None), "'linear_"),
    "more than arrays": (lambda h, a: h["votes"].append(h["votes"][1]), "'linear_"),
    "fewer than arrays": (lambda h, a: h["votes"].pop(), "'linear_"),
    "vote_sharpness 0": (lambda h, a: h.update(vote_sharpness=0), "a positive number"),
    "no vote_sharpness": (lambda h, a: h.pop("vote_sharpness"), "'vote_sharpness'"),
    "accuracy": (lambda h, a: h.update(accuracy=1.5), "accuracy in the header is not a share"),
    "true accuracy": (lambda h, a: h.update(accuracy=True), "accuracy in the header is not a share"),
    "mixture": (lambda h, a: h.update(MIXTURE | {"votes": h["votes"]}), "only a classifier with labels"),
    "array without a number": (lambda h, a: a.update(vote_weights=a["vote_weights.0"]), "'vote_weights'"),
    "sizes of linear classes": (lambda h, a: a.update({"vote_sizes.1": a["vote_sizes.0"]}), "'vote_sizes.1'"),
    "lacking array": (lambda h, a: a.pop("linear_intercept.1"), "'linear_intercept.1'"),
    "shape": (lambda h, a: a.update({"linear_weights.1": a["linear_weights.1"].T}), "the shape .* does not match"),
    "other features": (lambda h, a: a.update({"linear_weights.1": a["linear_weights.1"][1:]}), "the shape .* does not"),
    "other fields": (lambda h, a: a.update({"vote_weights.0": a["vote_weights.0"][:, 1:]}), "the shape .* does not"),
    "other classes": (lambda h, a: a.update({"linear_intercept.1": a["linear_intercept.1"][1:]}), "the shape .* does"),
    "type": (lambda h, a: a.update({"linear_weights.1": a["linear_weights.1"].astype(float)}), "is of type F64"),
    "NaN": (lambda h, a: a["linear_weights.2"].__setitem__((0, 0), np.nan), "linear_weights.2 are at most"),
    "infinite": (lambda h, a: a["linear_intercept.2"].__setitem__(0, np.inf), "linear_intercept.2 are at most"),
    "large": (lambda h, a: a["linear_weights.1"].__setitem__((0, 0), -3e38), "linear_weights.1 are at most"),
    "negative": (lambda h, a: a["vote_weights.0"].__setitem__((0, 0), -1), "vote_weights.0 are not negative"),
    "sizes": (lambda h, a: a["vote_sizes.0"].__setitem__(0, 2), "vote_sizes.0 are shares"),
    "no probabilities": (lambda h, a: a.pop("inferred"), "'inferred'"),
    "probabilities of other rows": (lambda h, a: a.update(inferred=a["inferred"][1:]), "the shape .* does not match"),
    "probabilities of nothing": (lambda h, a: a["inferred"].__setitem__(0, 0), "probabilities sum to 1"),
    "NaN as a probability": (lambda h, a: a["inferred"].__setitem__((0, 0), np.nan), "probabilities sum to 1"),
}


@pytest.fixture(scope="module")
def voting() -> SimpletronClassifier:
    """Return a classifier in which fields and both kinds of features vote."""
    rng = np.random.default_rng(0)
    clf = SimpletronClassifier(PoissonMixture(8, **SMALL), labeling="spreading")
    model = clf.fit(rng.random((24, 6)), [0, 1, 2] * 4 + [-1] * 12).model_
    of_fields = FieldClasses.from_weights(rng.dirichlet(np.ones(8), 3), rng.dirichlet(np.ones(3)), 1.7)
    linear = [
        LinearClasses(kind, rng.normal(size=(6, 3)).astype(np.float32), rng.normal(size=3).astype(np.float32))
        for kind in TRANSFORMS
    ]
    votes = Vote("spreading", 0.5, of_fields), Vote("logistic", 0.3, linear[1]), Vote("leading", 0.2, linear[0])
    assert model.layer is not None
    layer = replace(model.layer, method="vote", votes=votes, sharpness=1.3, accuracy=0.9)
    inferred = rng.dirichlet(np.ones(3), 24).astype(np.float32)
    model = replace(model, layer=layer, inferred=inferred)
    return SimpletronClassifier.from_model(model, clf.mixtures_, {"labeling": "auto"})


@pytest.mark.parametrize("training", [True, False])
def test_votes_are_kept(voting: SimpletronClassifier, tmp_path: Path, training: bool) -> None:
    save(voting, tmp_path / "votes.tnesi", training=training)
    loaded, rows = load(tmp_path / "votes.tnesi"), np.random.default_rng(1).random((50, 6))
    assert loaded.votes_ == {"spreading": 0.5, "logistic": 0.3, "leading": 0.2}
    assert (loaded.labeling_, loaded.expected_accuracy_) == ("vote", 0.9)
    np.testing.assert_array_equal(loaded.predict_proba(rows), voting.predict_proba(rows))
    if training:
        np.testing.assert_array_equal(loaded.label_distributions_, voting.label_distributions_)
        np.testing.assert_array_equal(loaded.transduction_, voting.transduction_)


@pytest.mark.parametrize("name", VOTES)
def test_votes_are_checked(name: str, voting: SimpletronClassifier, tmp_path: Path, damaged: Any) -> None:
    save(voting, tmp_path / "votes.tnesi")
    damage, message = VOTES[name]
    with pytest.raises(ModelFileError, match=message):
        load(damaged(tmp_path / "votes.tnesi", tmp_path, damage))


@pytest.mark.parametrize("factor", [1e-300, 1, 1e300])
@pytest.mark.parametrize("weight", [0, 1e29, -1e29])
def test_extreme_votes_predict(
    voting: SimpletronClassifier, tmp_path: Path, damaged: Any, factor: float, weight: float
) -> None:
    def exaggerate(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        header.update(vote_sharpness=factor)
        vote(header, 0, sharpness=factor)
        for name in ("linear_weights.1", "linear_intercept.2"):
            arrays[name].flat[0] = weight

    save(voting, tmp_path / "votes.tnesi")
    loaded = load(damaged(tmp_path / "votes.tnesi", tmp_path, exaggerate))
    rows = np.vstack([np.zeros((1, 6)), np.random.default_rng(1).random((5, 6))])
    np.testing.assert_allclose(loaded.predict_proba(rows).sum(axis=1), 1)


WITHOUT_LABELS: dict[str, tuple[Damage, str]] = {
    "classes": (lambda h, a: h.update(classes=[0, 1]), "'class_weights'"),
    "recurrent": (lambda h, a: h.update(recurrent=True), "only a classifier with labels"),
    "method": (lambda h, a: h.update(labeling="spreading"), "only a classifier with labels"),
    "unknown": (lambda h, a: h.update(unknown=True), "only a classifier with labels"),
    "mixture": (lambda h, a: h.update(MIXTURE), "'activity_"),
    "type of classes": (lambda h, a: h.update(class_dtype="<U3"), "classes are of type"),
    "labels": (lambda h, a: a["labels"].__setitem__(0, 0), "labels name classes"),
    "no rows": (lambda h, a: [a.pop(n) for n in [*a] if n[0] == "a" or n == "labels"], "'activity_"),
    "class weights": (lambda h, a: a.update(class_weights=np.ones((1, 8), np.float32)), "'class_weights'"),
    "sizes": (lambda h, a: a.update(class_sizes=np.ones(1)), "'class_sizes'"),
    "no such field": (lambda h, a: a["activity_fields"].__setitem__(0, 8), "activity_fields"),
}


@pytest.mark.parametrize("name", WITHOUT_LABELS)
def test_classifiers_without_labels_are_checked(name: str, tmp_path: Path, damaged: Any) -> None:
    clf = SimpletronClassifier(PoissonMixture(8, **SMALL))
    clf.fit(np.random.default_rng(0).random((24, 6)), np.full(24, -1))
    save(clf, tmp_path / "m")
    assert load(damaged(tmp_path / "m", tmp_path, lambda h, a: None)).suggest(2)
    damage, message = WITHOUT_LABELS[name]
    with pytest.raises(ModelFileError, match=message):
        load(damaged(tmp_path / "m", tmp_path, damage))


@pytest.mark.parametrize("sharpness", [1e-300, 1, 1e300])
def test_probabilities_of_any_sharpness(sharpness: float, sound_labels: Path, tmp_path: Path, damaged: Any) -> None:
    model = load(damaged(sound_labels, tmp_path, lambda h, a: h.update(sharpness=sharpness)))
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 6))).sum(axis=1), 1)


def test_classes_of_one_size(sound_labels: Path, tmp_path: Path, damaged: Any) -> None:
    model = load(damaged(sound_labels, tmp_path, lambda h, a: a.pop("class_sizes")))
    assert model.class_sizes_ is None
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 6))).sum(axis=1), 1)


def test_mixtures_of_a_committee_may_differ_in_size(sound_committee: Path, tmp_path: Path, damaged: Any) -> None:
    def smaller(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        for name in ("weights.1", "weight_sums.1"):
            arrays[name] = arrays[name][:5]
        arrays["class_weights"] = arrays["class_weights"][:, :21]
        for name in [name for name in arrays if name.startswith("activity") or name == "labels"]:
            del arrays[name]

    model = load(damaged(sound_committee, tmp_path, smaller))
    assert np.isfinite(model.predict_proba(np.ones((1, 6)))).all()
    assert [m.n_components_ for m in model.mixtures_] == [8, 5, 8]


def test_lists_are_checked(tmp_path: Path, damaged: Any) -> None:
    save(
        PoissonMixture(514, row_sum=20, max_iter=1, tol=0).fit(np.random.default_rng(0).random((600, 3))),
        tmp_path / "m",
    )
    with pytest.raises(ModelFileError, match="lists name fields"):
        load(damaged(tmp_path / "m", tmp_path, lambda h, a: a["lists"].__setitem__((0, 0), 514)))
    with pytest.raises(ModelFileError, match="'lists'"):
        load(damaged(tmp_path / "m", tmp_path, lambda h, a: h.update(doubtful_below=None)))


def test_a_parameter_that_came_later_has_its_default(sound: Path, tmp_path: Path, damaged: Any) -> None:
    def older(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        del header["parameters"]["keep_rows"], header["mixture_parameters"]["half_life"]
        del header["parameters"]["mixture"]["PoissonMixture"]["search"]

    model = load(damaged(sound, tmp_path, older))
    assert model.keep_rows == "auto"
    assert model.mixture_.half_life is None
    assert model.mixture.search == "neighbors"


@pytest.mark.parametrize("text", ["NaN", "1e999", "[" * 100_000, '{"a": 1, "a": 2}', "9" * 5000, "nothing", ""])
def test_hostile_json(text: str, sound: Path, tmp_path: Path, write_model: Any) -> None:
    with safe_open(sound, framework="np") as file:
        header, arrays = file.metadata()["tnesi"], {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    hostile = header.replace('"provenance": {}', f'"provenance": {{"a": {text}}}')
    assert hostile != header
    write_model(tmp_path / "hostile.tnesi", hostile, arrays)
    for read in (load, read_header):
        with pytest.raises(ModelFileError, match="damaged"):
            read(tmp_path / "hostile.tnesi")


@pytest.mark.parametrize("shape", [[2**31, 2**31], [10**12, 784], [0, 2**60], [], [1] * 100])
def test_shapes_that_promise_more_than_the_file_holds(shape: list[int], sound: Path, tmp_path: Path) -> None:
    data = sound.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    container = json.loads(data[8:end])
    container["weights"]["shape"] = shape
    header = json.dumps(container).encode()
    (tmp_path / "m.tnesi").write_bytes(len(header).to_bytes(8, "little") + header + data[end:])
    with pytest.raises(ModelFileError, match="damaged"):
        load(tmp_path / "m.tnesi")
