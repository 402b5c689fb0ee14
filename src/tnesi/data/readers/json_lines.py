"""JSON lines, an object on each, and lists of objects: columns of types that fit all of them.

Lines are read in constant memory, a list as a whole. Objects within objects become columns such as "user.age".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tnesi.data.optional import needed
from tnesi.data.readers.table_files import TableFile
from tnesi.data.readers.text_files import encoding_of, open_utf8
from tnesi.data.source import DataError, check_room, damaged

_BLOCK = 2**23
"""Bytes of lines that are read at a time; a longer line is read as a whole."""
_PARSED = 10
"""Bytes in memory per byte of a list."""


class JsonLines(TableFile):
    """A table in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path, self._encoding = path, encoding_of(path)
        if self._encoding == "cp1252":
            self.note = "the file is not in UTF-8 and was read as Windows-1252"
        with damaged(path), open_utf8(path, self._encoding) as file:
            self._is_list = file.read(2**10).lstrip()[:1] == b"["
        self._flat = True
        with damaged(path):
            if not self._survey():
                self._flat = False
                self._survey()

    def _survey(self) -> bool:
        """Find columns and types; return whether no value is an object, as is presumed."""
        types = needed("pyarrow", "reading JSON lines").types
        found: dict[str, Any] = {}
        self.n_rows = 0
        for lines, first in self._blocks():
            table = _read(lines, first, None)
            if self._flat and any(map(types.is_struct, table.schema.types)):
                return False
            self.n_rows += table.num_rows
            for name, kind in zip(table.column_names, table.schema.types, strict=True):
                found[name] = kind if name not in found else _common(found[name], kind)
        self.names, self.types = list(found), list(found.values())
        return True

    def batches(self, columns: Sequence[int]) -> Iterator[Any]:
        arrow = needed("pyarrow", "reading JSON lines")
        schema = arrow.schema([(self.names[i], self.types[i]) for i in columns])
        for lines, first in self._blocks():
            yield from _read(lines, first, schema).to_batches()

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        """Yield blocks of whole lines, and the number of the first line."""
        if self._is_list:
            yield _lines_of(self._items(), flat=self._flat), 1
            return
        first = 1
        with open_utf8(self.path, self._encoding) as file:
            while lines := file.read(_BLOCK):
                lines += file.readline()
                if lines.strip():
                    yield lines if self._flat else _lines_of(_rows(lines.decode(), first), flat=False), first
                first += lines.count(b"\n")

    def _items(self) -> list[dict[str, Any]]:
        """Return the objects of a list."""
        check_room(_PARSED * self.path.stat().st_size, f"the list in {self.path}")
        with open_utf8(self.path, self._encoding) as file:
            try:
                items = json.loads(file.read())
            except (ValueError, RecursionError) as error:
                raise DataError(f"{self.path} is not JSON ({error}): correct it") from error
        wrong = next((number for number, item in enumerate(items, 1) if not isinstance(item, dict)), None)
        if wrong is not None:
            raise DataError(f"{self.path}: item {wrong} of the list is not an object: write [{{...}}, {{...}}]")
        return list(items)


def _lines_of(rows: list[dict[str, Any]], *, flat: bool) -> bytes:
    """Return objects as lines; those within them are taken apart if they are not `flat`."""
    return "\n".join(json.dumps(row if flat else _flattened(row)) for row in rows).encode()


def _flattened(row: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the values of the objects within it.

    Examples
    --------
    >>> _flattened({"id": 7, "user": {"age": 31, "home": {"town": "Bonn"}}})
    {'id': 7, 'user.age': 31, 'user.home.town': 'Bonn'}
    """
    found = dict[str, Any]()
    for name, value in row.items():
        inner = (
            {f"{name}.{key}": each for key, each in _flattened(value).items()}
            if isinstance(value, dict)
            else {name: value}
        )
        if twice := found.keys() & inner.keys():
            raise DataError(f"an object has two values named {min(twice)!r}, one of them in an object within it")
        found |= inner
    return found


def _read(lines: bytes, first: int, schema: Any) -> Any:
    """Return lines as an Arrow table, with the columns of a schema if there is one."""
    arrow, reader = needed("pyarrow", "reading JSON lines"), needed("pyarrow.json", "reading JSON lines")
    how = None if schema is None else reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = reader.read_json(arrow.BufferReader(lines), reader.ReadOptions(block_size=len(lines) + 1), how)
    except arrow.ArrowInvalid:  # columns of several types, or damage that this names
        rows = _rows(lines.decode(), first)
        if schema is None:
            return arrow.table(_columns(rows))
        columns = [_typed([row.get(field.name) for row in rows], field.type) for field in schema]
        return arrow.table(columns, schema=schema)
    return table if schema is None else table.select(schema.names)


def _rows(text: str, first: int) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(text.split("\n"), first):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"line {number} is not JSON ({error}): correct it, or leave it out") from error
        if not isinstance(row, dict):
            raise DataError(f"line {number} is not a JSON object: write {{...}} on each line")
        rows.append(row)
    return rows


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of JSON lines; where types differ, all values become texts."""
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        kinds = Counter(float if type(v) is int else type(v) for v in values if v is not None)
        columns[name] = values if len(kinds) < 2 else _texts(values)
    return columns


def _typed(values: list[Any], kind: object) -> Any:
    """Return values as an Arrow column of the type that fits all of them."""
    arrow = needed("pyarrow", "reading JSON lines")
    if arrow.types.is_string(kind):
        return arrow.array(_texts(values), kind)
    if arrow.types.is_timestamp(kind):
        return arrow.array(values, arrow.string()).cast(kind)
    return arrow.array(values, kind)


def _texts(values: list[Any]) -> list[Any]:
    return [v if v is None or isinstance(v, str) else str(v) for v in values]


def _common(one: Any, other: Any) -> Any:
    """Return the type of a column that has one type in some lines and another in others: text, if nothing else."""
    arrow = needed("pyarrow", "reading JSON lines")
    types = arrow.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_list(one) and types.is_list(other):
        return arrow.list_(_common(one.value_type, other.value_type))
    if types.is_nested(one) and types.is_nested(other):  # which is left out, whatever it holds
        return one
    numbers = [types.is_integer(kind) or types.is_floating(kind) for kind in (one, other)]
    return arrow.float64() if all(numbers) else arrow.string()
