"""Data sets encoded in blocks: the same rows as in one call, constant memory, no files left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import sparse

from tnesi.data import DataError, open_data
from tnesi.encoders import ImageEncoder, TableEncoder, TextEncoder, VectorEncoder
from tnesi.encoders.choice import suited
from tnesi.encoders.encoding import encode, fit_encoder

TEXTS = [f"boat number {i} and {'wave' if i % 2 else 'rock'} {i % 7}" for i in range(5_000)]


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def cases() -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        pytest.param(ImageEncoder(), rng.integers(0, 255, (5_000, 6, 6), dtype=np.uint8), id="images"),
        pytest.param(ImageEncoder(), rng.integers(0, 255, (3_000, 6, 6, 3), dtype=np.uint8), id="colored"),
        pytest.param(TextEncoder(), TEXTS, id="texts"),
        pytest.param(TableEncoder(), rng.normal(size=(5_000, 4)), id="table"),
        pytest.param(VectorEncoder(), rng.normal(size=(5_000, 60)), id="vectors"),
    ]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, empty."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.mark.parametrize(("encoder", "items"), cases())
@pytest.mark.parametrize("in_memory", [2**30, 1000])
def test_blocks_and_files_do_not_change_rows(encoder: Any, items: Any, in_memory: int, temporary: Path) -> None:
    data = open_data(items)
    fit_encoder(encoder, data)
    told: list[tuple[str, int, int | None]] = []
    found = encode(encoder, data, lambda *words: told.append(words), in_memory=in_memory)
    np.testing.assert_array_equal(dense(found.data.X), dense(encoder.transform(items)))
    np.testing.assert_array_equal(np.vstack(list(found.data.rows.blocks())), dense(found.data.X))
    assert found.data.shown is data.rows
    assert told[-1] == ("encoding", len(items), len(items))
    assert len(list(temporary.iterdir())) == (in_memory == 1000)
    del found
    gc.collect()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("encoder", [ImageEncoder(), VectorEncoder()])
def test_learning_block_by_block_is_learning_at_once(encoder: Any, rng: np.random.Generator) -> None:
    shape = (5_000, 6, 6) if isinstance(encoder, ImageEncoder) else (5_000, 60)
    X = rng.normal(size=shape)
    fit_encoder(encoder, open_data(X))
    rows = encoder.transform(X[:50])
    np.testing.assert_allclose(rows, encoder.fit(X).transform(X[:50]), atol=1e-5)


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path, rng: np.random.Generator) -> None:
    for i in range(9):
        Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "4.png").write_bytes(b"\x89PNG")
    (tmp_path / "7.png").write_bytes(b"")
    data = open_data(tmp_path, labels=list("abcdefghi"))
    encoder = ImageEncoder()
    fit_encoder(encoder, data)
    found = encode(encoder, data)
    assert [(problem.index, Path(problem.name).name) for problem in found.problems] == [(4, "4.png"), (7, "7.png")]
    assert found.data.y.tolist() == list("abcdfgi")
    assert found.data.rows.n_rows == 7
    assert [path.name[0] for path in found.data.rows.paths] == list("0123568")  # type: ignore[attr-defined]
    for path in data.rows.paths:  # type: ignore[attr-defined]
        path.write_bytes(b"")
    with pytest.raises(DataError, match="none of the 9 files can be read, the first because it is empty"):
        encode(encoder, data)


def test_several_pictures_in_a_file(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (20, 20), color) for color in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "b.tif", save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "c.png")
    encoder = ImageEncoder(color=True)
    data = open_data(tmp_path)
    assert fit_encoder(encoder, data) == ["Files with several pictures (a.gif): the first of each counts."]
    rows = encode(encoder, data).data.X
    np.testing.assert_allclose(rows, rows[[2, 2, 2]], atol=1e-4)


@pytest.mark.parametrize(
    ("encoder", "given", "message"),
    [
        (ImageEncoder(), ["a", "b"], "holds documents, but ImageEncoder encodes images"),
        (TextEncoder(), np.ones((3, 4, 4)), "holds images, but TextEncoder encodes documents"),
        (VectorEncoder(), ["a", "b"], "encodes rows of numbers"),
        (TableEncoder(), np.ones((3, 4, 4)), "encodes a table"),
        (ImageEncoder(), np.ones((3, 4)), "holds rows of numbers, but ImageEncoder"),
    ],
)
def test_data_of_another_kind(encoder: Any, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        suited(encoder, open_data(given))


def test_a_table_of_several_columns_is_no_document() -> None:
    data = open_data(pd.DataFrame({"text": ["good day", "bad night"], "topic": ["a", "b"]}))
    with pytest.raises(DataError, match="keep a single column of texts; label_column names"):
        suited(TextEncoder(), data)


@pytest.mark.filterwarnings("ignore:Column 'text' has only")
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ""])
def test_a_column_of_texts_suits_the_encoder_however_long_they_are(tmp_path: Path, suffix: str) -> None:
    """Whether texts are documents is guessed from their length, but a fitted encoder knows."""
    places = ["the windy mountains of the north", "a sunny valley far in the south"]
    long, short = [f"all about the weather in {place}" for place in places] * 10, ["good day", "bad night"] * 10
    for encoder, learned, given in ((TextEncoder(), long, short), (TableEncoder(), short, long)):
        fit_encoder(encoder, open_data(pd.DataFrame({"text": learned})))
        frame = pd.DataFrame({"text": given})
        data = open_data(frame)
        if suffix:
            write = frame.to_csv if suffix == ".csv" else partial(frame.to_json, orient="records", lines=True)
            write(tmp_path / f"texts{suffix}", **({"index": False} if suffix == ".csv" else {}))
            data = open_data(tmp_path / f"texts{suffix}")
        found = encode(encoder, data).data.X
        expected = encoder.transform(given if isinstance(encoder, TextEncoder) else frame)
        np.testing.assert_array_equal(dense(found), dense(expected))


def test_vectors_in_the_columns_of_a_table(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    np.savetxt(tmp_path / "vectors.csv", X, "%.9g", ",", header="a,b,c", comments="")
    encoder, data = VectorEncoder(), open_data(tmp_path / "vectors.csv")
    assert fit_encoder(encoder, data) == []
    expected = VectorEncoder().partial_fit(X).transform(X)
    np.testing.assert_allclose(encode(encoder, data).data.X, expected, atol=1e-5)


def test_what_an_encoder_refuses_names_the_data() -> None:
    encoder = TableEncoder()
    with pytest.raises(DataError, match="array: The table has no column to learn from"):
        fit_encoder(encoder, open_data(np.ones((3, 2))))


STREAM = """
import resource, sys
import numpy as np
import pandas as pd
from tnesi.data import open_data
from tnesi.encoders import ImageEncoder
from tnesi.encoders.encoding import encode, fit_encoder

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

