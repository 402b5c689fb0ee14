"""In how many documents each word occurs, counted over a stream in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from sklearn.utils import murmurhash3_32

from tnesi.types import Array

MOST_WORDS = 1_000_000


@dataclass
class WordCounts:
    """Document frequencies of words. Beyond `most_words` the rarest are forgotten.

    Examples
    --------
    >>> counts = WordCounts()
    >>> counts.add([["a", "b"], ["b"], []])
    >>> counts.frequencies["b"], counts.n_documents, counts.n_empty
    (2, 3, 1)
    """

    most_words: int = MOST_WORDS
    frequencies: Counter[str] = field(default_factory=Counter)
    n_documents: int = 0
    n_empty: int = 0

    def add(self, documents: Iterable[list[str]]) -> None:
        for words in documents:
            self.n_documents += 1
            self.n_empty += not words
            self.frequencies.update(set(words))
            if len(self.frequencies) > 2 * self.most_words:
                self.frequencies = Counter(dict(self.frequencies.most_common(self.most_words)))

    def choose(self, at_least: float, at_most: float, max_words: int | None) -> list[str]:
        """Return the words whose frequencies are within bounds, the most frequent ones, in alphabetical order."""
        within = [(-n, word) for word, n in self.frequencies.items() if at_least <= n <= at_most]
        return sorted(word for _, word in sorted(within)[:max_words])


@dataclass
class HashedCounts:
    """Document frequencies of buckets of words, and a word that stands for each bucket.

    The word is that of a majority vote (Boyer and Moore): if one word makes up more than half of the occurrences in its
    bucket, it is this one.
    """

    n_features: int
    frequencies: Array = field(init=False)
    words: list[str] = field(init=False)
    _lead: Array = field(init=False)
    n_documents: int = 0
    n_empty: int = 0

    def __post_init__(self) -> None:
        self.frequencies = np.zeros(self.n_features, np.int64)
        self.words = [""] * self.n_features
        self._lead = np.zeros(self.n_features, np.int64)

    def add(self, documents: Iterable[list[str]]) -> None:
        for words in documents:
            self.n_documents += 1
            self.n_empty += not words
            distinct = sorted(set(words))
            buckets = [bucket_of(word, self.n_features) for word in distinct]
            self.frequencies[list(set(buckets))] += 1
            for word, bucket in zip(distinct, buckets, strict=True):
                if self.words[bucket] == word:
                    self._lead[bucket] += 1
                elif self._lead[bucket] == 0:
                    self.words[bucket], self._lead[bucket] = word, 1
                else:
                    self._lead[bucket] -= 1


def bucket_of(word: str, n_features: int) -> int:
    """Return the feature that scikit-learn's `HashingVectorizer` gives a word."""
    return int(abs(int(murmurhash3_32(word.encode("utf-8"), 0))) % n_features)
