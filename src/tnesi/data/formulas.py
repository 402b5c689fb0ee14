"""Escape text that a spreadsheet would run as a formula.

Spreadsheets may treat text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break as a formula. A leading
apostrophe makes it plain text, as OWASP recommends ("CSV injection"). Numbers such as -2.5 are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["escape_formula", "unescape_formulas"]

_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""The last four are the full-width forms of the first four, which some spreadsheets treat alike."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def escape_formula(text: str) -> str:
    """Return text with a leading apostrophe if it might be a formula.

    Escaped text is escaped again, so that :func:`unescape_formulas` restores it exactly.

    Examples
    --------
    >>> escape_formula("=1+2"), escape_formula("'=1+2"), escape_formula("-2.5"), escape_formula("cat")
    ("'=1+2", "''=1+2", '-2.5', 'cat')
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def unescape_formulas(texts: Sequence[str]) -> list[str]:
    """Undo `escape_formula` for all texts of a column.

    If any of them is an unescaped formula, the column was not escaped and is returned unchanged.

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
