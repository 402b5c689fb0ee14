"""Numbers and times as spreadsheets and people write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tnesi.data import open_data
from tnesi.encoders import TableEncoder, TextEncoder
from tnesi.encoders.column_kinds import recognize
from tnesi.encoders.columns import read_table
from tnesi.encoders.written_values import style_of, written_number, written_time


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("$1,234,567.5", ".", 1234567.5),
        ("-$3", ".", -3),
        ("$-3", ".", -3),
        ("(12.50)", ".", -12.5),
        ("12-", ".", -12),
        ("1 234 567", ".", 1234567),
        ("1\u2019234.5", ".", 1234.5),
        ("1.5E3", ".", 1500),
        ("1\u00a0234,5 €", ",", 1234.5),
        ("-1.234.567,89 EUR", ",", -1234567.89),
        (",5", ",", 0.5),
        ("45,5%", ",", 45.5),
        ("1,2,3", ".", None),
        ("12,34.5", ".", None),
        ("1,234 567", ".", None),
        ("(5", ".", None),
        ("", ".", None),
        ("A12", ".", None),
        ("12 Main Street", ".", None),
    ],
)
def test_numbers(text: str, decimal: str, number: float | None) -> None:
    assert written_number(text, decimal) == number


@pytest.mark.parametrize(
    ("text", "order", "time"),
    [
        ("3/4/2024", "mdy", "2024-03-04"),
        ("3/4/2024", "dmy", "2024-04-03"),
        ("3.4.24", "mdy", "2024-03-04"),
        ("31-12-99 23:59:58", "dmy", "1999-12-31T23:59:58"),
        ("Tue, 5 Mar 2024 12:05 AM", "dmy", "2024-03-05T00:05"),
        ("5. Mai 2024", "dmy", "2024-05-05"),
        ("March 5th, 2024", "mdy", "2024-03-05"),
        ("2024-03-05T10:00:00.25-05:00", "mdy", "2024-03-05T15:00:00.250"),
        ("30.2.2024", "dmy", None),
        ("13/13/2024", "dmy", None),
        ("1/2/2024 25:00", "dmy", None),
        ("1/2/2024 13:00 PM", "dmy", None),
        ("1/2/2024 or later", "dmy", None),
        ("9999-12-31 24:30", "dmy", None),
        ("", "dmy", None),
    ],
)
def test_times(text: str, order: str, time: str | None) -> None:
    found = written_time(text, order)
    assert found == (None if time is None else np.datetime64(time))


def test_many_spaces_take_no_time() -> None:
    assert written_number("-" + 20_000 * " " + "x", ".") is None
    assert written_number("(" + 20_000 * " " + "5 €)", ".") == -5


def test_the_style_is_that_of_most_texts() -> None:
    assert style_of(["1.234", "12,5", "3,25"], (".", ","), written_number) == ","
    assert style_of(["1,234", "12.5", 7, None], (".", ","), written_number) == "."
    assert style_of(["1,234"], (".", ","), written_number) == "."


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (["1.234,50 €", "999,00 €", "n/a"], "number", 1234.5),
        (["999", "1,250", "$2,000.75"], "number", 999.0),
        (["12 %", "7 %", "100 %"], "number", 12.0),
        (["31.12.2024", "01.02.2024"], "time", np.datetime64("2024-12-31")),
        (["12/31/24 5:30 PM", "1/2/24 6:00 AM"], "time", np.datetime64("2024-12-31T17:30")),
        (["12 Main St", "7 Oak Ave"], "category", "12 Main St"),
        (["10 marketing 2024", "11 mayor 2023"], "category", "10 marketing 2024"),
        (["0.567", "1.911", "0.123"] * 10 + ["1,5"], "number", 0.567),
        (["07.09.2024", "08.23.2024", "11.30.2024"], "time", np.datetime64("2024-07-09")),
        (["7. September 2024", "8. Okt. 2024"], "time", np.datetime64("2024-09-07")),
        (["0123", "0456"], "category", "0123"),
    ],
)
def test_columns(values: list[str], kind: str, first: object) -> None:
    found = recognize(read_table({"x": values}).columns[0])
    assert found.kind == kind
    assert found.column.values[0] == first


def test_the_style_belongs_to_the_encoder() -> None:
    """Text is parsed in the same way in later rows, also by an encoder from a file."""
    amounts = np.random.default_rng(0).uniform(0, 5_000, 200)
    written = [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in amounts]
    encoder = TableEncoder().fit({"amount": written, "when": ["03.04.2024"] * 100 + ["31.12.2023"] * 100})
    when = pd.to_datetime(["2024-04-03"] * 100 + ["2023-12-31"] * 100)
    plain = TableEncoder().fit({"amount": amounts.round(2), "when": when})
    later = {"amount": ["1.500", "1,5"], "when": ["03.04.2024", "31.12.2023"]}
    expected = plain.transform({"amount": [1500.0, 1.5], "when": pd.to_datetime(["2024-04-03", "2023-12-31"])})
    for one in (encoder, TableEncoder.from_state(encoder.get_state())):
        np.testing.assert_allclose(one.transform(later), expected, atol=1e-6)


def test_a_style_of_another_kind_is_refused() -> None:
    state = TableEncoder().fit({"amount": [f"{v},5" for v in range(60)]}).get_state()
    (column,) = (one for one in state["columns"] if one["kind"] == "number")
    column["style"] = "mdy"
    with pytest.raises(ValueError, match="style of a column"):
        TableEncoder.from_state(state)


def test_few_words_are_kept_though_most_documents_have_them(tmp_path: Path) -> None:
    texts = ["good day"] * 30 + ["bad night"] * 25
    assert TextEncoder().fit(texts).get_feature_names_out().tolist() == ["bad", "day", "good", "night"]
    assert TextEncoder(max_df=0.5).fit(texts).get_feature_names_out().tolist() == ["bad", "night"]
    long = [f"{text} {' '.join(f'w{(i * 7 + j) % 40}' for j in range(12))}" for i, text in enumerate(texts)]
    assert "good" not in TextEncoder().fit(long).get_feature_names_out()


def test_a_file_of_a_german_spreadsheet(tmp_path: Path) -> None:
    lines = [f"K{i};1.{i:03d},50;{i % 28 + 1:02d}.03.2024;{i // 10},{i % 10} %" for i in range(60)]
    text = "sep=;\r\nKunde;Betrag;Tag;Anteil\r\n" + "\r\n".join(lines)
    (tmp_path / "kunden.csv").write_bytes(text.encode("cp1252"))
    encoder = TableEncoder()
    with pytest.warns(UserWarning, match="'Kunde' looks like an identifier"):
        encoder.fit(open_data(tmp_path / "kunden.csv").rows.table)
    assert encoder.kinds_ == {"Kunde": "drop", "Betrag": "number", "Tag": "time", "Anteil": "number"}
