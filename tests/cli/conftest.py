"""The command as a user runs it, with a small model and small data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tnesi.cli.app import app

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def run() -> Run:
    """Run the command; any exit code other than `code` fails the test and shows the output."""

    def call(*words: Any, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words])
        unexpected = result.exception is not None and not isinstance(result.exception, SystemExit)
        assert not unexpected, repr(result.exception)
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture(scope="session")
def run_json(run: Run) -> Callable[..., Any]:
    """Run the command with --json; return its output, which must be exactly one JSON object."""
    return lambda *words, code=0: json.loads(run(*words, "--json", code=code).stdout)


@pytest.fixture(scope="session")
def model(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model") / "digits.tnesi"
    run("fit", "digits", "--encoder", "none", "--labels-per-class", 10, "-o", place, "--quiet")
    return place


@pytest.fixture(scope="session")
def table(digits: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits as CSV with a header and a label column in which every third label is missing."""
    X, y = digits
    place = tmp_path_factory.mktemp("table") / "digits.csv"
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine, the last"])
    lines = [",".join([*(f"p{i}" for i in range(64)), "kind"])]
    for i in range(600):
        name = "" if i % 3 == 0 else f'"{names[y[i]]}"'
        lines.append(",".join([*map(str, X[i].tolist()), name]))
    place.write_text("\n".join(lines) + "\n")
    return place
