"""Estimators show in a notebook what they have learned."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits
from sklearn.utils.fixes import parse_version

import tnesi
from tnesi import PoissonMixture, SimpletronClassifier

pytestmark = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"), reason="scikit-learn 1.7 introduced the hook"
)

X, TRUTH = (values[:400] for values in load_digits(return_X_y=True))
Y = np.where(np.arange(400) < 80, TRUTH, -1)


class Text(HTMLParser):
    """The text of a page, and the tags that it opens."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags = "", list[str]()
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


def learned(estimator: Any) -> str:
    """Return the part that follows scikit-learn's diagram."""
    page = estimator._repr_mimebundle_()["text/html"]
    assert isinstance(page, str)
    return page.partition('<div class="tnesi-learned"')[2]


def test_a_classifier_shows_its_classes() -> None:
    clf = SimpletronClassifier(PoissonMixture(60), random_state=0).fit(X, Y)
    page = Text(learned(clf))
    assert "60 fields of 64 features" in page.text
    assert "10 classes, learned by" in page.text
    assert f"Expected accuracy {100 * clf.expected_accuracy_:.0f} %" in page.text
    assert page.tags.count("tr") == 11
    assert page.tags.count("img") == 10
    assert f"{100 * clf.label_confidence_[0]:.0f} %" in page.text


def test_pictures_are_the_fields() -> None:
    image = pytest.importorskip("PIL.Image")
    mixture = PoissonMixture(5, random_state=0).fit(X)
    (data,) = re.findall(r"data:image/png;base64,([^\"]+)", learned(mixture))
    picture = np.asarray(image.open(io.BytesIO(base64.b64decode(data))))
    above = mixture.means_[0].reshape(8, 8) - 1
    np.testing.assert_array_equal(picture[:, :8], 255 - np.round(255 * above / above.max()))
    assert picture.shape == (8, 5 * 8 + 4)


def test_features_that_make_no_square_are_drawn_as_bars() -> None:
    page = learned(PoissonMixture(5, random_state=0).fit(X[:, :30]))
    assert "data:image/png" in page


def test_names_of_classes_are_escaped() -> None:
    names = np.array(["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b", *"defghij"], dtype=object)
    y = np.where(Y >= 0, names[Y], None)
    clf = SimpletronClassifier(PoissonMixture(40), random_state=0).fit(X, y)
    assert "<script>alert" not in clf._repr_mimebundle_()["text/html"]
    page = learned(clf)
    assert "<script" not in page
    assert "onerror=alert(1)>" not in page
    assert page.count("<img") == Text(page).tags.count("img") <= 10
    assert names[0] in Text(page).text


def test_what_is_not_learned_is_not_shown(tmp_path: Any) -> None:
    assert learned(SimpletronClassifier()) == learned(PoissonMixture()) == ""
    stream = SimpletronClassifier(PoissonMixture(30), random_state=0).partial_fit(X, Y)
    assert learned(stream) == ""  # reading an attribute never learns
    assert "10 classes" in learned(stream.settle())
    unlabeled = SimpletronClassifier(PoissonMixture(30), random_state=0).fit(X, np.full(400, -1))
    assert "No labels yet" in learned(unlabeled)
    tnesi.save(unlabeled.fit_labels(Y), tmp_path / "model.tnesi", training=False)
    assert "confidence" not in learned(tnesi.load(tmp_path / "model.tnesi"))
