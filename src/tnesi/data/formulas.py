"""Texts that a spreadsheet would run as formulas: escaped in tables that are written, restored in labels that are read.

A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or an end of line may be a formula to a spreadsheet. An
apostrophe in front makes it plain text, as OWASP recommends ("CSV injection"). Numbers such as -2.5 stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["escape_formula", "unescape_formulas"]

_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""The last four are the full-width forms of the first ones, which some spreadsheets treat alike."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def escape_formula(text: str) -> str:
    """Return a text with an apostrophe in front if it might be a formula.

    An escaped text is escaped once more, so that :func:`unescape_formulas` restores every text.

    Examples
    --------
    >>> escape_formula("=1+2"), escape_formula("'=1+2"), escape_formula("-2.5"), escape_formula("cat")
    ("'=1+2", "''=1+2", '-2.5', 'cat')
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def unescape_formulas(texts: Sequence[str]) -> list[str]:
    """Restore the texts of a table if they were escaped.

    They were not if one of them is a formula that is not escaped: then apostrophes belong to the texts.

    Examples
    --------
    >>> unescape_formulas(["'=1+2", "cat"])
    ['=1+2', 'cat']
    >>> unescape_formulas(["'=1+2", "=1+2"])
    ["'=1+2", '=1+2']
    """
    if any(_is_formula(text) for text in texts):
        return list(texts)
    return [text[1:] if text[:1] == "'" and _is_formula(text.lstrip("'")) else text for text in texts]


def _is_formula(text: str) -> bool:
    return text.startswith(_STARTS) and not _NUMBER.fullmatch(text)
