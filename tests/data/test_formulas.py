from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.data import read_labels
from tnesi.data.formulas import escape_formula, unescape_formulas

TEXTS = st.text(st.sampled_from("'=+-@\t\r\n1.5ea\uff1d "), max_size=6) | st.text(max_size=6)


@given(st.lists(TEXTS))
def test_every_text_is_restored(texts: list[str]) -> None:
    escaped = [escape_formula(text) for text in texts]
    assert unescape_formulas(escaped) == texts
    for text in escaped:
        assert not text.startswith(("=", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize(
    "text", ["=1", "+a", "-a", "@a", "\ta", "\ra", "=", "-", "--1", "-1-1", "+1 234", "-1\n", "'=1"]
)
def test_formulas_get_an_apostrophe(text: str) -> None:
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=1", "-1", "-2.5", "+3", "-1e-5", "-.5", "3", "a-b", " =1", "'", "'a", "'-1"])
def test_other_texts_stay(text: str) -> None:
    assert escape_formula(text) == text
    assert unescape_formulas([text]) == [text]


def test_labels_keep_their_names(tmp_path: Path) -> None:
    names = ["=x", "'=x", "+y", "cat", "-2", "'quoted'", "@z"]
    for header in ([], [["row", "label"]]):
        text = io.StringIO()
        csv.writer(text).writerows([*header, *([i, escape_formula(name)] for i, name in enumerate(names))])
        (tmp_path / "labels.csv").write_text(text.getvalue())
        assert read_labels(tmp_path / "labels.csv", len(names)).tolist() == names
    (tmp_path / "labels.txt").write_text("".join(f"{escape_formula(name)}\n" for name in names))
    assert read_labels(tmp_path / "labels.txt", len(names)).tolist() == names


def test_labels_that_were_not_escaped_are_never_joined(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("=x\n'=x\ncat\n")
    assert read_labels(tmp_path / "labels.txt", 3).tolist() == ["=x", "'=x", "cat"]
