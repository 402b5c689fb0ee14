"""Parameters of estimators as plain values (texts, numbers, dicts), and back: for model files and records."""

from __future__ import annotations

from dataclasses import asdict, fields
from numbers import Integral
from typing import Any

from tnesi.errors import InvalidParameterError
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.estimators.poisson_mixture import PoissonMixture
from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.labeling.second_layer import SelfLabeling
from tnesi.training.rules import EM, OnlineRule

Estimator = PoissonMixture | SimpletronClassifier | NeuralSimpletron
KINDS: dict[str, type[Estimator]] = {
    "mixture": PoissonMixture,
    "classifier": SimpletronClassifier,
    "network": NeuralSimpletron,
}
_NOT_STORED = {"execution"}
"""Where a model was learned is not part of it."""
_SETTINGS: dict[str, type[SelfLabeling | OnlineRule | EM]] = {
    "SelfLabeling": SelfLabeling,
    "OnlineRule": OnlineRule,
    "EM": EM,
}


def kind_of(model: PoissonMixture | FittedClassifier) -> str:
    """Return the name under which a model is stored; a subclass has none."""
    for name, kind in KINDS.items():
        if type(model) is kind:
            return name
    raise TypeError(
        f"a {type(model).__name__} cannot be saved: pass a PoissonMixture, SimpletronClassifier or NeuralSimpletron"
    )


def is_seed(random_state: Any) -> bool:
    """Whether a random state can be stored."""
    return random_state is None or isinstance(random_state, Integral)


def plain_parameters(model: PoissonMixture | FittedClassifier) -> dict[str, Any]:
    """Return the parameters of an estimator as plain values; a generator as random state becomes None."""
    found = {name: _plain(value) for name, value in model.get_params(deep=False).items() if name not in _NOT_STORED}
    if not is_seed(found["random_state"]):
        found["random_state"] = None
    return found


def checked_parameters(kind: type[Estimator], plain: dict[str, Any]) -> dict[str, Any]:
    """Return parameters that were stored, after a check that the estimator accepts them."""
    model = kind()
    known = model.get_params(deep=False).keys() - _NOT_STORED
    if unknown := plain.keys() - known:
        raise InvalidParameterError(
            "this tnesi does not know the parameters {unknown!r}",
            unknown=", ".join(sorted(unknown)[:5]),
            advice="if a newer one made the file, pip install --upgrade tnesi",
        )
    parameters = {name: _restored(value) for name, value in plain.items()}
    model.set_params(**parameters).check_parameters()
    seed = model.random_state
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**32):
        raise ValueError(f"random_state={seed!r}: a seed is an integer from 0 to 2**32 - 1")
    if not isinstance(model.verbose, int):
        raise ValueError(f"verbose={model.verbose!r} is not an integer")
    return parameters


def _plain(value: Any) -> Any:
    if isinstance(value, PoissonMixture):
        return {"PoissonMixture": plain_parameters(value)}
    if type(value).__name__ in _SETTINGS:
        return {type(value).__name__: asdict(value)}
    return value


def _restored(value: Any) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    if isinstance(value, dict) and len(value) == 1 and isinstance(given := next(iter(value.values())), dict):
        name = next(iter(value))
        if name == "PoissonMixture":
            return PoissonMixture(**checked_parameters(PoissonMixture, given))
        if name in _SETTINGS and given.keys() == {entry.name for entry in fields(_SETTINGS[name])}:
            return _SETTINGS[name](**given)
    raise ValueError(f"{str(value)[:60]} are not settings of this tnesi")