data = open_data(sys.argv[1])
encoder = ImageEncoder(n_jobs=1)
fit_encoder(encoder, data)
encode(encoder, open_data(np.load(sys.argv[1], mmap_mode="r")[:4000]))
before = peak()
rows = encode(encoder, data, in_memory=2**20).data.rows
total = sum(float(block.sum()) for block in rows.blocks())
print(peak() - before, rows.n_rows * rows.n_features * 4 / 2**20, total > 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
def test_memory_does_not_grow_with_the_images(tmp_path: Path) -> None:
    n = 200_000
    images = np.lib.format.open_memmap(tmp_path / "images.npy", "w+", np.uint8, (n, 8, 8))
    rng = np.random.default_rng(0)
    for start in range(0, n, 20_000):
        images[start : start + 20_000] = rng.integers(0, 255, (20_000, 8, 8), dtype=np.uint8)
    images.flush()
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", STREAM, str(tmp_path / "images.npy")],
        capture_output=True, text=True, check=True, env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    grown, rows, whole = done.stdout.split()
    assert whole == "True"
    assert float(rows) > 90  # MB
    assert float(grown) < float(rows) / 2
    assert not list((tmp_path / "temporary").iterdir())


INTERRUPTED = """
import sys
import numpy as np
import pandas as pd
from tnesi.data import open_data
from tnesi.encoders import ImageEncoder
from tnesi.encoders.encoding import encode, fit_encoder

data = open_data(np.random.default_rng(0).integers(0, 255, (400_000, 8, 8), dtype=np.uint8))
encoder = ImageEncoder(n_jobs=1)
fit_encoder(encoder, data)
encode(encoder, data, lambda *_: print(".", flush=True), in_memory=1000)
"""


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline()
    assert process.stdout.readline()
    assert list(tmp_path.iterdir())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert not list(tmp_path.iterdir())


DOCUMENTS = """
import resource, sys
from tnesi.data import open_data
from tnesi.encoders import TextEncoder
from tnesi.encoders.encoding import encode, fit_encoder

data, encoder = open_data(sys.argv[1]), TextEncoder()
fit_encoder(encoder, data)
rows = encode(encoder, data, in_memory=2**20).data.rows
assert (rows.n_rows, rows.n_features) == (int(sys.argv[2]), 500), (rows.n_rows, rows.n_features)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "folder"])
def test_memory_does_not_grow_with_the_documents(kind: str, tmp_path: Path) -> None:
    """Four times as many documents, most of which would exceed the allowed memory."""
    n = 1_500 if kind == "folder" else 40_000
    peaks = {}
    for n_rows in (n, 4 * n):
        place = write_documents(tmp_path / f"{n_rows}.{kind}", n_rows)
        done = subprocess.run(
            [sys.executable, "-c", DOCUMENTS, str(place), str(n_rows)],
            capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        peaks[n_rows] = float(done.stdout)
    assert peaks[4 * n] - peaks[n] < 40  # MB; the documents have 120 MB more


def write_documents(place: Path, n_rows: int) -> Path:
    """Write documents of ten words of 100 characters; those in separate files have 26 times as many."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" + "x" * 96 for i in range(500)])
    n_words = 260 if place.suffix == ".folder" else 10
    texts = (" ".join(line) for _ in range(n_rows // 100) for line in words[rng.integers(0, 500, (100, n_words))])
    if place.suffix == ".folder":
        place.mkdir()
        for i, text in enumerate(texts):
            (place / f"{i}.txt").write_text(text)
    elif place.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as parquet

        schema = pa.schema([("text", pa.string())])
        with parquet.ParquetWriter(place, schema, use_dictionary=False, compression=None) as file:
            for batch in batched(texts, 10_000):
                file.write_table(pa.table({"text": list(batch)}, schema))
    else:
        with place.open("w") as file:
            if place.suffix == ".csv":
                file.write("text\n")
            file.writelines(f'{{"text": "{text}"}}\n' if place.suffix == ".jsonl" else f'"{text}"\n' for text in texts)
    return place


def batched(items: Iterator[str], size: int) -> Iterator[list[str]]:
    while batch := list(islice(items, size)):
        yield batch
