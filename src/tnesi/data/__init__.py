"""Data that tests, benchmarks and examples use: MNIST and Fashion-MNIST as their official IDX files."""

from tnesi.data.idx import read_idx
from tnesi.data.named import DataNotFoundError, ImageData, load_fashion_mnist, load_mnist

__all__ = ["DataNotFoundError", "ImageData", "load_fashion_mnist", "load_mnist", "read_idx"]
