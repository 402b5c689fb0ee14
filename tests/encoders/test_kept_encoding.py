"""Encoded rows beside a checkpoint: blocks are encoded once, and belong to their data and encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import sparse

from tnesi.data import Data, open_data
from tnesi.encoders import ImageEncoder, TableEncoder, TextEncoder, encoding
from tnesi.encoders.encoding import encode, fit_encoder
from tnesi.encoders.kept_encoding import KeptEncodingError, encoding_kept_in

TEXTS = [f"boat number {i} and {'wave' if i % 2 else 'rock'} {i % 7}" for i in range(1_000)]


class InterruptionError(Exception):
    """Interrupts an encoding like Ctrl-C."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_BLOCK", 100)


def pictures(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    for i in range(300):
        Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(folder / f"{i:03}.png")
    for i in (7, 250):
        (folder / f"{i:03}.png").write_bytes(b"no picture")
    return folder


def table(folder: Path) -> Path:
    rows = "".join(f"{i},{'nurse' if i % 3 else 'clerk'}\n" for i in range(1_000))
    (folder / "table.csv").write_text("age,job\n" + rows)
    return folder / "table.csv"


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def run(encoder: Any, data: Data, folder: Path, *, key: str = "k", resume: bool, stop: int = 10**9) -> tuple[Any, int]:
    """Encode a number of items; return the result and the number of encoded blocks."""
    n_blocks = 0

    def tell(what: str, done: int, total: int | None) -> None:
        nonlocal n_blocks
        n_blocks += what == "encoding"
        if done >= stop:
            raise InterruptionError

    with encoding_kept_in(folder, key, resume=resume) as kept:
        return encode(encoder, data, tell, kept=kept), n_blocks


@pytest.mark.parametrize("kind", ["texts", "images", "files", "table"])
def test_an_interrupted_run_continues(kind: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    given: dict[str, tuple[Any, Any]] = {
        "texts": (TextEncoder(), TEXTS),
        "images": (ImageEncoder(), np.random.default_rng(0).integers(0, 255, (1_000, 6, 6, 3), dtype=np.uint8)),
        "files": (ImageEncoder(), pictures(tmp_path / "data") if kind == "files" else None),
        "table": (TableEncoder(), table(tmp_path / "data")),
    }
    encoder, where = given[kind]
    data = open_data(where)
    fit_encoder(encoder, data)
    expected = encode(encoder, data)
    with pytest.raises(InterruptionError):
        run(encoder, data, tmp_path / "kept", resume=True, stop=200)
    found, n_blocks = run(encoder, data, tmp_path / "kept", resume=True)
    assert n_blocks == -(-data.rows.n_rows // 100) - 2
    np.testing.assert_array_equal(dense(found.data.X), dense(expected.data.X))
    assert found.problems == expected.problems
    again, n_blocks = run(encoder, data, tmp_path / "kept", resume=True)
    assert n_blocks == 0
    np.testing.assert_array_equal(dense(again.data.X), dense(expected.data.X))
    _, n_blocks = run(encoder, data, tmp_path / "kept", resume=False)
    assert n_blocks == -(-data.rows.n_rows // 100)


def test_other_data_are_refused(tmp_path: Path) -> None:
    encoder = TextEncoder().fit(TEXTS)
    run(encoder, open_data(TEXTS), tmp_path, resume=False)
    with pytest.raises(KeptEncodingError, match="has rows of other data: start over"):
        run(encoder, open_data([*TEXTS[:500], "another boat", *TEXTS[501:]]), tmp_path, resume=True)
    with pytest.raises(KeptEncodingError, match="has rows of another encoder"):
        run(encoder, open_data(TEXTS), tmp_path, key="other", resume=True)


def cut(folder: Path) -> None:
    (folder / "values").write_bytes((folder / "values").read_bytes()[:-1])


def remove(folder: Path) -> None:
    (folder / "lengths").unlink()


def scribble(folder: Path) -> None:
    (folder / "encoded.json").write_text('{"format": 1, "size": [1]}')


def age(folder: Path) -> None:
    state = json.loads((folder / "encoded.json").read_text())
    (folder / "encoded.json").write_text(json.dumps(state | {"format": 0}))


@pytest.mark.parametrize("damage", [cut, remove, scribble, age])
def test_damage_is_noticed(damage: Any, tmp_path: Path) -> None:
    encoder = TextEncoder().fit(TEXTS)
    run(encoder, open_data(TEXTS), tmp_path, resume=False)
    damage(tmp_path)
    with pytest.raises(KeptEncodingError, match=r"encoded\.json is damaged .*: start over without"):
        run(encoder, open_data(TEXTS), tmp_path, resume=True)


def test_what_a_killed_run_left_goes_away(tmp_path: Path) -> None:
    encoder = TextEncoder().fit(TEXTS)
    run(encoder, open_data(TEXTS), tmp_path, resume=False)
    (tmp_path / ".encoded.json.x.part").write_text("half")
    run(encoder, open_data(TEXTS), tmp_path, resume=True)
    assert not list(tmp_path.glob(".*.part"))


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        encoding_kept_in(tmp_path, "k", resume=False),
        pytest.raises(KeptEncodingError, match="another fit uses"),
        encoding_kept_in(tmp_path, "k", resume=False),
    ):
        pass
