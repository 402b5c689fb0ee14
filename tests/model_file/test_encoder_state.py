"""Encoders in model files: the same bits after loading, and clear errors for damaged ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from tnesi import PoissonMixture, load, make_classifier, save
from tnesi.model_file import ModelFileError, read_header

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(40, 9, 60),
        "job": np.array(["clerk", "nurse"])[np.arange(60) % 2],
        "since": pd.date_range("2020-01-01", periods=60),
    }
)
GIVEN: dict[str, Any] = {
    "images": RNG.integers(0, 255, (60, 9, 9, 3), dtype=np.uint8),
    "text": [
        " ".join(RNG.choice(["boat", "wave", "rock", "goat", "salt", "path", "net", "pine"], 12)) for _ in range(60)
    ],
    "table": TABLE,
    "vectors": RNG.normal(size=(60, 20)),
}
LABELS = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)


def fitted(kind: Any) -> Pipeline:
    return make_classifier(kind, mixture=PoissonMixture(8), random_state=0).fit(GIVEN[kind], LABELS)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for kind in GIVEN:
        save(fitted(kind), folder / f"{kind}.tnesi")
    return {kind: folder / f"{kind}.tnesi" for kind in GIVEN}


@pytest.mark.parametrize("kind", GIVEN)
def test_the_same_bits_after_loading(kind: str, originals: dict[str, Path], tmp_path: Path) -> None:
    clf, again = fitted(kind), load(originals[kind])
    X, X_again = clf[0].transform(GIVEN[kind]), again[0].transform(GIVEN[kind])
    assert abs(X - X_again).max() == 0
    np.testing.assert_array_equal(again.predict_proba(GIVEN[kind]), clf.predict_proba(GIVEN[kind]))
    assert again[0].get_feature_names_out().tolist() == clf[0].get_feature_names_out().tolist()
    encoder = read_header(originals[kind]).encoder
    assert encoder is not None
    assert list(encoder) == [type(clf[0]).__name__]
    save(again, tmp_path / "again.tnesi")
    np.testing.assert_array_equal(
        load(tmp_path / "again.tnesi").predict_proba(GIVEN[kind]), clf.predict_proba(GIVEN[kind])
    )


def test_mixtures_have_encoders_too(tmp_path: Path) -> None:
    pipeline = Pipeline([("encoder", fitted("vectors")[0]), ("mixture", PoissonMixture(8, random_state=0))])
    pipeline.fit(GIVEN["vectors"])
    save(pipeline, tmp_path / "m.tnesi")
    again = load(tmp_path / "m.tnesi")
    np.testing.assert_array_equal(again.predict(GIVEN["vectors"]), pipeline.predict(GIVEN["vectors"]))


def test_other_pipelines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="cannot be saved"):
        save(Pipeline([("scale", StandardScaler()), ("mixture", PoissonMixture(8))]), tmp_path / "m.tnesi")
    assert not list(tmp_path.iterdir())


def other_name(header: Any, arrays: Any) -> None:
    header["encoder"] = {"PickleEncoder": next(iter(header["encoder"].values()))}


def two_encoders(header: Any, arrays: Any) -> None:
    header["encoder"]["OtherEncoder"] = {}


def no_state(header: Any, arrays: Any) -> None:
    header["encoder"] = {next(iter(header["encoder"])): None}


def no_encoder(header: Any, arrays: Any) -> None:
    header["encoder"] = {}


def deep(header: Any, arrays: Any) -> None:
    value: Any = 1
    for _ in range(50):
        value = [value]
    next(iter(header["encoder"].values()))["parameters"] = value


def missing_array(header: Any, arrays: Any) -> None:
    next(iter(header["encoder"].values()))["n_features_in"] = {"array": "encoder.99"}
    next(iter(header["encoder"].values()))["parameters"] = {"array": "encoder.98"}


def array_of_the_model(header: Any, arrays: Any) -> None:
    next(iter(header["encoder"].values()))["parameters"] = {"array": "weights"}


def fewer_features(header: Any, arrays: Any) -> None:
    arrays["weights"] = arrays["weights"][:, 1:]
    arrays["weight_sums"] = arrays["weights"].sum(axis=1)


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize(
    "damage",
    [other_name, two_encoders, no_state, no_encoder, deep, missing_array, array_of_the_model, fewer_features],
)
def test_damaged_encoders_are_refused(
    kind: str, damage: Any, originals: dict[str, Path], damaged: Callable[..., Path], tmp_path: Path
) -> None:
    path = damaged(originals[kind], tmp_path, damage)
    with pytest.raises(ModelFileError, match=r"damaged\.tnesi"):
        load(path)


NASTY: list[Any] = [
    None, True, -1, 0, 1, 2.5, 1e300, 2**53, "", "auto", "text", "a" * 99, [], {}, [1], ["a"], [[0.5]],
    {"array": "encoder.0"}, {"array": "weights"}, {"array": 3}, {"nonfinite": "nan"}, [None] * 3,
]  # fmt: skip


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Return each place in nested dicts and lists, as a container and its key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places_in(value[key])]


@pytest.mark.parametrize("kind", GIVEN)
def test_mutated_encoders_are_refused_or_work(
    kind: str, originals: dict[str, Path], write_model: Any, tmp_path: Path
) -> None:
    rng, path, loaded = random.Random(0), tmp_path / "mutated.tnesi", 0
    with safe_open(originals[kind], framework="np") as file:
        text = file.metadata()["tnesi"]
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    own = sorted(name for name in arrays if name.startswith("encoder."))
    for i in range(250):
        header, mutated = json.loads(text), dict(arrays)
        if own and rng.random() < 0.4:
            name = rng.choice(own)
            values = mutated[name].copy()
            change = rng.choice(["cut", "nan", "type", "drop", "shape"])
            if change == "cut":
                mutated[name] = values[: len(values) // 2]
            elif change == "nan" and values.dtype.kind == "f":
                values.flat[0] = rng.choice([np.nan, np.inf, -1e30])
                mutated[name] = values
            elif change == "type":
                mutated[name] = np.ones(values.shape, rng.choice([np.uint8, np.int64, np.bool_, np.float32]))
            elif change == "shape":
                mutated[name] = values[None]
            else:
                del mutated[name]
        else:
            container, key = rng.choice(places_in(header["encoder"]))
            container[key] = rng.choice(NASTY)
        write_model(path, json.dumps(header), mutated)
        try:
            model = load(path)
        except ModelFileError:
            continue
        except Exception as error:
            raise AssertionError(f"mutation {i}: {error!r}") from error
        loaded += 1
        read_header(path)
        assert len(model[0].get_feature_names_out()) == model[1].n_features_in_
    assert loaded < 200
