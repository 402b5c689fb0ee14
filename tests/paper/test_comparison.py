"""The comparison with scikit-learn behind ``tnesi demo``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tnesi import SimpletronClassifier
from tnesi.data import few_labels, load_named
from tnesi.paper.comparison import OURS, compare


def test_every_method_gets_the_same_draws() -> None:
    data = load_named("digits")
    rows = compare(data, [2, 4], draws=2)
    assert [(row["method"], row["labels_per_class"]) for row in rows] == [
        (method, k)
        for method in (OURS, "LogisticRegression", "SelfTrainingClassifier", "LabelSpreading")
        for k in (2, 4)
    ]
    assert all(row["ours"]["runs"] == 2 and 0 < row["ours"]["mean"] < 90 for row in rows)  # chance is 90 %
    fits = [
        SimpletronClassifier(random_state=0).fit(data.X, few_labels(data.y, 4, np.random.default_rng([draw, 4])))
        for draw in range(2)
    ]
    assert data.test is not None
    expected = np.mean([100 * (1 - fit.score(data.test.X, data.test.y)) for fit in fits])
    assert rows[1]["ours"]["mean"] == pytest.approx(expected)


def test_data_without_a_test_part_are_refused() -> None:
    with pytest.raises(ValueError, match="needs labels and a test part"):
        compare(replace(load_named("digits"), test=None))
