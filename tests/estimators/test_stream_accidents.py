"""Streams after Ctrl-C, with unusual weights, and with new classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier, load, save
from tnesi.data import open_data
from tnesi.execution import Local
from tnesi.labeling import second_layer
from tnesi.prediction import evaluate
from tnesi.report.labels import class_shares


def few(y: Any, n_classes: int = 10, per_class: int = 5) -> Any:
    label = np.full(len(y), -1)
    for k in range(n_classes):
        label[np.flatnonzero(y == k)[:per_class]] = k
    return label


def interrupted(clf: SimpletronClassifier, X: Any, where: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise KeyboardInterrupt while a stream learns its classes."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, name, stop)
        with pytest.raises(KeyboardInterrupt):
            clf.predict(X)


@pytest.mark.parametrize(("where", "name"), [(second_layer, "vote"), (SimpletronClassifier, "_keep")])
def test_ctrl_c_in_the_first_prediction_loses_nothing(
    digits: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, where: Any, name: str
) -> None:
    X, y = digits
    clf, other = (
        SimpletronClassifier(PoissonMixture(60), random_state=0).partial_fit(
            X[:600], few(y[:600], 7), classes=np.arange(10)
        )
        for _ in range(2)
    )
    interrupted(clf, X[:5], where, name, monkeypatch)
    np.testing.assert_array_equal(clf.classes_, np.arange(10))
    np.testing.assert_array_equal(clf.predict_proba(X), other.predict_proba(X))
    clf.partial_fit(X[600:700])
    other.partial_fit(X[600:700])
    np.testing.assert_array_equal(clf.predict_proba(X), other.predict_proba(X))


def test_ctrl_c_late_in_fit_labels_leaves_the_old_labels(
    digits: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = digits
    clf = SimpletronClassifier(PoissonMixture(60), random_state=0).fit(X, few(y))
    before = clf.predict_proba(X)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tnesi.estimators.simpletron_classifier.learn_labels", stop)
        with pytest.raises(KeyboardInterrupt):
            clf.fit_labels(few(y, 5))
    assert len(clf.classes_) == len(clf.label_confidence_) == 10
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    assert clf.suggest(3)


def test_unknown_classes_are_met_in_the_first_prediction(digits: tuple[Any, Any]) -> None:
    X, y = digits
    clf = SimpletronClassifier(PoissonMixture(100), random_state=0, unknown_classes=4).partial_fit(
        X[:900], few(y[:900], 6)
    )
    assert set(clf.predict(X[900:])) <= {-1, 0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("given", [{"classes": np.arange(10)}, {"y": 7}])
def test_suggestions_before_there_are_two_classes(digits: tuple[Any, Any], given: Any) -> None:
    X, _ = digits
    if "y" in given:
        label = np.full(600, -1)
        label[3] = given["y"]
        given = {"y": label}
    assert len(SimpletronClassifier(PoissonMixture(60), random_state=0).partial_fit(X[:600], **given).suggest(5)) == 5


def test_rows_without_weight_are_counted(digits: tuple[Any, Any]) -> None:
    X, _ = digits
    weight = np.ones(600)
    weight[:300] = 0
    clf = SimpletronClassifier(PoissonMixture(60), random_state=0).partial_fit(X[:600], sample_weight=weight)
    assert clf.settle().kept_rows_.tolist() == list(range(300, 600))
    clf.partial_fit(X[600:700])
    assert clf.settle().kept_rows_.tolist() == list(range(300, 700))


def test_a_loaded_stream_names_the_same_rows(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = digits
    label = few(y[:900])
    clf = SimpletronClassifier(PoissonMixture(60), random_state=0, keep_rows=100).partial_fit(X[:900], label)
    save(clf, tmp_path / "stream.tnesi")
    loaded = load(tmp_path / "stream.tnesi")
    assert loaded.suggest(5) == clf.suggest(5)
    loaded.fit_labels(label)  # of all rows of the stream
    given = loaded.model_.label
    np.testing.assert_array_equal(loaded.transduction_[given >= 0], label[clf.kept_rows_][given >= 0])


def test_weights_mean_the_same_in_all_batches(digits: tuple[Any, Any]) -> None:
    X, _ = digits
    light = np.full(100, 0.01)
    stream = PoissonMixture(60, random_state=0).partial_fit(X[:600])
    before = stream._stream.stepwise.weight_seen
    stream.partial_fit(X[600:700], sample_weight=light)
    assert stream._stream.stepwise.weight_seen == pytest.approx(before + 1)


def test_a_callback_that_fails_leaves_what_was_learned_consistent(digits: tuple[Any, Any]) -> None:
    X, _ = digits
    mixture = PoissonMixture(60, random_state=0).partial_fit(X[:600])

    def fail(record: dict[str, Any]) -> None:
        raise RuntimeError("of the callback")

    with pytest.raises(RuntimeError, match="of the callback"):
        mixture.set_params(execution=Local(callback=fail)).partial_fit(X[600:700])
    assert mixture.n_iter_ == mixture.learned_.n_iter == 2
    assert mixture.n_samples_seen_ == 700


def test_attributes_during_the_first_fit(digits: tuple[Any, Any]) -> None:
    """There are no classes yet, and reading them is not an error."""
    X, y = digits
    found = []
    run = Local(callback=lambda record: found.append(hasattr(clf, "mixtures_") or hasattr(clf, "model_")))
    clf = SimpletronClassifier(PoissonMixture(60, max_iter=1, tol=0, execution=run), random_state=0)
    clf.fit(X, few(y))
    assert found
    assert not any(found)


def test_a_stream_with_classes_but_no_labels_can_be_saved(digits: tuple[Any, Any], tmp_path: Path) -> None:
    X, _ = digits
    clf = SimpletronClassifier(PoissonMixture(60), random_state=0).partial_fit(X[:600], classes=[0, 1])
    save(clf, tmp_path / "stream.tnesi")
    assert load(tmp_path / "stream.tnesi").classes_.size == 0


def test_a_stream_can_be_evaluated(digits: tuple[Any, Any]) -> None:
    X, y = digits
    clf = SimpletronClassifier(PoissonMixture(60), random_state=0).partial_fit(X[:900], few(y[:900], 6))
    *_, last = evaluate(clf, open_data(X[900:], labels=y[900:]))
    assert last.n_rows == len(X) - 900
    assert class_shares(clf.partial_fit(X[900:1000])) is not None
