"""What new users have works at the first try, without an option: on the command line, and from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner, Result

from tnesi import load, make_classifier, save
from tnesi.cli.app import app
from tnesi.data import DataError, few_labels, open_data
from tnesi.encoders import ImageEncoder, TableEncoder, TextEncoder, VectorEncoder, encoder_for

KINDS = {ImageEncoder: "images", TextEncoder: "text", TableEncoder: "table", VectorEncoder: "vectors"}
WORDS = {
    "sea": ["boat", "wave", "fish", "salt", "harbor", "sail", "tide", "crew", "net", "gull"],
    "hill": ["rock", "goat", "snow", "path", "peak", "trail", "cabin", "valley", "pine", "cloud"],
}


def tnesi(*words: Any, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def on_the_command_line(
    folder: Path, data: Path, *options: Any, new: Path | None = None, code: int = 0, encoder: str
) -> float:
    """Fit, predict, evaluate and info, none with an option that is not needed; return the error in percent."""
    model, predictions = folder / "model.tnesi", folder / "predictions.csv"
    tnesi("fit", data, "-o", model, *options, code=code)
    tnesi("predict", model, data if new is None else new, "-o", predictions, code=code)
    assert set(pd.read_csv(predictions)["label"]) <= set(load(model)[-1].classes_)
    assert encoder in tnesi("info", model).output
    found = json.loads(tnesi("evaluate", model, data, *options, "--json", code=code).stdout)
    return float(found["error"])


def in_python(folder: Path, given: Any, labels: Any, encoder: type[Any], **parameters: Any) -> Pipeline:
    """Fit with the encoder that suits, save and load; the same bits come back."""
    assert type(encoder_for(given)) is encoder
    clf = make_classifier(KINDS[encoder], random_state=0, **parameters)
    clf.fit(given, labels)
    save(clf, folder / "python.tnesi")
    again = load(folder / "python.tnesi")
    np.testing.assert_array_equal(again.predict_proba(given), clf.predict_proba(given))
    assert type(again[0]) is encoder
    return clf


# Pictures


def photograph(rng: np.random.Generator, kind: str) -> Image.Image:
    """Stripes or dots in any color on a cloudy background, as large as photographs are."""
    size = (1600, 1200)
    clouds = Image.fromarray(rng.integers(0, 255, (12, 16), dtype=np.uint8)).resize(size, Image.Resampling.BILINEAR)
    picture = Image.blend(Image.new("RGB", size, tuple(rng.integers(60, 200, 3).tolist())), clouds.convert("RGB"), 0.3)
    draw, color = ImageDraw.Draw(picture), tuple(rng.integers(0, 255, 3).tolist())
    left, top = rng.integers(0, 100, 2).tolist()
    for x in range(left, size[0], 200):
        if kind == "stripes":
            draw.line([(x, 0), (x, size[1])], fill=color, width=80)
        else:
            for y in range(top, size[1], 200):
                draw.ellipse([x - 60, y - 60, x + 60, y + 60], fill=color)
    return picture


def square(rng: np.random.Generator, color: str) -> Image.Image:
    picture = Image.new("RGB", (32, 32), "white")
    x, y, side = *rng.integers(2, 12, 2).tolist(), int(rng.integers(10, 18))
    ImageDraw.Draw(picture).rectangle([x, y, x + side, y + side], fill=color)
    return picture


def bars(rng: np.random.Generator, kind: str) -> Image.Image:
    """An upright bar, or one on its side."""
    values = np.full((120, 160), 200, np.uint8)
    at = int(rng.integers(20, 80))
    if kind == "upright":
        values[:, at : at + 20] = 40
    else:
        values[at : at + 20] = 40
    return Image.fromarray(values).convert("RGB")


def write_pictures(
    folder: Path, rng: np.random.Generator, draw: Callable[..., Image.Image], kinds: tuple[str, str], n: int
) -> Path:
    for i in range(n):
        place = folder / kinds[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        draw(rng, kinds[i % 2]).save(place / f"{i:02}.png" if draw is square else place / f"{i:02}.jpg", quality=90)
    return folder


def test_photographs(tmp_path: Path, rng: np.random.Generator) -> None:
    folder = write_pictures(tmp_path / "photos", rng, photograph, ("stripes", "dots"), 40)
    assert on_the_command_line(tmp_path, folder, encoder="ImageEncoder") == 0
    assert max(load(tmp_path / "model.tnesi")[0].image_shape_) <= 64  # not 1600
    data = open_data(folder)
    y = data.y.astype(object)
    y[10:] = [None if i % 3 else label for i, label in enumerate(y[10:])]
    clf = in_python(tmp_path, data.rows.paths, y, ImageEncoder)
    assert (clf.predict(data.rows.paths) == data.y).mean() >= 0.9


def test_a_folder_with_other_files(tmp_path: Path, rng: np.random.Generator) -> None:
    folder = write_pictures(tmp_path / "mixed", rng, square, ("red", "green"), 40)
    (folder / "red" / "broken.png").write_bytes((folder / "red" / "00.png").read_bytes()[:60])
    (folder / "red" / "notes.txt").write_text("squares that I like")
    assert on_the_command_line(tmp_path, folder, code=3, encoder="ImageEncoder") <= 5
    listed = tnesi("fit", folder, "-o", tmp_path / "again.tnesi", code=3).output
    assert "2 unreadable files were skipped" in listed
    assert "broken.png is damaged" in listed
    assert "notes.txt is not a picture" in listed
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 40
    for words in (("fit", folder), ("predict", tmp_path / "model.tnesi", folder)):
        stopped = tnesi(*words, "-o", tmp_path / "strict", "--strict", code=1)
        assert "broken.png" in stopped.stderr
        assert not (tmp_path / "strict").exists()


def test_red_and_green_squares(tmp_path: Path, rng: np.random.Generator) -> None:
    folder = write_pictures(tmp_path / "squares", rng, square, ("red", "green"), 60)
    model = tmp_path / "few.tnesi"
    tnesi("fit", folder, "--labels-per-class", 5, "-o", model)
    assert json.loads(tnesi("evaluate", model, folder, "--json").stdout)["error"] == 0
    pictures = np.stack([np.asarray(Image.open(path)) for path in open_data(folder).rows.paths])
    y = open_data(folder).y
    clf = in_python(tmp_path, pictures, np.where(np.arange(60) % 6 == 0, y, None), ImageEncoder)
    assert (clf.predict(pictures) == y).all()
    np.save(tmp_path / "colored.npy", pictures)
    tnesi("predict", model, tmp_path / "colored.npy", "-o", tmp_path / "p.csv")
    assert (pd.read_csv(tmp_path / "p.csv")["label"] == y).all()


def test_rotated_phone_pictures(tmp_path: Path, rng: np.random.Generator) -> None:
    folder = write_pictures(tmp_path / "phone", rng, bars, ("upright", "lying"), 60)
    turned = Image.Exif()
    turned[0x0112] = 6
    for path in open_data(folder).rows.paths[::3]:
        with Image.open(path) as picture:
            picture.transpose(Image.Transpose.ROTATE_90).save(path, exif=turned)
    tnesi("fit", folder, "--labels-per-class", 5, "-o", tmp_path / "few.tnesi")
    assert json.loads(tnesi("evaluate", tmp_path / "few.tnesi", folder, "--json").stdout)["error"] == 0
    paths, y = open_data(folder).rows.paths, open_data(folder).y
    clf = in_python(tmp_path, paths, np.where(np.arange(60) % 6 == 0, y, None), ImageEncoder)
    assert (clf.predict(paths) == y).all()


# Documents


def documents(rng: np.random.Generator, n: int = 120) -> tuple[list[str], list[str]]:
    kinds = [("sea", "hill")[i % 2] for i in range(n)]
    common = ["the", "a", "and", "of", "is", "was"] * 2
    return [" ".join(rng.choice(WORDS[kind] + common, 60)) + "." for kind in kinds], kinds


def labels_of_first(kinds: list[str], n: int = 20) -> list[str | None]:
    return [kind if i < n else None for i, kind in enumerate(kinds)]


def test_a_folder_of_text_files(tmp_path: Path, rng: np.random.Generator) -> None:
    texts, kinds = documents(rng)
    folder = tmp_path / "texts"
    for i, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
        place = folder / kind if i < 20 else folder
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i:03}.txt").write_text(text)
    on_the_command_line(tmp_path, folder, encoder="TextEncoder")
    found = pd.read_csv(tmp_path / "predictions.csv")
    true = [kinds[int(Path(name).stem)] for name in found["file"]]
    assert (found["label"] == true).mean() >= 0.95
    clf = in_python(tmp_path, texts, labels_of_first(kinds), TextEncoder)
    assert (clf.predict(texts) == kinds).mean() >= 0.95
    assert type(encoder_for(open_data(folder).rows.paths)) is TextEncoder


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_table_with_a_column_of_texts(tmp_path: Path, rng: np.random.Generator, form: str) -> None:
    texts, kinds = documents(rng)
    table = pd.DataFrame({"text": texts, "label": labels_of_first(kinds)})
    path = tmp_path / f"texts.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")).replace("NaN", "null"))
    else:
        table.to_parquet(path)
    on_the_command_line(tmp_path, path, encoder="TextEncoder")
    assert (pd.read_csv(tmp_path / "predictions.csv")["label"] == kinds).mean() >= 0.95
    in_python(tmp_path, table["text"], labels_of_first(kinds), TextEncoder)
    assert type(encoder_for(table)) is TextEncoder
    assert type(encoder_for(path)) is TextEncoder


# Tables


def customers(seed: int, n: int = 1000) -> tuple[pd.DataFrame, Any]:
    """Customers of three kinds that differ in most columns, none of which decides alone."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])

    def pick(options: list[str], shares: list[list[float]]) -> list[str]:
        return [str(rng.choice(options, p=shares[k])) for k in kind]

    days = rng.normal(np.array([2800, 1700, 700])[kind], 500).clip(0).round()
    table = pd.DataFrame(
        {
            "customer_id": rng.permutation(np.arange(50_000, 50_000 + n)),
            "joined": (pd.Timestamp("2015-01-01") + pd.to_timedelta(days, unit="D")).strftime("%Y-%m-%d"),
            "age": rng.normal(np.array([31, 47, 62])[kind], 7).round(),
            "plan": pick(["basic", "plus", "family"], [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.5, 0.1, 0.4]]),
            "channel": pick(["app", "web", "phone"], [[0.7, 0.25, 0.05], [0.3, 0.6, 0.1], [0.1, 0.3, 0.6]]),
            "balance": rng.normal(np.array([-400, 900, 2500])[kind], 900).round(2),
            "income": np.exp(rng.normal(np.array([10.2, 10.9, 10.6])[kind], 0.45)).round(2),
        }
    )
    table.loc[rng.random(n) < 0.1, "income"] = np.nan
    table.loc[rng.random(n) < 0.1, "plan"] = None
    return table, np.array(["young", "settled", "retired"])[kind]


