"""TextEncoder: documents of any script and encoding as rows of word weights."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from tnesi import SimpletronClassifier
from tnesi.encoders import TextEncoder

DOCUMENTS = ["A red apple and a green apple", "Green apples, red wine", "Wine and bread", "bread bread bread"]


def articles(n: int = 60, seed: int = 0) -> tuple[list[str], Any]:
    """Generate articles about three topics, from common words and those of the topic."""
    rng = np.random.default_rng(seed)
    topics = np.arange(n) % 3
    words = [[f"{stem}{i}" for i in range(12)] for stem in ("sport", "money", "music")]
    common = [f"common{i}" for i in range(20)]
    return [" ".join(rng.choice(common, 15).tolist() + rng.choice(words[k], 10).tolist()) for k in topics], topics


def same(a: Any, b: Any) -> bool:
    return a.shape == b.shape and (a != b).nnz == 0


def test_rows() -> None:
    """The weights are those of scikit-learn's tf-idf."""
    texts, _ = articles()
    encoder = TextEncoder(max_df=1.0, min_df=1)
    rows = encoder.fit_transform(texts)
    expected = TfidfVectorizer(sublinear_tf=True).fit(texts)
    assert sparse.isspmatrix_csr(sparse.csr_matrix(rows))
    assert rows.dtype == np.float32
    assert encoder.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(rows.toarray(), expected.transform(texts).toarray(), rtol=1e-5)


def test_words_of_nearly_all_documents_and_of_single_ones_are_left_out() -> None:
    texts = [f"the number{i % 5} single{i}" for i in range(40)]
    assert TextEncoder().fit(texts).get_feature_names_out().tolist() == [f"number{i}" for i in range(5)]
    assert "the" in TextEncoder(max_df=1.0).fit(texts).get_feature_names_out()
    assert TextEncoder(max_features=3).fit(texts).words_.shape == (3,)
    assert "single7" in TextEncoder(min_df=1).fit(texts).words_


def test_few_documents_keep_their_words() -> None:
    assert TextEncoder().fit(["red wine", "red bread"]).words_.tolist() == ["bread", "red", "wine"]


def test_documents_with_nothing_in_common() -> None:
    texts = [f"first{i} second{i}" for i in range(50)]
    assert len(TextEncoder().fit(texts).words_) == 100


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        (["我喜欢喝红酒", "红酒很好喝", "面包很好吃"], "红酒"),
        (["東京タワーに行く", "東京は大きい", "京都は古い"], "東京"),
        (["ผมชอบดื่มไวน์แดง", "ไวน์แดงอร่อยมาก"], "แด"),
        (["मुझे हिन्दी पसंद है", "हिन्दी एक भाषा है"], "हिन्दी"),
        (["Ich trinke Grüntee", "GRÜNTEE ist grün"], "grüntee"),
        (["Я люблю вино", "Вино и хлеб"], "вино"),
        (["أحب الخبز", "الخبز جيد"], "الخبز"),
        (["나는 빵을 좋아한다", "빵을 굽는다"], "빵을"),
    ],
)
def test_scripts(texts: list[str], word: str) -> None:
    """A shared word is a feature, whether or not the script separates words."""
    encoder = TextEncoder().fit(texts)
    column = encoder.words_.tolist().index(word)
    assert (encoder.transform(texts)[[0, 1], [column, column]] > 0).all()


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert TextEncoder().fit(["caf\u00e9", "cafe\u0301"]).words_.tolist() == ["caf\u00e9"]


def test_sources(tmp_path: Path) -> None:
    """Texts, bytes, files and columns of any library give the same rows."""
    expected = TextEncoder().fit_transform(DOCUMENTS)
    paths = []
    for i, text in enumerate(DOCUMENTS):
        paths.append(tmp_path / f"{i}.txt")
        paths[-1].write_text(text, encoding=("utf-8", "utf-8-sig", "utf-16", "utf-32")[i])
    for X in (
        tuple(DOCUMENTS),
        (text for text in DOCUMENTS),
        [text.encode() for text in DOCUMENTS],
        paths,
        np.array(DOCUMENTS),
        np.array(DOCUMENTS, dtype=object)[:, None],
        pd.Series(DOCUMENTS),
        pd.DataFrame({"text": DOCUMENTS}),
        pl.Series(DOCUMENTS),
        pl.DataFrame({"text": DOCUMENTS}),
        pa.chunked_array([DOCUMENTS]),
        pa.table({"text": DOCUMENTS}),
    ):
        assert same(TextEncoder().fit_transform(X), expected)


def test_wrong_encodings(tmp_path: Path) -> None:
    documents = ["Käse und Brot".encode(), "Käse und Wein".encode("latin-1"), b"Brot"]
    message = r"1 of 3 documents is not valid utf-8 \(first: document 1\) and was read as Windows-1252"
    with pytest.warns(UserWarning, match=message):
        encoder = TextEncoder().fit(documents)
    assert encoder.words_.tolist() == ["brot", "käse", "und", "wein"]
    assert len(encoder.messages_) == 1
    with pytest.warns(UserWarning, match=message):
        rows = encoder.transform(documents)
    assert rows[[1], [1]] > 0
    chinese = ["红酒很好".encode("gb18030"), "红酒不好".encode("gb18030")]
    assert "红酒" in TextEncoder(encoding="gb18030").fit(chinese).words_


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=6))
@pytest.mark.filterwarnings("ignore:.* documents ")
def test_any_bytes(documents: list[bytes]) -> None:
    rows = TextEncoder(n_features=16).fit_transform(documents)
    assert rows.shape == (len(documents), 16)
    assert np.isfinite(rows.data).all()


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
@pytest.mark.filterwarnings("ignore:.* documents ")
def test_any_text(documents: list[str]) -> None:
    """Rows have length 1, or 0 without words; feature names match the values."""
    try:
        encoder = TextEncoder(min_df=1).fit(documents)
    except ValueError as error:
        if "no words" not in str(error):
            raise
        return
    rows = encoder.transform(documents)
    lengths = np.sqrt((rows.toarray().astype(float) ** 2).sum(axis=1))
    assert np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0))
    assert len(set(encoder.words_)) == rows.shape[1]


