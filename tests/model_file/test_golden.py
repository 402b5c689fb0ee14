"""Files of every format stay readable, with what they computed when they were made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tnesi import SimpletronClassifier, load
from tnesi.model_file import read_header
from tnesi.model_file.header import FORMAT

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.tnesi"))
METHODS = {"v1-soft": "soft", "v1-cluster": "cluster", "v1-unknown": "cluster"}


def test_there_are_golden_files_of_every_format() -> None:
    formats = {read_header(path).format for path in GOLDEN}
    assert formats == {*range(1, FORMAT + 1)}
    soft = read_header(GOLDEN[0].with_name("v1-soft.tnesi"))
    assert "class_sizes" in soft.shapes
    assert soft.sharpness != 1


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files(path: Path) -> None:
    model, expected = load(path), json.loads(path.with_suffix(".json").read_text())
    rows = np.array(expected["rows"], dtype=np.float64)
    if isinstance(model, SimpletronClassifier) and not model.classes_.size:
        assert [suggestion.row for suggestion in model.suggest(5)] == expected["suggested"]
    elif isinstance(model, SimpletronClassifier):
        assert model.label_method_ == METHODS.get(path.stem, "hebbian")
        assert (model.label_method == "hebbian") == (path.stem not in METHODS)
        if "confidence" in expected:
            np.testing.assert_allclose(model.label_confidence_, expected["confidence"], atol=1e-5)
            assert model.unknown_share_ == pytest.approx(expected["unknown"]) != 0
        assert model.predict(rows).tolist() == expected["labels"]
        np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], atol=1e-5)
    else:
        assert model.predict(rows).tolist() == expected["fields"]
        np.testing.assert_allclose(model.score_samples(rows), expected["scores"], atol=1e-3)