def logistic_regression(table: pd.DataFrame, y: Any, labeled: Any) -> float:
    """Error in percent of what people would do: IDs left out, dates as days, missing values filled in."""
    known = table.drop(columns="customer_id").assign(joined=(pd.to_datetime(table["joined"]).astype("int64") / 8.64e13))
    known["income"] = known["income"].fillna(known["income"].median())
    known["plan"] = known["plan"].fillna("missing")
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), make_column_selector(dtype_include="number")),
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        ),
        LogisticRegression(),
    )
    model.fit(known[labeled], y[labeled])
    return float(100 * (model.predict(known[~labeled]) != y[~labeled]).mean())


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_customers(tmp_path: Path, form: str) -> None:
    table, y = customers(0)
    table["label"] = np.where(np.arange(len(table)) < 20, y, None)
    path = tmp_path / f"customers.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "parquet":
        table.to_parquet(path)
    else:
        table.to_json(path, orient="records", lines=True)
    on_the_command_line(tmp_path, path, encoder="TableEncoder")
    assert "'customer_id' looks like an identifier" in tnesi("fit", path, "-o", tmp_path / "b.tnesi").output
    given = table.drop(columns="label")
    assert type(encoder_for(table)) is TableEncoder
    with pytest.warns(UserWarning, match="customer_id"):
        in_python(tmp_path, given, table["label"], TableEncoder)


