"""Values and rows that other ones must not displace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tnesi.data import DataError, open_data


def test_an_object_does_not_overwrite_a_column(tmp_path: Path) -> None:
    place = tmp_path / "rows.json"
    place.write_text(json.dumps([{"a.b": 1, "a": {"b": 2}}, {"a.b": 3, "a": {"b": 4}}]))
    with pytest.raises(DataError, match=r"two values named 'a\.b'"):
        open_data(place)


def test_a_blank_line_below_the_delimiter_is_skipped(tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    place.write_bytes(b"sep=;\r\n\r\na;b\r\n1;2\r\n3;4\r\n")
    data = open_data(place)
    assert data.rows.feature_names == ["a", "b"]
    assert next(iter(data.rows.items())).to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
