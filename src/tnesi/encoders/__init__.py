"""From what people have to rows of non-negative numbers that the model can learn from."""

from tnesi.encoders.table import TableEncoder
from tnesi.encoders.text import TextEncoder
from tnesi.encoders.vectors import VectorEncoder

__all__ = ["TableEncoder", "TextEncoder", "VectorEncoder"]
