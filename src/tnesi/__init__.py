"""Classifiers from very few labels: truncated Neural Simpletrons."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tnesi.encoders.choice import make_classifier
    from tnesi.estimators.poisson_mixture import PoissonMixture
    from tnesi.estimators.simpletron_classifier import SimpletronClassifier
    from tnesi.labeling.second_layer import SelfLabeling
    from tnesi.model_file import load, save

__all__ = ["PoissonMixture", "SelfLabeling", "SimpletronClassifier", "load", "make_classifier", "save"]
__version__ = "0.1.0"

_HOME = {
    "PoissonMixture": "estimators.poisson_mixture",
    "SimpletronClassifier": "estimators.simpletron_classifier",
    "SelfLabeling": "labeling.second_layer",
    "load": "model_file",
    "make_classifier": "encoders.choice",
    "save": "model_file",
}


_ROOMS = ("data", "encoders", "errors", "execution", "export", "model_selection", "paper", "report")


def __getattr__(name: str) -> Any:
    """Import on first use: ``tnesi --help`` answers without loading scikit-learn."""
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
