"""Numbers and times as people and spreadsheets write them: "1.234,50 €", "(1,200)", "45 %", "31.12.2024 17:30".

A text alone may be ambiguous: "1,234" is 1234 with a decimal point, and 1.234 with a decimal comma; "3/4/2024" is in
March or in April. A column therefore has a style, the one in which most of its texts make sense.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tnesi.types import Array

NUMBER_STYLES = (".", ",")
"""The decimal separator; the first one wins where both suit."""
TIME_STYLES = ("mdy", "dmy")
"""Month or day first; the first one wins where both suit, the last one if there are dates with dots."""
_LOOKED_AT = 1000
_CENTURY = 69
"""Years of two digits from this one on are of the last century."""

_CURRENCY = r"(?:[$€£¥₹₩₽]|US\$|USD|EUR|GBP|CHF|JPY|kr\.?|zł)"
_SPACE = " \u00a0\u2009\u202f"


def _number(decimal: str, group: str) -> re.Pattern[str]:
    digits = rf"[1-9]\d{{0,2}}(?:(?P<group>[{group}'\u2019{_SPACE}])\d{{3}})(?:(?P=group)\d{{3}})*"
    amount = rf"(?:(?:{digits}|\d+)(?:[{decimal}]\d*)?|[{decimal}]\d+)(?:E[+-]?\d+)?"
    # each run of spaces belongs to what follows it: otherwise many spaces take cubic time
    before = rf"(?P<minus>[-+\u2212(]?)\s*(?:{_CURRENCY}\s*)?(?:(?P<inner>[-\u2212])\s*)?"
    after = rf"(?:\s*(?:{_CURRENCY}|%))?\s*"
    return re.compile(rf"{before}(?P<amount>{amount}){after}(?P<trailing>-?)(?P<end>\)?)", re.IGNORECASE)


_NUMBERS = {".": _number(".", ","), ",": _number(",", ".")}

_MONTHS = {
    name: 1 + number
    for number, names in enumerate(
        (
            "jan january januar",
            "feb february februar",
            "mar march mär märz mrz",
            "apr april",
            "may mai",
            "jun june juni",
            "jul july juli",
            "aug august",
            "sep sept september",
            "oct october okt oktober",
            "nov november",
            "dec december dez dezember",
        )
    )
    for name in names.split()
}
_NAMED = r"(?:[a-zä]{2,9}\.?,?\s+)?"  # the day of the week
_DATES = (
    re.compile(r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})"),
    re.compile(r"(?P<first>\d{1,2})(?P<sign>[-/.])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4}|\d{2})"),
    re.compile(rf"{_NAMED}(?P<day>\d{{1,2}})[-.\s]+(?P<name>[a-zä]{{3,9}})\.?[-,\s]+(?P<year>\d{{4}}|\d{{2}})", re.I),
    re.compile(rf"{_NAMED}(?P<name>[a-zä]{{3,9}})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})", re.I),
)
_DOTTED = re.compile(r"\s*\d{1,2}\.\d{1,2}\.")
_CLOCK = re.compile(
    r"(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,6})\d*)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)


def time_styles(values: Sequence[Any] | Array) -> Sequence[str]:
    """Return the styles of times in the order that suits a column: dates with dots usually have the day first."""
    return (
        TIME_STYLES[::-1] if any(isinstance(value, str) and _DOTTED.match(value) for value in values) else TIME_STYLES
    )


def style_of(values: Sequence[Any] | Array, styles: Sequence[str], read: Callable[[str, str], object | None]) -> str:
    """Return the style in which most texts can be read, the first of several.

    Examples
    --------
    >>> style_of(["1,234", "12,5"], NUMBER_STYLES, written_number)
    ','
    >>> style_of(["3/4/2024", "31/4/2024", "30/4/2024"], TIME_STYLES, written_time)
    'dmy'
    """
    texts = [value for value in values[:: max(1, len(values) // _LOOKED_AT)] if isinstance(value, str)]
    return max(styles, key=lambda style: sum(read(text, style) is not None for text in texts))


def written_number(text: str, decimal: str) -> float | None:
    """Return the number that a text stands for; percentages are not divided by 100.

    Examples
    --------
    >>> [written_number(text, ".") for text in ("$1,234.50", "(1,200)", "45 %", "1 234", "1,23", "twelve")]
    [1234.5, -1200.0, 45.0, 1234.0, None, None]
    >>> written_number("-1.234,50 €", ",")
    -1234.5
    """
    found = _NUMBERS[decimal].fullmatch(text.strip())
    if found is None or (found["minus"] == "(") != bool(found["end"]):
        return None
    amount = re.sub(rf"['\u2019{_SPACE}{',' if decimal == '.' else '.'}]", "", found["amount"]).replace(decimal, ".")
    negative = found["minus"] in tuple("-\u2212(") or bool(found["inner"]) or bool(found["trailing"])
    return -float(amount) if negative else float(amount)


def written_time(text: str, order: str) -> np.datetime64 | None:
    """Return the time that a text stands for, in UTC if it has a time zone.

    Examples
    --------
    >>> [str(written_time(text, "dmy"))[:16] for text in ("31.12.2024", "3/4/24 5:30 PM", "Mar 3, 2024")]
    ['2024-12-31T00:00', '2024-04-03T17:30', '2024-03-03T00:00']
    >>> written_time("2024-12-31T01:00:00+02:00", "dmy"), written_time("31/12/2024", "mdy")
    (np.datetime64('2024-12-30T23:00:00.000000'), None)
    """
    text = text.strip()
    found = next((match for date in _DATES if (match := date.match(text))), None)
    if found is None:
        return None
    clock = _CLOCK.fullmatch(text, found.end())
    if found.end() < len(text) and clock is None:
        return None
    try:
        day = dt.datetime(*_date(found, order), tzinfo=dt.UTC)
        return np.datetime64((day + _time(clock)).replace(tzinfo=None), "us")
    except (ValueError, OverflowError):
        return None


def _date(found: re.Match[str], order: str) -> tuple[int, int, int]:
    """Return year, month and day; may raise ValueError."""
    parts = found.groupdict()
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 1900 if year >= _CENTURY else 2000
    if "name" in parts:
        month = _MONTHS.get(parts["name"].lower(), 0)
        return year, month, int(parts["day"])
    if "first" in parts:
        first, second = int(parts["first"]), int(parts["second"])
        return (year, second, first) if order == "dmy" else (year, first, second)
    return year, int(parts["month"]), int(parts["day"])


def _time(clock: re.Match[str] | None) -> dt.timedelta:
    """Return the time since midnight in UTC."""
    if clock is None:
        return dt.timedelta()
    hour, minute, second = int(clock["hour"]), int(clock["minute"]), int(clock["second"] or 0)
    if clock["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("no hour of half a day")
        hour = hour % 12 + 12 * (clock["half"][0] in "pP")
    if hour > 24 or minute > 59 or second > 60:
        raise ValueError("no time of the day")
    micro = int((clock["part"] or "0").ljust(6, "0"))
    since = dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro)
    zone = clock["zone"] or ""
    if zone[:1] in ("+", "-"):
        offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        return since - offset if zone[0] == "+" else since + offset
    return since
