"""Encoders of images, documents, tables and vectors: scikit-learn transformers that need no labels."""

from tnesi.encoders.choice import encoder_for, make_classifier
from tnesi.encoders.images import ImageEncoder
from tnesi.encoders.table import TableEncoder
from tnesi.encoders.text import TextEncoder
from tnesi.encoders.vectors import VectorEncoder

__all__ = ["ImageEncoder", "TableEncoder", "TextEncoder", "VectorEncoder", "encoder_for", "make_classifier"]
