"""What people have, as rows that the model can learn from: scikit-learn transformers that learn without labels."""

from tnesi.encoders.images import ImageEncoder

__all__ = ["ImageEncoder"]