def test_empty_documents() -> None:
    with pytest.warns(UserWarning, match=r"2 of 4 documents have no words: their rows are all zero"):
        encoder = TextEncoder().fit(["red wine", "", None, "red bread"])
    rows = encoder.transform(["red", "", None, "other words"])
    assert np.diff(rows.indptr).tolist() == [1, 0, 0, 0]
    assert encoder.n_documents_ == 4


def test_hashing() -> None:
    """With enough features hashing gives the same rows in another order, and the features have their words."""
    texts, _ = articles()
    plain = TextEncoder(min_df=1, max_df=1.0).fit(texts)
    hashed = TextEncoder(n_features=2**16).fit(texts)
    names = hashed.get_feature_names_out().tolist()
    columns = [names.index(word) for word in plain.words_]
    np.testing.assert_allclose(
        hashed.transform(texts)[:, columns].toarray(), plain.transform(texts).toarray(), rtol=1e-5
    )
    small = TextEncoder(n_features=8).fit(texts)
    assert small.transform(["never seen"]).shape == (1, 8)
    assert set(small.get_feature_names_out()) <= set(plain.words_)


@pytest.mark.parametrize("parameters", [{}, {"n_features": 64}, {"ngram_range": (1, 2)}])
def test_blocks_give_the_same_as_the_whole(parameters: dict[str, Any]) -> None:
    texts, _ = articles()
    whole, parts = TextEncoder(**parameters).fit(texts), TextEncoder(**parameters)
    for start in range(0, 60, 7):
        parts.partial_fit(texts[start : start + 7])
    assert parts.n_documents_ == 60
    assert parts.words_.tolist() == whole.words_.tolist()
    blocks = [parts.transform(texts[start : start + 7]) for start in range(0, 60, 7)]
    assert same(sparse.vstack(blocks), whole.transform(texts))


@pytest.mark.parametrize("parameters", [{}, {"n_features": 64, "ngram_range": (1, 2)}])
def test_state(parameters: dict[str, Any]) -> None:
    texts, _ = articles()
    encoder = TextEncoder(**parameters).fit(texts)
    state = encoder.get_state()
    header = json.dumps({name: value for name, value in state.items() if not isinstance(value, np.ndarray)})
    again = TextEncoder.from_state(json.loads(header) | {"idf": state["idf"]})
    assert same(again.transform(texts), encoder.transform(texts))
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert again.get_params() == encoder.get_params()
    with pytest.raises(ValueError, match="fit a new one"):
        again.partial_fit(texts)
    assert same(pickle.loads(pickle.dumps(encoder)).transform(texts), encoder.transform(texts))
    assert not hasattr(clone(encoder), "words_")
    with pytest.raises(ValueError, match="is damaged"):
        TextEncoder.from_state(state | {"idf": np.zeros(3)})
    with pytest.raises(ValueError, match="version 99"):
        TextEncoder.from_state(state | {"version": 99})


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one text", ValueError, "pass a list"),
        ([1, 2], TypeError, "Document 0 is a int"),
        (3, TypeError, "got int"),
        ([], ValueError, "0 sample"),
        (["", "!"], ValueError, "no words"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), ValueError, r"got 2 \('a', 'b'\)"),
        (np.zeros((3, 2)), ValueError, r"shape \(3, 2\)"),
        ([Path("/no/such/file.txt")], FileNotFoundError, "file.txt"),
    ],
)
def test_bad_documents(X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TextEncoder().fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ngram_range": (2, 1)}, "ngram_range"),
        ({"n_features": 0}, "n_features=0"),
        ({"encoding": "utf-99"}, "'utf-99' is not known"),
        ({"min_df": 50}, "change min_df or max_df"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextEncoder(**parameters).fit(DOCUMENTS)


def test_in_a_pipeline() -> None:
    texts, topics = articles(150)
    model = make_pipeline(TextEncoder(), SimpletronClassifier(random_state=0))
    few = np.where(np.arange(150) < 60, topics, -1)
    assert model.fit(texts, few).score(texts, topics) > 0.9


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_dense(library: str) -> None:
    frames = pytest.importorskip(library)
    texts = [f"match goal player{i % 7} bank{i % 3}" for i in range(30)]
    encoder = TextEncoder().fit(texts)
    frame = encoder.set_output(transform=library).transform(texts)
    assert isinstance(frame, frames.DataFrame)
    assert list(frame.columns) == encoder.get_feature_names_out().tolist()
    plain = encoder.set_output(transform="default").transform(texts)
    np.testing.assert_array_equal(frame.to_numpy(), plain.toarray())