@pytest.mark.slow
def test_customers_beside_logistic_regression() -> None:
    """The error with 20 labels is at most that of logistic regression on them: means of 20 tables and draws.

    The tolerance is two standard errors of the mean difference.
    """
    differences = []
    for seed in range(20):
        table, y = customers(seed)
        drawn = few_labels(y, 7, np.random.default_rng(seed), unlabeled=None)
        drawn[np.flatnonzero([label is not None for label in drawn])[-1]] = None  # 20 of 21
        labeled = np.array([label is not None for label in drawn])
        assert labeled.sum() == 20
        with pytest.warns(UserWarning, match="customer_id"):
            clf = make_classifier("table", random_state=0, unlabeled=None).fit(table, drawn)
        error = 100 * (clf.predict(table[~labeled]) != y[~labeled]).mean()
        differences.append(error - logistic_regression(table, y, labeled))
    mean, spread = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert mean <= 2 * spread, (mean, differences)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig"])
def test_a_table_of_a_german_spreadsheet(tmp_path: Path, rng: np.random.Generator, encoding: str) -> None:
    """Semicolons, decimal commas, currencies, percentages, dates, cells of two lines: nearly all decide together."""
    y = rng.integers(0, 2, 200)
    amounts = [f"{v:,.2f} €".translate(str.maketrans(",.", ".,")) for v in rng.normal(1_500 + 1_000 * y, 400)]
    shares = [f"{v:.1f} %".replace(".", ",") for v in rng.uniform(0, 40, 200) + 30 * y]
    days = [f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{2018 + 3 * k}" for k in y]
    lines = [f'{i};{amounts[i]};{shares[i]};{days[i]};"Größe\n{i}"' for i in range(200)]
    labels = [("ja" if k else "nein") if i < 20 else "" for i, k in enumerate(y.tolist())]
    text = "Nr;Betrag;Anteil;Datum;Notiz;label\n" + "\n".join(map(";".join, zip(lines, labels, strict=True)))
    (tmp_path / "kunden.csv").write_bytes(text.encode(encoding))
    tnesi("fit", tmp_path / "kunden.csv", "-o", tmp_path / "model.tnesi")
    tnesi("predict", tmp_path / "model.tnesi", tmp_path / "kunden.csv", "-o", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")["label"]
    assert (found != np.where(y, "ja", "nein")).mean() < 0.05


def test_a_table_without_a_header(tmp_path: Path, rng: np.random.Generator) -> None:
    table, y = customers(1)
    table.drop(columns="customer_id").assign(y=y).to_csv(tmp_path / "rows.csv", index=False, header=False, na_rep="?")
    options = ("--label-column", -1)
    assert on_the_command_line(tmp_path, tmp_path / "rows.csv", *options, encoder="TableEncoder") < 25
    data = open_data(tmp_path / "rows.csv", label_column=-1)
    assert data.rows.n_rows == 1000  # the first is no header
    assert (data.y == y).all()


@pytest.mark.parametrize("name", ["german", "adult-test"])
def test_tables_of_the_repository(name: str, tmp_path: Path) -> None:
    import os

    path = Path(os.environ.get("TNESI_DATA", "")) / "tables" / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    rows = path.read_text().splitlines()[:1000]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    options = ("--label-column", -1)
    on_the_command_line(tmp_path, tmp_path / "rows.csv", *options, encoder="TableEncoder")
    assert open_data(tmp_path / "rows.csv", label_column=-1).rows.n_rows == len([row for row in rows if row.strip()])


# Vectors


def vectors(rng: np.random.Generator, n: int = 400) -> tuple[Any, Any]:
    kinds = rng.integers(0, 2, n)
    found = rng.normal(size=(2, 64))[kinds] + rng.normal(size=(n, 64))
    return found.astype(np.float32), np.array(["sea", "hill"])[kinds]


def test_signed_vectors(tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = vectors(rng)
    np.save(tmp_path / "vectors.npy", X)
    pd.DataFrame({"row": np.arange(20), "label": y[:20]}).to_csv(tmp_path / "labels.csv", index=False)
    on_the_command_line(
        tmp_path, tmp_path / "vectors.npy", "--labels", tmp_path / "labels.csv", encoder="VectorEncoder"
    )
    assert (pd.read_csv(tmp_path / "predictions.csv")["label"] == y).mean() >= 0.95
    in_python(tmp_path, X, np.where(np.arange(400) < 20, y, None), VectorEncoder)


def test_a_column_of_vectors(tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = vectors(rng)
    table = pd.DataFrame({"id": np.arange(400), "embedding": list(X), "label": labels_of_first(list(y))})
    table.to_parquet(tmp_path / "vectors.parquet")
    on_the_command_line(tmp_path, tmp_path / "vectors.parquet", encoder="VectorEncoder")
    assert (pd.read_csv(tmp_path / "predictions.csv")["label"] == y).mean() >= 0.95
    assert type(encoder_for(table[["embedding"]])) is VectorEncoder
    in_python(tmp_path, table["embedding"], table["label"], VectorEncoder)


# Data of another kind


def test_predict_refuses_data_of_another_kind(tmp_path: Path, rng: np.random.Generator) -> None:
    X, y = vectors(rng)
    texts, kinds = documents(rng)
    table, leaves = customers(0)
    write_pictures(tmp_path / "images", rng, square, ("red", "green"), 40)
    np.save(tmp_path / "vectors.npy", X)
    pd.DataFrame({"row": np.arange(400), "label": y}).to_csv(tmp_path / "labels.csv", index=False)
    pd.DataFrame({"text": texts, "label": kinds}).to_csv(tmp_path / "texts.csv", index=False)
    table.assign(label=leaves).to_csv(tmp_path / "table.csv", index=False)
    places = {name: tmp_path / name for name in ("images", "vectors.npy", "texts.csv", "table.csv")}
    for name, place in places.items():
        model = tmp_path / f"{name}.tnesi"
        options = ("--labels", tmp_path / "labels.csv") if name == "vectors.npy" else ()
        tnesi("fit", place, "-o", model, *options)
        for other, elsewhere in places.items():
            code = 0 if other == name else 1
            said = tnesi("predict", model, elsewhere, "-o", tmp_path / "p.csv", code=code)
            if code:
                assert other in said.stderr
                assert "Traceback" not in said.stderr
    with pytest.raises(DataError, match="pass one of them"):
        open_data(["a", 3.5, object()])
