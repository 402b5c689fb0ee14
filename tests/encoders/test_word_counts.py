"""Document frequencies in constant memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from tnesi.encoders.word_counts import HashedCounts, WordCounts, bucket_of


def test_rare_words_are_forgotten() -> None:
    counts = WordCounts(most_words=10)
    for i in range(200):
        counts.add([["frequent", f"once{i}"]])
        assert len(counts.frequencies) <= 21
    assert counts.frequencies["frequent"] == 200
    assert counts.choose(2, 200, None) == ["frequent"]


@given(st.text(min_size=1, max_size=12), st.integers(1, 5_000))
def test_buckets_are_those_of_scikit_learn(word: str, n_features: int) -> None:
    word = word.encode("utf-8", "ignore").decode() or "a"
    vectorizer = HashingVectorizer(analyzer=str.split, n_features=n_features, alternate_sign=False, norm=None)
    vectorizer.set_params(analyzer=lambda text: [text])
    assert vectorizer.transform([word]).indices.tolist() == [bucket_of(word, n_features)]


def test_the_most_frequent_word_names_its_bucket() -> None:
    counts = HashedCounts(1)
    counts.add([["rare", "often"], ["often"], ["often", "seldom"], []])
    counts.add([["often"]])
    assert counts.words == ["often"]
    assert counts.frequencies.tolist() == [4]
    assert (counts.n_documents, counts.n_empty) == (5, 1)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5), max_size=20), st.integers(0, 20))
def test_blocks_give_the_same_as_the_whole(documents: list[list[str]], cut: int) -> None:
    for new in (WordCounts, lambda: HashedCounts(3)):
        whole, parts = new(), new()
        whole.add(documents)
        parts.add(documents[:cut])
        parts.add(documents[cut:])
        assert whole.n_documents == parts.n_documents == len(documents)
        np.testing.assert_equal(parts.frequencies, whole.frequencies)
