"""Classifiers from very few labels: truncated Neural Simpletrons."""

from tnesi.classifier import SimpletronClassifier
from tnesi.mixture import PoissonMixture

__all__ = ["PoissonMixture", "SimpletronClassifier"]
__version__ = "0.1.0"
