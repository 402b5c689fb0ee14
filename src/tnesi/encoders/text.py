"""TextEncoder: documents to rows of word weights, or of a pretrained model's features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tnesi.encoders.documents import DecodingReport, read_documents
from tnesi.encoders.embeddings import Embedder, embed_texts, embedder_for, embeddings_folder, progress_printer
from tnesi.encoders.states import new_state, parameters_of
from tnesi.encoders.vectors import VectorEncoder
from tnesi.encoders.word_counts import HashedCounts, WordCounts
from tnesi.encoders.words import WordAnalyzer
from tnesi.estimators.parameters import outputs_frames
from tnesi.types import Array

_FEW_DOCUMENTS = 20
_MOST, _MOST_OF_FEW, _FEW_WORDS = 0.5, 0.95, 5
"""Largest share of documents that a word is in; where they have few different words, nearly all words matter."""


class TextEncoder(TransformerMixin, BaseEstimator):
    """Encode documents as weights of their words (tf-idf), or as features of a pretrained model.

    Words of any script are recognized, and no list of stop words is needed: words that are in most documents are left
    out, and the others count the more the fewer documents they are in.

    Parameters
    ----------
    model : str or path, default=None
        Name or folder of a sentence-transformers model, such as "all-MiniLM-L6-v2". Documents are then encoded as its
        embeddings, in the way of :class:`VectorEncoder`, and the parameters about words are ignored. Needs
        ``pip install 'tnesi[embed]'``.
    ngram_range : tuple of (int, int), default=(1, 1)
        Shortest and longest sequence of words that is a feature.
    min_df : int, float or "auto", default="auto"
        Least number (or share) of documents a word is in. "auto" is 1 for fewer than 20 documents, 2 for fewer than
        1,000, and else 3.
    max_df : int, float or "auto", default="auto"
        Largest number (or share) of documents a word is in. Ignored for fewer than 20 documents. "auto" is half of the
        documents, or 95 % where they would otherwise have fewer than five different words on average.
    max_features : int or None, default=20000
        Keep this many words at most, those that are in most documents.
    n_features : int or None, default=None
        Hash words into this many features instead of learning a vocabulary: for streams whose words are not known
        beforehand. A feature then has the name of the most frequent of its words.
    sublinear_tf : bool, default=True
        Replace the count n of a word in a document by 1 + log(n).
    encoding : str, default="utf-8"
        Encoding of documents that are bytes or files.
    device : str or None, default=None
        Where a model runs, such as "cpu" or "cuda". None takes a GPU if there is one.
    cache : str, path or bool, default=True
        Folder for computed embeddings, so that no document is embedded twice. True is ``tnesi/embeddings`` in the
        user's cache folder; False keeps none.
    verbose : int, default=0
        Show the progress of a model.

    Attributes
    ----------
    words_ : ndarray of str of shape (n_features_out,)
        The word of each feature. Without a model.
    idf_ : ndarray of float64 of shape (n_features_out,)
        Their inverse document frequencies. Without a model.
    n_documents_ : int
        Number of documents learned from.
    vector_encoder_ : VectorEncoder
        Encodes the embeddings of a model.
    messages_ : list of str
        What was decided or noticed during fit. `fit` warns of it, too.

    Examples
    --------
    >>> from tnesi.encoders import TextEncoder
    >>> encoder = TextEncoder().fit(["A red apple", "A green apple", "Red wine"])
    >>> encoder.get_feature_names_out().tolist()
    ['apple', 'green', 'red', 'wine']
    >>> encoder.transform(["red red wine"]).toarray().round(2)
    array([[0.  , 0.  , 0.79, 0.61]], dtype=float32)
    """

    def __init__(
        self,
        *,
        model: str | Path | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        min_df: float | Literal["auto"] = "auto",
        max_df: float | Literal["auto"] = "auto",
        max_features: int | None = 20_000,
        n_features: int | None = None,
        sublinear_tf: bool = True,
        encoding: str = "utf-8",
        device: str | None = None,
        cache: str | Path | bool = True,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.n_features = n_features
        self.sublinear_tf = sublinear_tf
        self.encoding = encoding
        self.device = device
        self.cache = cache
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the vocabulary and the document frequencies.

        Parameters
        ----------
        X : iterable of str, bytes or paths, or a column
            Documents. A str is the text itself, a path (`pathlib.Path`) is a file to read. None is an empty document.
        y : ignored

        Returns
        -------
        self : TextEncoder
        """
        return self._learn(X, None, None)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> sparse.csr_array | Array:
        """Fit and return the rows of the same documents, which are read once.

        Parameters
        ----------
        X : iterable of str, bytes or paths, or a column
            Documents.
        y : ignored
        **fit_params : ignored

        Returns
        -------
        rows : csr_array of float32 of shape (n_documents, n_features_out), or ndarray with a model
        """
        self._check_parameters()
        report = DecodingReport(self.encoding)
        texts = list(read_documents(X, report))
        return self._learn(texts, None, None, report).transform(texts)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a block of documents, after those of earlier calls, in constant memory.

        Parameters
        ----------
        X : iterable of str, bytes or paths, or a column
            Documents.
        y : ignored

        Returns
        -------
        self : TextEncoder
        """
        counts, vectors = getattr(self, "_counts", None), getattr(self, "vector_encoder_", None)
        if hasattr(self, "n_documents_") and counts is None and vectors is None:
            raise ValueError("An encoder from a file has no counts to add to: fit a new one.")
        return self._learn(X, counts, vectors)

    def _learn(
        self,
        X: Any,
        counts: _Counts | None,
        vectors: VectorEncoder | None,
        read: DecodingReport | None = None,
    ) -> Self:
        """Learn from documents, or from texts that were read before, with the report about them."""
        self._check_parameters()
        report = DecodingReport(self.encoding) if read is None else read
        documents = iter(X) if read is not None else read_documents(X, report)
        if counts is not None:  # a block with an error in it must not be counted in part
            documents = iter(list(documents))
        if self.model is not None:
            texts = list(documents)
            vectors = (vectors or VectorEncoder()).partial_fit(_at_least_one(self._embed(texts, new=vectors is None)))
            self.vector_encoder_, self.n_documents_ = vectors, vectors.n_samples_seen_
            self.model_digest_ = self._embedder().digest
            empty = sum(not text.strip() for text in texts)
        else:
            counts = counts or (WordCounts() if self.n_features is None else HashedCounts(self.n_features))
            counts.add(map(self._analyzer(), documents))
            if report.n_documents == 0:
                raise ValueError("Found array with 0 sample(s): there are no documents to learn from.")
            self._learn_words(counts)
            self._counts, self.n_documents_, empty = counts, counts.n_documents, counts.n_empty
        self.messages_ = []
        if empty:
            self.messages_.append(
                f"{empty} of {self.n_documents_} documents {'has' if empty == 1 else 'have'} no words: "
                f"{'its row is' if empty == 1 else 'their rows are'} all zero."
            )
        if report.message():
            self.messages_.append(report.message())
        for message in self.messages_:
            warnings.warn(message, UserWarning, stacklevel=3)
        return self

    def transform(self, X: Any) -> sparse.csr_array | Array:
        """Return the rows of documents.

        Parameters
        ----------
        X : iterable of str, bytes or paths, or a column
            Documents.

        Returns
        -------
        rows : csr_array of float32 of shape (n_documents, n_features_out), or ndarray with a model
            Rows of words have length 1, those of documents without any known word are zero. With
            ``set_output(transform="pandas")`` or ``"polars"`` it is a dense frame.
        """
        check_is_fitted(self, "n_documents_")
        report = DecodingReport(self.encoding)
        documents = read_documents(X, report)
        rows: sparse.csr_array | Array
        if self.model is not None:
            rows = np.asarray(self.vector_encoder_.transform(_at_least_one(self._embed(list(documents)))))
        else:
            rows = self._count(documents)
        if report.message():
            warnings.warn(report.message(), UserWarning, stacklevel=2)
        return rows.toarray() if sparse.issparse(rows) and outputs_frames(self) else rows

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the word of each feature; with a model, the directions of its embeddings.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self, "n_documents_")
        if self.model is not None:
            return np.asarray(self.vector_encoder_.get_feature_names_out())
        return self.words_.copy()

    def get_state(self) -> dict[str, Any]:
        """Return what was learned as JSON values and NumPy arrays, for :meth:`from_state`."""
        check_is_fitted(self, "n_documents_")
        parameters = self.get_params(deep=False)
        parameters["model"] = None if self.model is None else str(self.model)
        parameters["cache"] = str(self.cache) if isinstance(self.cache, Path) else self.cache
        state = new_state("TextEncoder", parameters)
        state |= {"n_documents": self.n_documents_, "messages": list(self.messages_)}
        if self.model is not None:
            return state | {"model_digest": self.model_digest_, "vectors": self.vector_encoder_.get_state()}
        return state | {"words": self.words_.tolist(), "idf": self.idf_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the encoder whose state :meth:`get_state` returned. It encodes, but cannot learn more."""
        parameters = parameters_of(state, "TextEncoder")
        encoder = cls(**parameters | {"ngram_range": tuple(parameters["ngram_range"])})
        encoder.n_documents_ = int(state["n_documents"])
        encoder.messages_ = [str(message) for message in state["messages"]]
        if encoder.model is not None:
            encoder.vector_encoder_ = VectorEncoder.from_state(state["vectors"])
            encoder.model_digest_ = str(state["model_digest"])
            return encoder
        encoder.words_ = _texts([str(word) for word in state["words"]])
        encoder.idf_ = np.asarray(state["idf"], np.float64)
        if encoder.words_.shape != encoder.idf_.shape:
            raise ValueError("The state of this TextEncoder is damaged: there is not one weight for each word.")
        return encoder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_parameters(self) -> None:
        shortest, longest = self.ngram_range
        if not 1 <= shortest <= longest:
            raise ValueError(f"ngram_range={self.ngram_range!r}: give the shortest and the longest length, from 1.")
        if self.n_features is not None and self.n_features < 1:
            raise ValueError(f"n_features={self.n_features}: at least one feature is needed, or None for a vocabulary.")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(f"encoding={self.encoding!r} is not known: use a name such as 'utf-8'.") from None

    def _analyzer(self) -> WordAnalyzer:
        return WordAnalyzer(*self.ngram_range)

    def _learn_words(self, counts: _Counts) -> None:
        n = counts.n_documents
        if isinstance(counts, HashedCounts):
            self.words_ = _texts([word or f"hash{i}" for i, word in enumerate(counts.words)])
            self.idf_ = _idf(counts.frequencies, n)
            return
        if not counts.frequencies:
            raise ValueError("The documents have no words to learn from.")
        words = counts.choose(self._least(n), self._most(n), self.max_features)
        enough = sum(counts.frequencies[word] for word in words) >= _FEW_WORDS * n
        if self.max_df == "auto" and n >= _FEW_DOCUMENTS and not enough:
            words = counts.choose(self._least(n), _MOST_OF_FEW * n, self.max_features)
        if not words and self.min_df == "auto":  # all documents alike, or no two with a word in common
            words = counts.choose(1, n, self.max_features)
        if not words:
            raise ValueError(
                f"No word is in at least {self._least(n):g} and at most {self._most(n):g} of {n} documents: "
                "change min_df or max_df."
            )
        self.words_ = _texts(words)
        self.idf_ = _idf(np.array([counts.frequencies[word] for word in words]), n)

    def _least(self, n: int) -> float:
        if self.min_df == "auto":
            return 1 if n < _FEW_DOCUMENTS else 2 if n < 1_000 else 3
        return self.min_df if isinstance(self.min_df, Integral) else self.min_df * n

    def _most(self, n: int) -> float:
        if n < _FEW_DOCUMENTS:
            return n
        if self.max_df == "auto":
            return _MOST * n
        return self.max_df if isinstance(self.max_df, Integral) else self.max_df * n

    def _count(self, documents: Iterator[str]) -> sparse.csr_array:
        analyzer, n_features = self._analyzer(), len(self.words_)
        if self.n_features is None:
            vectorizer = CountVectorizer(analyzer=analyzer, vocabulary=self.words_.tolist(), dtype=np.float32)
        else:
            vectorizer = HashingVectorizer(
                analyzer=analyzer, n_features=n_features, alternate_sign=False, norm=None, dtype=np.float32
            )
        rows = sparse.csr_array(vectorizer.transform(documents))
        if not rows.shape[0]:
            raise ValueError("Found array with 0 sample(s): there are no documents to encode.")
        if self.sublinear_tf:
            rows.data = 1 + np.log(rows.data)
        rows.data *= self.idf_[rows.indices]
        rows.sort_indices()
        return sparse.csr_array(normalize(rows.astype(np.float32), copy=False))

    def _embedder(self) -> Embedder:
        return embedder_for(str(self.model), self.device)

    def _embed(self, texts: list[str], *, new: bool = False) -> Array:
        embedder = self._embedder()
        if not new and self.model_digest_ != embedder.digest:
            raise ValueError(
                f"The model {str(self.model)!r} is not the one that this encoder was fitted with: its weights differ."
            )
        progress = progress_printer("documents") if self.verbose else None
        return embed_texts(texts, embedder, embeddings_folder(self.cache), progress)


_Counts = WordCounts | HashedCounts


def _texts(words: list[str]) -> Array:
    return np.array(words, dtype=object)


def _idf(frequencies: Array, n_documents: int) -> Array:
    """Return 1 + log((1 + n) / (1 + df)), as scikit-learn's `TfidfTransformer` does."""
    return np.asarray(np.log((1 + n_documents) / (1 + frequencies.astype(np.float64))) + 1)


def _at_least_one(vectors: Array) -> Array:
    if not len(vectors):
        raise ValueError("Found array with 0 sample(s): there are no documents.")
    return vectors
