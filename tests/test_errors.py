"""Errors render parameters as their reader writes them, and leave other texts alone."""

from __future__ import annotations

import ast
import pickle
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import tnesi
from tnesi.data import DataError
from tnesi.errors import InvalidParameterError, TnesiError

SOURCES = sorted(Path(tnesi.__file__).parent.rglob("*.py"))


def test_braces_of_users_are_no_placeholders() -> None:
    error = DataError("{a}/{0.csv is empty", advice="remove {it")
    assert str(error) == error.text(lambda name, value: f"--{name}") == "{a}/{0.csv is empty: remove {it"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_values_may_have_braces() -> None:
    error = InvalidParameterError("{data} has {n} rows", data="{x}.csv", n=3, parameter="data", advice="pass {labels}")
    assert str(error) == "{x}.csv has 3 rows: pass labels"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert issubclass(InvalidParameterError, TnesiError)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_placeholders_have_values_or_a_parameter(path: Path) -> None:
    """Otherwise they would be printed as they are."""
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.endswith("Error"):
            given = {keyword.arg for keyword in call.keywords}
            assert not list(_placeholders(call)) or given - {"advice", "row"}, f"{path}, line {call.lineno}"


def _placeholders(call: ast.Call) -> Iterator[str]:
    for text in [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "advice")]:
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield from (name for _, name, *_ in string.Formatter().parse(text.value) if name is not None)
