"""The state that follows from a log of answers, including undo."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Container
from dataclasses import dataclass, field
from typing import NamedTuple

from tnesi.data.label_values import INTEGER, MISSING

LONGEST_NAME = 100
MOST_CLASSES = 300
_KEYS = "123456789"
_JOINED = re.compile("(?<=[^\\x00-\\x7f\\u200c\\u200d])[\\u200c\\u200d](?=[^\\x00-\\x7f\\u200c\\u200d])")
"""Joiners between letters of some scripts and between parts of an emoji."""


class RefusedError(ValueError):
    """An answer that is refused; the message is shown to the user."""


class Entry(NamedTuple):
    """A line of the log.

    Attributes
    ----------
    id : int
    kind : {"label", "skip", "clear", "rename", "undo"}
    row : int or None
        None for "rename"; of "undo", the row of the entry that is undone.
    label : str or None
        Of "label"; the new name, of "rename".
    old : str or None
        The name before, of "rename".
    undone : int or None
        The entry that "undo" reverts.
    client, request : str
        The browser tab that sent it, and a request identifier for retries; "" for none.
    time : str
        ISO 8601, UTC.
    """

    id: int
    kind: str
    row: int | None = None
    label: str | None = None
    old: str | None = None
    undone: int | None = None
    client: str = ""
    request: str = ""
    time: str = ""


class ClassOf(NamedTuple):
    """A class with labels, as the page shows it."""

    name: str
    key: str | None
    color: int
    labels: int


@dataclass(frozen=True)
class Done(Container[int]):
    """Rows that need no question: labeled or skipped."""

    labels: dict[int, str]
    skips: frozenset[int]

    def __contains__(self, row: object) -> bool:
        return row in self.labels or row in self.skips


class View(NamedTuple):
    """An immutable snapshot of the answers.

    Attributes
    ----------
    last : int
        Number of the newest entry, 0 if there is none.
    labels : dict of str
        The label of each row that has one.
    skips : frozenset of int
        Rows that were skipped and have no label.
    classes : tuple of ClassOf
        Classes with labels, in order of appearance.
    can_undo : bool
    """

    last: int
    labels: dict[int, str]
    skips: frozenset[int]
    classes: tuple[ClassOf, ...]
    can_undo: bool

    @property
    def done(self) -> Done:
        return Done(self.labels, self.skips)


@dataclass
class Answers:
    """The state after all entries so far.

    Attributes
    ----------
    entries : dict of Entry
        All, by their number, in order.
    labels : dict of str
        The label of each row that has one.
    skips : set of int
        Rows that were skipped and have no label.
    """

    entries: dict[int, Entry] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    skips: set[int] = field(default_factory=set)
    requests: dict[str, int] = field(default_factory=dict)
    _undone: set[int] = field(default_factory=set)
    _of_row: defaultdict[int, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    _of_client: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _order: list[int] = field(default_factory=list)
    _renames: list[Entry] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _colors: dict[str, int] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _last_colors: dict[str, int] = field(default_factory=dict)
    _last_keys: dict[str, str] = field(default_factory=dict)

    def names(self) -> set[str]:
        """Return the classes that have labels."""
        return {name for name, n in self._counts.items() if n}

    def view(self) -> View:
        """Return a snapshot of the current state."""
        found = [ClassOf(name, self._keys.get(name), self._colors[name], n) for name, n in self._counts.items() if n]
        classes = tuple(sorted(found, key=lambda one: one.color))
        last, can_undo = next(reversed(self.entries), 0), self.to_undo("") is not None
        return View(last, dict(self.labels), frozenset(self.skips), classes, can_undo)

    def add(self, entry: Entry) -> None:
        """Apply an entry, which must be newer than all others."""
        self.entries[entry.id] = entry
        if entry.request:
            self.requests[entry.request] = entry.id
        if entry.kind == "undo":
            assert entry.undone is not None
            self._take_back(self.entries[entry.undone])
        else:
            self._order.append(entry.id)
            self._of_client[entry.client].append(entry.id)
            if entry.kind == "rename":
                self._rename(entry)
            else:
                assert entry.row is not None
                self._of_row[entry.row].append(entry)
                self._settle(entry.row)
        self._give_keys()

    def to_undo(self, client: str) -> Entry | None:
        """Return the entry that this client would undo: its own last one, or else the last one of all clients."""
        for stack in (self._of_client[client], self._order):
            while stack and stack[-1] in self._undone:
                stack.pop()
            if stack:
                return self.entries[stack[-1]]
        return None

    def history(self, row: int) -> list[Entry]:
        """Return all entries about a row."""
        return [entry for entry in self.entries.values() if entry.row == row]

    def _take_back(self, entry: Entry) -> None:
        self._undone.add(entry.id)
        if entry.kind == "rename":
            self._renames.remove(entry)
            for row in self._of_row:
                self._settle(row)
        else:
            assert entry.row is not None
            self._of_row[entry.row].remove(entry)
            self._settle(entry.row)

    def _rename(self, entry: Entry) -> None:
        assert entry.old is not None
        assert entry.label is not None
        self._renames.append(entry)
        if entry.label not in self._colors:  # the same class under another name
            self._colors[entry.label] = self._colors[entry.old]
            if entry.old in self._keys and _own_key(entry.old) is None:
                self._keys[entry.label] = self._keys.pop(entry.old)
        for row in [row for row, label in self.labels.items() if label == entry.old]:
            self._settle(row)

    def _settle(self, row: int) -> None:
        """Recompute the state of a row."""
        before = self.labels.pop(row, None)
        self.skips.discard(row)
        last = next((e for e in reversed(self._of_row[row]) if e.kind in ("label", "clear")), None)
        if last is not None and last.label is not None:
            self.labels[row] = self._named_now(last)
        elif any(e.kind == "skip" for e in self._of_row[row]):
            self.skips.add(row)
        after = self.labels.get(row)
        if before != after:
            self._counts.subtract([before] if before is not None else [])
            self._counts.update([after] if after is not None else [])

    def _named_now(self, entry: Entry) -> str:
        name = entry.label or ""
        for rename in self._renames:
            if rename.id > entry.id and rename.old == name:
                name = rename.label or ""
        return name

    def _give_keys(self) -> None:
        """Assign colors and keys to new classes and free those of classes without labels.

        A class that reappears after an undo gets its previous color and key if they are still free.
        """
        existing = [name for name, n in self._counts.items() if n > 0]
        self._keys = {name: key for name, key in self._keys.items() if self._counts[name] > 0}
        self._colors = {name: color for name, color in self._colors.items() if self._counts[name] > 0}
        for name in existing:
            if name not in self._colors:
                taken = set(self._colors.values())
                colors = (self._last_colors.get(name, 0), *range(len(taken) + 1))
                self._colors[name] = next(color for color in colors if color not in taken)
            if name not in self._keys:
                used = set(self._keys.values())
                keys = (_own_key(name), self._last_keys.get(name), *_KEYS)
                wanted = [key for key in keys if key is not None and key not in used]
                if wanted:
                    self._keys[name] = wanted[0]
        self._last_colors |= self._colors
        self._last_keys |= self._keys


def _own_key(name: str) -> str | None:
    return name if len(name) == 1 and name.isascii() and name.isalnum() else None


def class_name(text: str) -> str:
    """Return the normalized name of a class, or refuse it.

    Examples
    --------
    >>> class_name("  cat ")
    'cat'
    """
    name = unicodedata.normalize("NFC", text).strip()
    if not name:
        raise RefusedError("The name of the class is empty")
    if len(name) > LONGEST_NAME:
        raise RefusedError(f"The name of the class has {len(name)} characters; the maximum is {LONGEST_NAME}")
    if not _JOINED.sub("", name).isprintable():
        raise RefusedError("The name of the class has a character that cannot be printed: type it again")
    if name in MISSING or name == "-1":
        raise RefusedError(f"{name!r} marks missing labels in tables: use another name")
    if (number := INTEGER.fullmatch(name)) and str(int(number[1])) != name:
        raise RefusedError(f"{name!r} and {int(number[1])} are the same in tables: use another name")
    return name
