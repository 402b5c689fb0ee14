from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.report import plot_fields, plot_rows

Digits = tuple[np.ndarray, np.ndarray]


def fitted(X: np.ndarray, y: np.ndarray) -> SimpletronClassifier:
    return SimpletronClassifier(PoissonMixture(60, row_sum=180, max_iter=2, tol=0), random_state=0).fit(X, y)


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize("n_classes", [2, 10, 20, 52])
def test_each_field_has_its_classes_beside_it(digits: Digits, n_classes: int, tmp_path: Path) -> None:
    X = digits[0]
    clf = fitted(X, np.arange(len(X)) % n_classes)
    figure = plot_fields(clf, n_fields=20)
    images = figure.axes[0].get_images()
    assert len(images) == 40
    assert {image.get_array().shape[:2] for image in images} == {(8, 8), (n_classes, 1)}
    named = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    if n_classes <= 20:
        assert named == [str(k) for k in range(n_classes)]
    else:
        assert named == []
        assert len(texts(figure)) == 20
    figure.savefig(tmp_path / "fields.png")
    assert (tmp_path / "fields.png").read_bytes().startswith(b"\x89PNG")


def test_the_column_shows_the_class_and_fields_are_ordered_by_it(digits: Digits) -> None:
    X, y = digits
    figure = plot_fields(fitted(X, 5 * y + np.arange(len(y)) % 5), n_fields=30)  # 50 classes: shades of gray
    columns = [i.get_array()[:, 0] for i in figure.axes[0].get_images() if i.get_array().shape[:2] == (50, 1)]
    darkest = [int(np.argmin(column.min(axis=1))) for column in columns]
    assert darkest == sorted(darkest)
    assert len(set(darkest)) > 5


def test_columns_are_as_certain_as_predictions(digits: Digits) -> None:
    """Distributions spread from few labels are flat until they are sharpened like predictions."""
    X, y = digits
    one_each = np.full(len(y), -1)
    first = [int(np.flatnonzero(y == k)[0]) for k in range(10)]
    one_each[first] = y[first]
    clf = SimpletronClassifier(
        PoissonMixture(60, row_sum=180, max_iter=10, tol=0), random_state=0, labeling="spreading"
    ).fit(X, one_each)
    assert clf.model_.layer.classes.sharpness > 5
    images = plot_fields(clf, n_fields=60).axes[0].get_images()
    color = np.array([np.ptp(i.get_array()) for i in images if i.get_array().shape[:2] == (10, 1)])
    assert np.median(color) > 0.13  # over 20 seeds 0.45 +- 0.06; not sharpened, it is 0.094


def test_more_fields_than_there_are(digits: Digits) -> None:
    clf = fitted(*digits)
    reached = int(np.sum(clf.class_weights_.sum(axis=0) > 0))
    assert len(plot_fields(clf, n_fields=10_000).axes[0].get_images()) == 2 * reached


def test_wide_profiles_are_drawn_quickly(tmp_path: Path) -> None:
    rows = np.zeros((10, 61_188))
    rows[:, 7] = 1
    figure = plot_rows(rows)
    figure.savefig(tmp_path / "rows.png")
    assert all(len(patch.get_path()) < 1000 for patch in figure.axes[0].patches)


def test_a_mixture_has_no_classes(digits: Digits) -> None:
    mixture = PoissonMixture(30, row_sum=180, max_iter=2, tol=0, random_state=0).fit(digits[0])
    figure = plot_fields(mixture, n_fields=12)
    assert len(figure.axes[0].get_images()) == 12
    assert not figure.legends


def test_fields_of_a_committee_are_those_of_all_its_mixtures(digits: Digits) -> None:
    clf = SimpletronClassifier(PoissonMixture(20, row_sum=180, max_iter=2, tol=0), n_mixtures=3, random_state=0).fit(
        *digits
    )
    images = [i.get_array() for i in plot_fields(clf, n_fields=60).axes[0].get_images()]
    drawn = {image.tobytes() for image in images if image.shape == (8, 8)}
    own = [{(w - 1).reshape(8, 8).tobytes() for w in mixture.means_} for mixture in clf.mixtures_]
    reached = int(np.sum(clf.class_weights_.sum(axis=0) > 0))
    assert sum(len(drawn & fields) for fields in own) == len(drawn) == reached
    assert all(drawn & fields for fields in own)


def test_shapes(digits: Digits) -> None:
    X, y = digits
    with pytest.raises(ValueError, match="does not fit 64 features"):
        plot_fields(fitted(X, y), shape=(7, 9))
    wide = plot_fields(fitted(X, y), shape=(4, 16), n_fields=3)
    assert wide.axes[0].get_images()[0].get_array().shape == (4, 16)
    profiles = plot_fields(fitted(X[:, :50] + 1, y), n_fields=7)
    assert {image.get_array().shape[:2] for image in profiles.axes[0].get_images()} == {(10, 1)}
    assert len(profiles.axes[0].patches) == 14  # a profile and the frame of a column for each


def test_class_names_are_text_not_formulas(digits: Digits, tmp_path: Path) -> None:
    X, y = digits
    names = np.array(["$\\frac{", "<b>", "\x00"])[y % 3]
    plot_fields(fitted(X, names), n_fields=4).savefig(tmp_path / "fields.svg")
    assert "<b>" not in (tmp_path / "fields.svg").read_text()


def test_rows(digits: Digits) -> None:
    X = digits[0]
    images = plot_rows(X[:25], n_columns=10, titles=range(25))
    assert len(images.axes[0].get_images()) == 25
    assert texts(images) == [str(i) for i in range(25)]
    np.testing.assert_array_equal(images.axes[0].get_images()[3].get_array(), X[3].reshape(8, 8))
    assert len(plot_rows(X[:6, :50]).axes[0].get_images()) == 0
    assert len(plot_rows(X[0]).axes[0].get_images()) == 1
    assert plot_rows(np.empty((0, 64))).axes[0].get_images() == []
    with pytest.raises(ValueError, match="does not fit"):
        plot_rows(X, shape=(3, 3))


def test_without_matplotlib(digits: Digits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'tnesi\[plot\]'"):
        plot_rows(digits[0][:2])


@pytest.mark.parametrize("of_classes", [False, True])
def test_the_choice_of_fields_is_not_biased(digits: Digits, of_classes: bool) -> None:
    """Every field is drawn about equally often, wherever it is in memory."""
    X, y = digits
    model = fitted(X, y)
    if not of_classes:
        model = model.mixture_  # type: ignore[assignment]
    means = model.means_ if isinstance(model, PoissonMixture) else model.mixture_.means_
    count = np.zeros(len(means), int)
    for seed in range(6):
        images = plot_fields(model, n_fields=20, random_state=seed).axes[0].get_images()
        for image in images:
            if image.get_array().shape[:2] == (8, 8):
                shades = np.asarray(image.get_array(), float).reshape(-1)
                likeness = [abs(np.corrcoef(shades, mean)[0, 1]) for mean in means]
                count[int(np.argmax(likeness))] += 1
    assert count.sum() == 6 * 20
    quarters = count.reshape(4, -1).sum(axis=1)
    assert quarters.min() > 15  # 30 expected, with a standard deviation of 5
