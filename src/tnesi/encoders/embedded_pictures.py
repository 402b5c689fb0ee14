"""Rows from pictures on a canvas: the features of a pretrained model that takes pictures, such as CLIP."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tnesi.encoders.canvas import Size
from tnesi.encoders.embeddings import embedder_for
from tnesi.encoders.picture_rows import Boxes
from tnesi.encoders.vectors import VectorEncoder
from tnesi.types import Array


@dataclass(frozen=True)
class PictureModel:
    """A pretrained model that takes pictures.

    Attributes
    ----------
    name : str
    device : str or None
    cache : Path or None
        Folder for computed embeddings.
    progress : callable or None
        Called with the number of pictures that are done, and that of all.
    """

    name: str
    device: str | None
    cache: Path | None
    progress: Callable[[int, int], None] | None

    def digest(self) -> str:
        """Return the digest of its weights."""
        return embedder_for(self.name, self.device).digest

    def embed(self, pictures: Array, boxes: Boxes) -> Array:
        """Return the vectors of pictures (n x height x width x channels) in boxes of a canvas."""
        images, keys = [], []
        pillow = import_module("PIL.Image")
        for n, picture in enumerate(pictures):
            top, left, height, width = (0, 0, *picture.shape[:2]) if boxes is None else boxes[n]
            part = picture[top : top + height, left : left + width]
            values = np.ascontiguousarray((np.clip(part, 0, 1) * 255).round().astype(np.uint8))
            keys.append(hashlib.blake2b(repr(values.shape).encode() + values.tobytes(), digest_size=32).digest())
            images.append(pillow.fromarray(values))
        try:
            return embedder_for(self.name, self.device).embed(images, keys, self.cache, self.progress)
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # depending on the model and the library
            raise ValueError(
                f"The model {self.name!r} cannot embed pictures ({error}): take one that does, such as 'clip-ViT-B-32'."
            ) from error


@dataclass(frozen=True)
class EmbeddedPictures:
    """How pictures become rows by a model; see :class:`tnesi.encoders.picture_rows.PictureRows`.

    Attributes
    ----------
    canvas : (int, int)
    model : PictureModel
    digest : str
        Of the weights of the model.
    vectors : VectorEncoder
    """

    canvas: Size
    model: PictureModel
    digest: str
    vectors: VectorEncoder
    colored = True
    shaded = False

    @property
    def n_features(self) -> int:
        return 2 * int(self.vectors.n_directions_)

    def names(self) -> list[str]:
        return [str(name) for name in self.vectors.get_feature_names_out()]

    def encode(self, pictures: Array, boxes: Boxes, n_threads: int) -> Array:
        if self.model.digest() != self.digest:
            raise ValueError(
                f"The model {self.model.name!r} is not the one that this encoder was fitted with: its weights differ."
            )
        return self.vectors.transform(self.model.embed(pictures, boxes))

    def state(self) -> dict[str, Any]:
        return {"canvas": list(self.canvas), "digest": self.digest, "vectors": self.vectors.get_state()}

    @classmethod
    def from_state(cls, state: dict[str, Any], model: PictureModel) -> EmbeddedPictures:
        height, width = state["canvas"]
        return cls((height, width), model, str(state["digest"]), VectorEncoder.from_state(state["vectors"]))


def learn_pictures(canvas: Size, model: PictureModel, sample: Iterable[tuple[Array, Boxes]]) -> EmbeddedPictures:
    """Learn the directions of the vectors of a sample of pictures, in blocks."""
    vectors = np.concatenate([model.embed(*block) for block in sample if len(block[0])])
    return EmbeddedPictures(canvas, model, model.digest(), VectorEncoder().fit(vectors))
