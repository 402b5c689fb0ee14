"""Files of every format stay readable and compute what they computed when they were made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tnesi import SelfLabeling, SimpletronClassifier, load
from tnesi.model_file import read_header
from tnesi.model_file.header import FORMAT
from tnesi.paper import NeuralSimpletron, OnlineRule

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.tnesi"))
METHODS = {
    "v1-spreading": "spreading", "v1-clusters": "clusters", "v1-unknown": "clusters", "v1-supervised": "supervised",
    "v1-votes": "vote",
}  # fmt: skip
SETTINGS = {"v1-classifier": SelfLabeling(threshold=0.5), "v1-unknown": "auto", "v1-votes": "auto"}


def test_there_are_golden_files_of_every_format() -> None:
    formats = {read_header(path).format for path in GOLDEN}
    assert formats == {*range(1, FORMAT + 1)}
    spreading = read_header(GOLDEN[0].with_name("v1-spreading.tnesi"))
    assert "class_sizes" in spreading.shapes
    assert spreading.sharpness != 1
    votes = read_header(GOLDEN[0].with_name("v1-votes.tnesi"))
    assert {vote["transform"] for vote in votes.votes} == {None, "roots", "shares"}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files(path: Path) -> None:
    model, expected = load(path), json.loads(path.with_suffix(".json").read_text())
    rows = np.array(expected["rows"], dtype=np.float64)
    if isinstance(model, SimpletronClassifier) and not model.classes_.size:
        assert [suggestion.row for suggestion in model.suggest(5)] == expected["suggested"]
    elif isinstance(model, SimpletronClassifier | NeuralSimpletron):
        assert model.labeling_ == METHODS.get(path.stem, "self-labeling")
        if isinstance(model, NeuralSimpletron):
            assert model.recurrent
            assert model.rule == OnlineRule(max_iter=10, learning_rate=1.0)
        else:
            assert model.labeling == SETTINGS.get(path.stem, model.labeling_)
        if "confidence" in expected:
            np.testing.assert_allclose(model.label_confidence_, expected["confidence"], atol=1e-5)
            assert model.unknown_share_ == pytest.approx(expected["unknown"]) != 0
        assert model.predict(rows).tolist() == expected["labels"]
        np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], atol=1e-5)
    else:
        assert model.predict(rows).tolist() == expected["fields"]
        np.testing.assert_allclose(model.score_samples(rows), expected["scores"], atol=1e-3)
