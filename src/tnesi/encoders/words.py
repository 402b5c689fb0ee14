"""Words of any script.

Words are runs of letters, digits and the marks that belong to them (vowel signs of Devanagari, accents). Scripts that
do not separate words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give pairs of neighboring characters instead, as in
most search engines.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_UNSEPARATED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3040-\u30ff"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"
)


@lru_cache(1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a word, of a run in an unseparated script, and of a character with its marks."""
    marks = "".join(chr(c) for c in range(0x10000) if unicodedata.category(chr(c)) in ("Mn", "Mc"))
    run = re.compile(f"[{_UNSEPARATED}][{_UNSEPARATED}{marks}]*")
    return re.compile(rf"[\w{marks}]+"), run, re.compile(f"[^{marks}][{marks}]*")


_ASCII_WORD = re.compile(r"\w\w+", re.ASCII)


@dataclass(frozen=True)
class WordAnalyzer:
    """Split a text into words and sequences of them, in lower case. Words of one letter are left out.

    Parameters
    ----------
    shortest, longest : int
        Lengths of the sequences, in words.

    Examples
    --------
    >>> WordAnalyzer()("The cat's mat")
    ['the', 'cat', 'mat']
    >>> WordAnalyzer()("東京タワー is 333 m")
    ['東京', '京タ', 'タワ', 'ワー', 'is', '333']
    >>> WordAnalyzer(1, 2)("New York")
    ['new', 'york', 'new york']
    """

    shortest: int = 1
    longest: int = 1

    def __call__(self, text: str) -> list[str]:
        words = _words(text)
        found = words if self.shortest == 1 else []
        for n in range(max(2, self.shortest), self.longest + 1):
            found = found + [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
        return found


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    word_pattern, run_pattern, character_pattern = _patterns()
    text = unicodedata.normalize("NFKC", text).lower()
    words = word_pattern.findall(text)
    if run_pattern.search(text) is None:
        return [word for word in words if len(word) > 1]
    found = []
    for word in words:
        at = 0
        for run in run_pattern.finditer(word):
            characters = character_pattern.findall(run.group())
            found += _if_long(word[at : run.start()])
            found += [a + b for a, b in pairwise(characters)] or characters
            at = run.end()
        found += _if_long(word[at:])
    return found


def _if_long(word: str) -> list[str]:
    return [word] if len(word) > 1 else []
