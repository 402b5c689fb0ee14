from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tnesi import SimpletronClassifier
from tnesi.report import plot_fields


def test_picture(digits: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = digits
    clf = SimpletronClassifier(40, norm=180, max_iter=2, tol=0, random_state=0).fit(X, y)
    figure = plot_fields(clf, n_fields=20)
    assert len(figure.axes) == 40
    figure.savefig(tmp_path / "fields.png")
    assert (tmp_path / "fields.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="does not fit 64 features"):
        plot_fields(clf, shape=(7, 9))
    few = SimpletronClassifier(40, norm=180, max_iter=2, tol=0).fit(X[:, :50] + 1, y)
    with pytest.raises(ValueError, match=r"not a square image: pass shape"):
        plot_fields(few)
