"""Which encoder suits which data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import sparse
from sklearn.base import clone

from tnesi import PoissonMixture, make_classifier
from tnesi.data import open_data
from tnesi.encoders import ImageEncoder, TableEncoder, TextEncoder, VectorEncoder, encoder_for

RNG = np.random.default_rng(0)
LONG = "The boat left the harbor, as always, long before the sun was up."


@pytest.mark.parametrize(
    ("given", "encoder"),
    [
        (np.zeros((5, 28, 28)), ImageEncoder),
        (np.zeros((5, 28, 28, 3), np.uint8), ImageEncoder),
        (RNG.normal(size=(20, 384)), VectorEncoder),
        (RNG.normal(size=(20, 5)), TableEncoder),
        (RNG.poisson(1, (20, 384)), type(None)),
        (sparse.csr_array(RNG.poisson(0.1, (20, 384))), type(None)),
        ([LONG, "short"], TextEncoder),
        (np.array([LONG, LONG], object), TextEncoder),
        (pd.Series([LONG, None]), TextEncoder),
        (pd.Series([[1.0, -2.0] * 40, [2.0, 3.0] * 40]), VectorEncoder),
        (pd.DataFrame({"text": [LONG, LONG]}), TextEncoder),
        (pd.DataFrame({"age": [3, 4], "job": ["a", "b"]}), TableEncoder),
        (pd.DataFrame({"age": [3.0, None]}), TableEncoder),
        (pd.DataFrame({"mass": [4100, 3700, 2], "length": [45, 39, 40]}), TableEncoder),
        (pd.DataFrame(RNG.poisson(3, (30, 80))).add_prefix("word"), type(None)),
    ],
    ids=str,
)
def test_the_encoder_that_suits(given: Any, encoder: type[Any]) -> None:
    assert type(encoder_for(given)) is encoder
    assert type(encoder_for(open_data(given))) is encoder


def test_files_are_looked_into(tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "a.txt", format="png")
    (tmp_path / "b.png").write_text(LONG)
    assert type(encoder_for([tmp_path / "a.txt"])) is ImageEncoder
    assert type(encoder_for([tmp_path / "b.png"])) is TextEncoder
    assert type(encoder_for(str(tmp_path / "a.txt"))) is ImageEncoder


def test_classifiers_are_pipelines() -> None:
    mixture = PoissonMixture(7)
    clf = make_classifier("text", encoder=TextEncoder(min_df=3), mixture=mixture, n_mixtures=2)
    assert list(clf.named_steps) == ["encoder", "classifier"]
    assert clf["encoder"].min_df == 3
    assert clf["classifier"].mixture is mixture
    assert clone(clf).get_params()["classifier__n_mixtures"] == 2
    assert make_classifier("counts").named_steps["encoder"] == "passthrough"
    with pytest.raises(ValueError, match="kind='photo': pass one of 'images', 'text', 'table', 'vectors', 'counts'"):
        make_classifier("photo")  # type: ignore[arg-type]
