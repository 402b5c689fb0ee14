"""Errors with parts: what is wrong, which parameter or row it concerns, and what to do about it.

Texts about a parameter may refer to parameters as ``{row_sum}`` or ``{row_sum:auto}``. `str` spells these as in Python
(``row_sum``, ``row_sum='auto'``); the command line passes its own spelling to `TnesiError.text` (``--row-sum auto``).
Other texts are taken as they are, usually f-strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["DoubtfulResultWarning", "InvalidDataError", "InvalidParameterError", "TnesiError", "python_spelling"]

Spelling = Callable[[str, str], str]


def python_spelling(name: str, value: str) -> str:
    """Return a parameter, with a value unless that is empty, as it is written in Python.

    Examples
    --------
    >>> python_spelling("row_sum", "auto"), python_spelling("resume", "True"), python_spelling("tol", "")
    ("row_sum='auto'", 'resume=True', 'tol')
    """
    if not value:
        return name
    return f"{name}={value}" if value in ("True", "False", "None") or value[0].isdigit() else f"{name}={value!r}"


class DoubtfulResultWarning(UserWarning):
    """A classifier was learned, but there are signs that many of its predictions are wrong."""


class TnesiError(Exception):
    """An error of this package.

    Parameters
    ----------
    message : str
        What is wrong.
    parameter : str or None
        Name of the parameter that it concerns.
    row : int or None
        Number of the row that it concerns, from 0.
    advice : str
        What to do.
    **values : object
        Values for ``{placeholders}`` in `message` and `advice`. Placeholders without one are parameters. With neither
        `parameter` nor values, there are no placeholders: texts may contain braces.

    Examples
    --------
    >>> error = InvalidParameterError(
    ...     "{row_sum} must exceed the {n} features", n=64, parameter="row_sum", advice="pass {row_sum:auto}"
    ... )
    >>> print(error)
    row_sum must exceed the 64 features: pass row_sum='auto'
    >>> print(error.text(lambda name, value: f"--{name.replace('_', '-')} {value}".strip()))
    --row-sum must exceed the 64 features: pass --row-sum auto
    """

    def __init__(
        self, message: str, *, parameter: str | None = None, row: int | None = None, advice: str = "", **values: Any
    ) -> None:
        super().__init__(message)
        self.message, self.parameter, self.row, self.advice, self.values = message, parameter, row, advice, values

    def text(self, spell: Spelling | None = None) -> str:
        """Return message and advice with parameters spelled by `spell(name, value)`, by default as in Python."""
        parts = [part for part in (self.message, self.advice) if part]
        if self.values or self.parameter:
            names = _Names(self.values, spell or python_spelling)
            parts = [part.format_map(names) for part in parts]
        return ": ".join(parts)

    def __str__(self) -> str:
        return self.text()

    def __reduce__(self) -> Any:
        return _again, (type(self), self.message, self.parameter, self.row, self.advice, self.values)


class InvalidParameterError(TnesiError, ValueError):
    """A parameter has a value with which nothing can be learned."""


class InvalidDataError(TnesiError, ValueError):
    """Rows or labels that cannot be used."""


class _Parameter:
    def __init__(self, name: str, spell: Spelling) -> None:
        self._name, self._spell = name, spell

    def __format__(self, value: str) -> str:
        return self._spell(self._name, value)


class _Names(dict[str, Any]):
    def __init__(self, values: dict[str, Any], spell: Spelling) -> None:
        super().__init__(values)
        self._spell = spell

    def __missing__(self, name: str) -> _Parameter:
        return _Parameter(name, self._spell)


def _again(
    kind: type[TnesiError], message: str, parameter: str | None, row: int | None, advice: str, values: dict[str, Any]
) -> TnesiError:
    return kind(message, parameter=parameter, row=row, advice=advice, **values)
