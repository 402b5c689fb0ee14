"""Words of any script."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.encoders.words import WordAnalyzer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat's mat, 1,200 x 3rd!", ["the", "cat", "mat", "200", "3rd"]),
        ("l\u2019été à Zürich", ["été", "zürich"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("東 a", ["東"]),
        ("iPhoneを買った", ["iphone", "を買", "買っ", "った"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("\uff21\uff22\uff23 \ufb01ne", ["abc", "fine"]),
        ("naïve ASCII", ["naïve", "ascii"]),
        ("", []),
        ("\ud800 … 🙂", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert WordAnalyzer()(text) == words


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    """Words contain no spaces, case is ignored, and n-grams consist of neighbors."""
    words = WordAnalyzer()(text)
    assert all(word and not any(character.isspace() for character in word) for word in words)
    pairs = WordAnalyzer(2, 2)(text)
    assert pairs == [f"{a} {b}" for a, b in pairwise(words)]
    assert WordAnalyzer(1, 2)(text) == words + pairs


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_plain_text_takes_the_same_way_as_other_text(text: str) -> None:
    """The fast path for ASCII changes nothing."""
    assert WordAnalyzer()(text) == WordAnalyzer()(text + " ß")[: len(WordAnalyzer()(text))]
