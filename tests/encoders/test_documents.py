"""Documents in any encoding, from files, lists and columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tnesi.encoders.documents import DecodingReport, read_documents


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_bytes("Grüße".encode(encoding))
    report = DecodingReport("utf-8")
    assert list(read_documents([path, b"plain"], report)) == ["Grüße", "plain"]
    assert report.undecodable == ([0] if encoding == "cp1252" else [])


def test_missing_documents_are_empty() -> None:
    assert list(read_documents(pd.Series(["a", None, np.nan, pd.NA], dtype=object), DecodingReport("utf-8"))) == [
        "a",
        "",
        "",
        "",
    ]


def test_message() -> None:
    report = DecodingReport("utf-8")
    assert list(read_documents([b"\xe9", b"a", b"\xe8"], report)) == ["é", "a", "è"]
    assert report.message() == (
        "2 of 3 documents are not valid utf-8 (first: document 0) and were read as Windows-1252: "
        "set `encoding` if they use another one."
    )
