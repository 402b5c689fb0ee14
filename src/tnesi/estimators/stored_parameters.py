"""Conversion of estimator parameters to plain values (strings, numbers, dicts) and back, for model files."""

from __future__ import annotations

from dataclasses import asdict, fields
from numbers import Integral
from typing import Any

from tnesi.errors import InvalidParameterError, TnesiError
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.estimators.parameters import reject
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
"""Execution settings are not part of a model."""
_SETTINGS: dict[str, type[SelfLabeling | OnlineRule | EM]] = {
    "SelfLabeling": SelfLabeling,
    "OnlineRule": OnlineRule,
    "EM": EM,
}


_ADDED = {"e_step"}
"""Settings that older files lack."""


class UnsupportedModelError(TnesiError, TypeError):
    """A model that cannot be saved."""


def kind_of(model: PoissonMixture | FittedClassifier) -> str:
    """Return the name under which a model is stored; subclasses cannot be stored."""
    for name, kind in KINDS.items():
        if type(model) is kind:
            return name
    raise UnsupportedModelError(
        f"a {type(model).__name__} cannot be saved",
        advice="pass a PoissonMixture, SimpletronClassifier or NeuralSimpletron",
    )


def is_seed(random_state: object) -> bool:
    """Return whether a random state can be stored."""
    return random_state is None or isinstance(random_state, Integral)


def plain_parameters(model: PoissonMixture | FittedClassifier) -> dict[str, Any]:
    """Return the parameters of an estimator as plain values; a generator as random state becomes None."""
    found = {name: _plain(value) for name, value in model.get_params(deep=False).items() if name not in _NOT_STORED}
    if not is_seed(found["random_state"]):
        found["random_state"] = None
    return found


def checked_parameters(kind: type[Estimator], plain: dict[str, Any]) -> dict[str, Any]:
    """Return stored parameters after validation by the estimator."""
    model = kind()
    known = model.get_params(deep=False).keys() - _NOT_STORED
    if unknown := plain.keys() - known:
        raise InvalidParameterError(
            f"unknown parameters: {', '.join(sorted(unknown)[:5])!r}",
            advice="if a newer tnesi made the file, pip install --upgrade tnesi",
        )
    parameters = {name: _restored(value) for name, value in plain.items()}
    model.set_params(**parameters).check_parameters()
    seed = model.random_state
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**32):
        reject("random_state", seed, "pass an integer from 0 to 2**32 - 1")
    if not isinstance(model.verbose, int):
        reject("verbose", model.verbose, "pass an integer")
    return parameters


def _plain(value: Any) -> Any:
    if isinstance(value, PoissonMixture):
        return {"PoissonMixture": plain_parameters(value)}
    if type(value).__name__ in _SETTINGS:
        return {type(value).__name__: asdict(value)}
    return value


def _restored(value: object) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    if isinstance(value, dict) and len(value) == 1 and isinstance(given := next(iter(value.values())), dict):
        name = next(iter(value))
        if name == "PoissonMixture":
            return PoissonMixture(**checked_parameters(PoissonMixture, given))
        if name in _SETTINGS and given.keys() - _ADDED == {entry.name for entry in fields(_SETTINGS[name])} - _ADDED:
            return _SETTINGS[name](**given)
    raise InvalidParameterError(f"{str(value)[:60]} are not valid settings")
